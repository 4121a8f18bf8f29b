"""Versions of installed packages, without importing them."""

import importlib.metadata


def package_version(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
