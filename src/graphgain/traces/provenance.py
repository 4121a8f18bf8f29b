"""Which code counted a trace, as a hash: it decides whether a kept result still holds."""

import hashlib
from pathlib import Path

from graphgain.sources import PACKAGE, content_hash, imported_modules

ROOT = PACKAGE.parents[1]


def counting_sources() -> list[Path]:
    """The modules that decide what a trace's document says."""
    here = Path(__file__).parent
    document = here / "document.py"
    modules = {document, *imported_modules(document)}
    return sorted(module for module in modules if module.parent == here)


def counting_hash() -> str:
    """The hash over names and contents of `counting_sources`."""
    return content_hash(counting_sources(), ROOT)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
