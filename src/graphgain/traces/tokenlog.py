"""Logs of requests with their token ids, as vLLM (`prompt_token_ids`) and SGLang (`input_ids`)
name them: JSON lines, one request a line. The blocks are hashed here.

Optional keys: `timestamp` or `arrival_time` in seconds (else the order of the lines counts), the
response as `output_token_ids` or `output_ids`, or its length as `output_tokens`, and `session_id`.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Count, Request, Skipped, Stream, open_list

DEFAULT_BLOCK_TOKENS = 16
"""vLLM's default; SGLang's radix cache has pages of one token unless it is told otherwise."""

TokenIds = list[Annotated[int, Meta(ge=0, lt=2**31)]]


class Row(Struct):
    """One request of a log."""

    prompt_token_ids: TokenIds | None = None
    input_ids: TokenIds | None = None
    timestamp: float | None = None
    arrival_time: float | None = None
    output_token_ids: TokenIds | None = None
    output_ids: TokenIds | None = None
    output_tokens: Count = 0
    session_id: str | int | None = None


_DECODER = msgspec.json.Decoder(Row)


def read_file(
    lines: Iterator[tuple[int, bytes]],
    name: str,
    skip_bad: bool,
    block_tokens: int = DEFAULT_BLOCK_TOKENS,
    by_session: bool = True,
) -> tuple[list[Conversation], list[Skipped]]:
    """One conversation a session, or the whole file as one where no row has a session.

    Without `by_session` the file is one conversation, the log of one cache. Requests without a time
    keep the order of the lines. A bad line raises TraceError or, to be skipped, is listed.
    """
    streams: dict[str, Stream] = {}
    skipped = []
    timed: bool | None = None
    for number, line in lines:
        try:
            session, t_s, request, ids = _request(line, f"{name}, line {number}", block_tokens)
            if timed is not None and timed != (t_s is not None):
                raise TraceError(
                    f"{name}, line {number}: {'no time' if timed else 'a time'}, other than in the "
                    "lines before; all requests of a log have a time, or none."
                )
        except TraceError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(str(error)))
            continue
        timed = t_s is not None
        request.t_s = float(number) if t_s is None else t_s
        stream = streams.setdefault(session if by_session else "", Stream(""))
        stream.add(request, ids, number)
    conversations = [
        Conversation(
            id=f"{name}#{session}" if session else name,
            file=name,
            line=None,
            block_tokens=block_tokens,
            streams=[stream],
            shared_ids=True,
            request_per_line=True,
        )
        for session, stream in streams.items()
    ]
    return conversations, skipped


def hash_blocks(token_ids: list[int], block_tokens: int) -> list[int]:
    """A chained hash of each full block: of its tokens and of the hash before it.

    64 bits: among ten million blocks two share a hash with a probability of about 3e-6, and most
    such pairs are refused as unchained ids.
    """
    tokens = np.asarray(token_ids, dtype="<u4")
    hashes, before = [], b""
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        block = tokens[start : start + block_tokens].tobytes()
        before = blake2b(before + block, digest_size=8).digest()
        hashes.append(int.from_bytes(before, "little"))
    return hashes


def _request(
    line: bytes, where: str, block_tokens: int
) -> tuple[str, float | None, Request, bytes]:
    """Session, time, request and ids of one line; the request's own time is still to be set."""
    try:
        row = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: not a request with token ids: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{where}: not valid JSON: {str(error).rstrip('.')}.") from None
    tokens = row.input_ids if row.prompt_token_ids is None else row.prompt_token_ids
    if tokens is None:
        raise TraceError(f"{where}: neither prompt_token_ids nor input_ids is there.")
    output = row.output_ids if row.output_token_ids is None else row.output_token_ids
    times = [time for time in (row.timestamp, row.arrival_time) if time is not None]
    request = Request(
        t_s=0.0,
        input_tokens=len(tokens),
        output_tokens=row.output_tokens if output is None else len(output),
    )
    ids = open_list(msgspec.json.encode(hash_blocks(tokens, block_tokens)))
    session = "" if row.session_id is None else str(row.session_id)
    return session, times[0] if times else None, request, ids
