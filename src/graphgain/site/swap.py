"""Replacing a whole directory at once."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphgain.errors import SiteError


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a new empty directory beside `out` that takes its place when the block succeeds.

    When the block raises, `out` stays as it was and the new directory is removed. Readers see
    the old directory or the new one (between two renames, for an instant, none). Raises SiteError
    where the place cannot be written.
    """
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
    except OSError as error:
        raise SiteError(
            f"the site cannot be written to {out}: {error.strerror}. "
            f"Make {out.parent} a folder that you may write to, or choose another place."
        ) from error
    try:
        yield fresh
        _exchange(fresh, old, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    # Only now: if neither rename had worked, `old` would be the only copy of the site.
    shutil.rmtree(old, ignore_errors=True)


def _exchange(fresh: Path, old: Path, out: Path) -> None:
    try:
        if out.exists():
            out.rename(old)
        try:
            fresh.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
    except OSError as error:
        raise SiteError(f"{out} cannot be replaced by the new site: {error.strerror}") from error
