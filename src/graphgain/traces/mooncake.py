"""The Mooncake format: JSON lines, one request a line, blocks of 512 tokens.

Ids are global over the file and there are no sessions, so a file is one conversation: the log of a
service with one cache. The last id may stand for a partial block.
"""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Count, Request, Skipped, Stream, open_list

BLOCK_TOKENS = 512


class Row(Struct):
    """One request; `session_id` is what aiperf's variant adds."""

    timestamp: float
    input_length: Count
    output_length: Count
    hash_ids: Raw
    session_id: Raw | UnsetType = UNSET


_DECODER = msgspec.json.Decoder(Row)


def read_file(
    lines: Iterator[tuple[int, bytes]], name: str, skip_bad: bool
) -> tuple[Conversation, list[Skipped]]:
    """The file as one conversation; a bad line raises TraceError or, to be skipped, is listed."""
    stream, skipped = Stream(""), []
    for number, line in lines:
        try:
            request, ids = _request(line, f"{name}, line {number}")
        except TraceError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(str(error)))
        else:
            stream.add(request, ids, number)
    conversation = Conversation(
        id=name,
        file=name,
        line=None,
        block_tokens=BLOCK_TOKENS,
        streams=[stream],
        request_per_line=True,
    )
    return conversation, skipped


def _request(line: bytes, where: str) -> tuple[Request, bytes]:
    try:
        row = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: not a request of the Mooncake format: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{where}: not valid JSON: {str(error).rstrip('.')}.") from None
    if row.session_id is not UNSET:
        raise TraceError(
            f"{where}: a row with session_id is of aiperf's multi-turn form, whose input_length is "
            "only what is new in a turn; the whole prompt is needed."
        )
    request = Request(row.timestamp / 1000, row.input_length, row.output_length)
    return request, open_list(row.hash_ids)
