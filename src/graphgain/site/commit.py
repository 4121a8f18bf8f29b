"""Which commit a site is built from."""

import subprocess
from pathlib import Path

UNKNOWN = "unknown commit"


def describe_commit(root: Path) -> str:
    """The short commit of a checkout, with `+changes` where tracked files differ from it.

    Outside a git checkout, or without git: "unknown commit".
    """
    command = ["git", "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+changes"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return done.stdout.strip()
