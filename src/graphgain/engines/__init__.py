"""Serving engines: starting them, asking them, and what their time is made of."""
