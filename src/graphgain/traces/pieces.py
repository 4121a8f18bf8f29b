"""Cutting files into pieces that can be read on their own, told by what the files hold."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal

import msgspec

from graphgain.errors import TraceError
from graphgain.traces import mooncake, parquet, tokenlog, weka
from graphgain.traces.conversation import Conversation, Skipped
from graphgain.traces.opening import BROKEN, broken, numbered_lines, open_unpacked, packing
from graphgain.traces.sources import SourceFile

Format = Literal["weka", "mooncake", "token log"]
Layout = Literal["line", "object", "lines", "rows"]

_HEAD = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OWN_LINE = (b"{", b"[")
_PART_BYTES = 4 << 20
_BLANK_BYTES = 64  # a line of so many may be blank; a longer one is read as a conversation


@dataclass(frozen=True)
class Piece:
    """A part of a file: one line, one object, all lines, or a row group of a Parquet file.

    A line of a plain file is `start` and `size_bytes` in it, so that its text does not have to be
    handed from process to process; that of a packed file is `text`.
    """

    path: Path
    name: str
    format: Format
    layout: Layout
    size_bytes: int
    line: int = 0
    start: int = 0
    text: bytes | None = None
    group: int = 0

    def without_text(self) -> "Piece":
        """The piece without the bytes that it may hold."""
        return replace(self, text=None)


def cut(file: SourceFile, skip_bad: bool) -> Iterator[Piece | Skipped]:
    """The pieces of a file, in order.

    What is not a trace or ends too early raises TraceError or, to be skipped, is listed.
    """
    try:
        yield from _cut(file)
    except TraceError as error:
        if not skip_bad:
            raise
        yield Skipped(str(error))


def read(
    piece: Piece, skip_bad: bool, log_block_tokens: int, by_session: bool
) -> Iterator[Conversation | Skipped]:
    """The conversations of a piece, and with `skip_bad` what had to be left out."""
    try:
        yield from _read(piece, skip_bad, log_block_tokens, by_session)
    except TraceError as error:
        if not skip_bad:
            raise
        yield Skipped(str(error))


def _cut(file: SourceFile) -> Iterator[Piece]:
    size = file.path.stat().st_size
    packed = packing(file.path)
    if packed == "parquet":
        groups = parquet.count_groups(file.path, file.name)
        for group in range(groups):
            yield Piece(file.path, file.name, "weka", "rows", size // groups, group=group)
        return
    format_, whole = _detect(file)
    if format_ != "weka":
        yield Piece(file.path, file.name, format_, "lines", size)
    elif whole:
        yield Piece(file.path, file.name, format_, "object", size)
    elif packed == "plain":
        yield from _plain_lines(file)
    else:
        for number, line in numbered_lines(file.path, file.name):
            yield Piece(file.path, file.name, "weka", "line", len(line), line=number, text=line)


def _plain_lines(file: SourceFile) -> Iterator[Piece]:
    """Where the lines of a plain file are; a part of the file at a time is in memory."""
    start, number = 0, 0
    with file.path.open("rb") as stream:
        for end in _line_ends(stream):
            number += 1
            if end - start > _BLANK_BYTES or not _is_blank(file.path, start, end):
                yield Piece(file.path, file.name, "weka", "line", end - start, number, start)
            start = end


def _line_ends(stream: IO[bytes]) -> Iterator[int]:
    """The position behind each newline, and that of the end where the last line has none."""
    position, last = 0, 0
    while part := stream.read(_PART_BYTES):
        place = part.find(b"\n")
        while place >= 0:
            last = position + place + 1
            yield last
            place = part.find(b"\n", place + 1)
        position += len(part)
    if position > last:
        yield position


def _is_blank(path: Path, start: int, end: int) -> bool:
    return not _bytes_between(path, start, end).strip()


def _bytes_between(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read(end - start)


def _detect(file: SourceFile) -> tuple[Format, bool]:
    """The format of a text file, and whether the whole of it is one JSON object."""
    number, first = next(numbered_lines(file.path, file.name), (0, b""))
    if not first:
        raise TraceError(f"{file.name}: the file is empty.")
    where = f"{file.name}, line {number}"
    whole = first.strip() in _OWN_LINE
    if whole or not first.lstrip().startswith(b"{"):
        first = _whole_text(file)
        where = file.name
    try:
        keys = _HEAD.decode(first).keys()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if b'"requests"' in first[:4096]:
            return "weka", whole  # reading it says where it is broken
        if b'"input_length"' in first[:4096]:
            return "mooncake", False
        if b'"prompt_token_ids"' in first[:4096] or b'"input_ids"' in first[:4096]:
            return "token log", False
        raise TraceError(
            f"{where}: not the JSON of a trace ({str(error).rstrip('.')}). Known are weka "
            "(requests), Mooncake (input_length) and logs with token ids (prompt_token_ids)."
        ) from None
    if "requests" in keys:
        return "weka", whole
    if {"input_length", "hash_ids"} & keys:
        return "mooncake", False
    if {"prompt_token_ids", "input_ids"} & keys:
        return "token log", False
    raise TraceError(
        f"{where}: JSON, but no trace: it has none of the keys requests (weka), input_length "
        f"(Mooncake), prompt_token_ids and input_ids (logs); it has {_shown(list(keys))}."
    )


def _shown(keys: list[str]) -> str:
    return ", ".join(keys[:6]) + ", …" * (len(keys) > 6) or "no keys"


def _read(
    piece: Piece, skip_bad: bool, log_block_tokens: int, by_session: bool
) -> Iterator[Conversation | Skipped]:
    if piece.layout == "rows":
        yield from parquet.read_group(piece.path, piece.name, piece.group, skip_bad)
    elif piece.layout == "line":
        text = piece.text
        if text is None:
            text = _bytes_between(piece.path, piece.start, piece.start + piece.size_bytes)
        yield weka.read_conversation(text, piece.name, piece.line)
    elif piece.layout == "object":
        text = _whole_text(SourceFile(piece.path, piece.name))
        yield weka.read_conversation(text, piece.name, None)
    else:
        lines = numbered_lines(piece.path, piece.name)
        if piece.format == "mooncake":
            conversation, skipped = mooncake.read_file(lines, piece.name, skip_bad)
            conversations = [conversation]
        else:
            conversations, skipped = tokenlog.read_file(
                lines, piece.name, skip_bad, log_block_tokens, by_session
            )
        yield from skipped
        yield from conversations


def _whole_text(file: SourceFile) -> bytes:
    try:
        with open_unpacked(file.path) as stream:
            return stream.read()
    except BROKEN as error:
        raise TraceError(broken(file.name, 1, error)) from None
