"""The site: staging the sources, checking them, rendering, checking what was rendered."""
