"""The weka format (kv-cache-tester, AgentX): one JSON object a conversation.

Subagents are nested one level deep. Their times count from the marker in the parent's list in
kv-cache-tester's files, and from the start of the trace in those on the Hub; see `matching`.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Request, Stream


class NonStreaming(Request, tag="n", tag_field="type", gc=False):
    """A request whose response came as a whole."""


class Streaming(Request, tag="s", tag_field="type", gc=False):
    """A request whose response was streamed; counted like any other."""


class Subagent(Struct, tag="subagent", tag_field="type"):
    """A subagent that the parent started."""

    t_s: float = field(name="t")
    requests: list[NonStreaming | Streaming]
    agent_id: str | None = None


class Trace(Struct):
    """One conversation; keys that counting does not need are not looked at."""

    id: str
    block_size: Annotated[int, Meta(gt=0)]
    requests: list[NonStreaming | Streaming | Subagent]
    hash_id_scope: Literal["local", "global"] = "local"


_DECODER = msgspec.json.Decoder(Trace)


def read_conversation(text: bytes, file: str, line: int | None) -> Conversation:
    """Parse one conversation; `line` is None where the whole file is one.

    Raises TraceError with file, line and field for what is not JSON, lacks a field, has one of a
    wrong type, or holds no request.
    """
    try:
        trace = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{_place(text, file, line, error)}: {_reason(error)}.") from None
    return as_conversation(trace, file, line)


def convert_conversation(row: dict[str, Any], file: str, line: int) -> Conversation:
    """The same from a row that is parsed already, such as one of a Parquet file."""
    try:
        trace = msgspec.convert(row, Trace)
    except msgspec.ValidationError as error:
        raise TraceError(f"{file}, row {line}: {_reason(error)}.") from None
    return as_conversation(trace, file, line)


def as_conversation(trace: Trace, file: str, line: int | None) -> Conversation:
    """A trace as streams: the parent's requests, and each subagent's."""
    parent = Stream("", [], [])
    streams = [parent]
    for position, entry in enumerate(trace.requests):
        if isinstance(entry, Subagent):
            places = list(range(len(entry.requests)))
            agent = entry.agent_id or f"subagent {position}"
            inner: list[Request] = list(entry.requests)
            streams.append(Stream(agent, inner, places, position, entry.t_s))
        else:
            parent.requests.append(entry)
            parent.places.append(position)
    conversation = Conversation(
        id=trace.id,
        file=file,
        line=line,
        block_tokens=trace.block_size,
        streams=streams,
        shared_ids=trace.hash_id_scope == "global",
    )
    if not any(stream.requests for stream in streams):
        raise TraceError(f"{conversation.where()}: the conversation {trace.id!r} has no requests.")
    return conversation


def _place(text: bytes, file: str, line: int | None, error: Exception) -> str:
    """File and line of an error: in a file that is one object, the line of the byte it names."""
    if line is not None:
        return f"{file}, line {line}"
    if named := re.search(r"\(byte (\d+)\)", str(error)):
        text = text[: int(named[1])]
    elif "truncated" in str(error):
        text = text.rstrip()
    else:
        return file
    newlines = text.count(b"\n")
    return f"{file}, line {1 + newlines}"


def _reason(error: Exception) -> str:
    text = str(error).rstrip(".")
    if isinstance(error, msgspec.ValidationError):
        return f"not a conversation of the weka format: {text}"
    return f"not valid JSON: {text}"
