"""Which code counted a trace, as a hash: it decides whether a kept result still holds."""

import hashlib
from pathlib import Path

from graphgain.sources import PACKAGE, content_hash, imported_modules

ROOT = PACKAGE.parents[1]

_NOT_COUNTING = frozenset(PACKAGE / name for name in ("__init__.py", "errors.py"))


def counting_sources() -> list[Path]:
    """The modules that decide what a count comes to."""
    counting = Path(__file__).with_name("counting.py")
    return sorted({counting, *imported_modules(counting)} - _NOT_COUNTING)


def counting_hash() -> str:
    """The hash over names and contents of `counting_sources`."""
    return content_hash(counting_sources(), ROOT)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
