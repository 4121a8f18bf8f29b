"""What a folder holds."""

import hashlib
from pathlib import Path


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder: its path in it, and its SHA-256 or what it is instead of a file.

    Empty for a folder that does not exist. Raises OSError.
    """
    return {
        path.relative_to(folder).as_posix(): _digest(path)
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "not a regular file"
    return hashlib.sha256(path.read_bytes()).hexdigest()
