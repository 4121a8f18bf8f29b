"""One measurement at a time on a GPU, whoever starts it and from which folder."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graphgain.errors import BusyError, MeasureError

HOST = "host"
"""What a measurement without a GPU locks: it is disturbed by any other on the same host."""


def lock_path(resource: str) -> Path:
    """The lock file of a resource, `HOST` or a GPU's hashed UUID, for all users of this host."""
    return Path(tempfile.gettempdir()) / f"graphgain-{resource}.lock"


@contextlib.contextmanager
def exclusive(resource: str) -> Iterator[None]:
    """Hold the lock of a resource; raises BusyError naming the holder without waiting.

    The kernel drops the lock when its holder dies, however it dies; the file stays, because
    removing it would let two processes lock two files of one name.
    """
    path = lock_path(resource)
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            what = "this host" if resource == HOST else "this GPU"
            raise BusyError(
                f"Another graphgain measurement (pid {holder}) is running on {what}; "
                f"wait until it ends, then run this again. Its lock is {path}."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Kernels that protect sticky folders refuse O_CREAT on another user's file, so try without.
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot_open(path, error) from None
    try:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
    except OSError as error:
        raise _cannot_open(path, error) from None
    with contextlib.suppress(PermissionError):  # another user created it in between
        os.fchmod(descriptor, 0o666)  # against the umask
    return descriptor


def _cannot_open(path: Path, error: OSError) -> MeasureError:
    return MeasureError(
        f"{path}: the lock file cannot be opened ({error.strerror}); "
        "remove it, or set TMPDIR to a folder that all who measure here can write."
    )
