"""Opening a file by what its first bytes say it is: plain, gzip, xz, zstd or Parquet."""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, cast

from graphgain.errors import TraceError

Packing = Literal["plain", "gzip", "xz", "zstd", "parquet"]

_MAGIC: dict[bytes, Packing] = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PAR1": "parquet",
}
_CHUNK_BYTES = 1 << 20

BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)
"""What reading a damaged or truncated packed file raises."""


def packing(path: Path) -> Packing:
    """How a file is packed; raises TraceError where it cannot be read."""
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror}).") from None
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "plain")


def open_unpacked(path: Path) -> IO[bytes]:
    """The unpacked bytes of a text file; reading them raises one of BROKEN where it is damaged."""
    kind = packing(path)
    if kind == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if kind == "xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    if kind == "zstd":
        return io.BufferedReader(_Chunks(_zstd_chunks(path)), _CHUNK_BYTES)
    return path.open("rb", buffering=_CHUNK_BYTES)


def numbered_lines(path: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a text file that are not blank, with their numbers.

    Raises TraceError where a packed file is cut off or damaged, after the lines before that.
    """
    number = 0
    with open_unpacked(path) as stream:
        while True:
            try:
                line = stream.readline()
            except BROKEN as error:
                raise TraceError(broken(name, number + 1, error)) from None
            if not line:
                return
            number += 1
            if line.strip():
                yield number, line


def broken(name: str, line: int, error: BaseException) -> str:
    """The sentence about a packed file that is damaged in or before a line."""
    return (
        f"{name}, line {line}: the packed file is cut off or damaged here ({error}); "
        "fetch it again."
    )


def missing(package: str, what: str) -> TraceError:
    """The error about an optional package that is not installed."""
    return TraceError(
        f"{what} needs the package {package}, which is not installed: "
        "pip install 'graphgain[traces]'."
    )


class _Chunks(io.RawIOBase):
    """A stream over chunks of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _zstd_chunks(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise missing("zstandard", f"{path}: a file packed with zstd") from None
    with path.open("rb") as stream:
        frame = zstandard.ZstdDecompressor().decompressobj()
        pending = b""
        while pending := pending or stream.read(_CHUNK_BYTES):
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                chunk = frame.decompress(pending)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            pending = frame.unused_data if frame.eof else b""
            yield chunk
        if not frame.eof:
            raise EOFError("the last frame is not complete")
