"""What is installed, without importing it."""

import importlib.metadata
import importlib.util


def package_version(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_importable(module: str) -> bool:
    """Whether a top-level module can be imported, as far as looking for it tells."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
