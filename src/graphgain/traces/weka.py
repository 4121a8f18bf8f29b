"""The weka format (kv-cache-tester, AgentX): one JSON object a conversation.

Subagents are nested one level deep. Their times count from the marker in the parent's list in
kv-cache-tester's files, and from the start of the trace in those on the Hub; see `matching`.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Request, Stream, open_list


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
_IDS_KEY = b'"hash_ids":'
_NO_IDS = b"[]"  # the default: a request without the key


def read_conversation(text: bytes, file: str, line: int | None) -> Conversation:
    """Parse one conversation; `line` is None where the whole file is one.

    Raises TraceError with file, line and field for what is not JSON, lacks a field, has one of a
    wrong type, or holds no request.
    """
    around = _decode_around_ids(text)
    if around is not None:
        return as_conversation(*around, file, line)
    try:
        trace = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{_place(text, file, line, error)}: {_reason(error)}.") from None
    return as_conversation(trace, None, file, line)


def _decode_around_ids(text: bytes) -> tuple[Trace, list[bytes]] | None:
    """Parse a conversation without looking into its lists of hash ids, nearly all of its text.

    Each list is cut out, from its bracket to the next closing one, and its number put in its place;
    the lists are checked where they are counted. None where that is not safe, or what is left is
    no conversation: then the whole text has to be parsed, which gives the right errors, too.
    """
    kept: list[bytes] = []
    lists: list[bytes] = []
    done, key = 0, text.find(_IDS_KEY)
    while key >= 0:
        begin = key + len(_IDS_KEY)
        begin += text[begin : begin + 1] == b" "
        end = text.find(b"]", begin)
        if end < 0 or text[begin : begin + 1] != b"[":
            return None
        kept += (text[done:begin], b"%d" % len(lists))
        lists.append(text[begin:end].rstrip())
        done = end + 1
        key = text.find(_IDS_KEY, done)
    kept.append(text[done:])
    slim = b"".join(kept)
    if b"\\" in slim or slim.count(b"hash_ids") != len(lists):
        return None  # a key that is written otherwise would not have been seen
    try:
        return _DECODER.decode(slim), lists
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def convert_conversation(row: dict[str, Any], file: str, line: int) -> Conversation:
    """The same from a row that is parsed already, such as one of a Parquet file."""
    try:
        trace = msgspec.convert(row, Trace)
    except msgspec.ValidationError as error:
        raise TraceError(f"{file}, row {line}: {_reason(error)}.") from None
    return as_conversation(trace, None, file, line)


def as_conversation(
    trace: Trace, lists: list[bytes] | None, file: str, line: int | None
) -> Conversation:
    """A trace as streams: the parent's requests, and each subagent's.

    With `lists`, the hash ids of a request are the number of one of them.
    """
    parent = Stream("")
    streams = [parent]
    for position, entry in enumerate(trace.requests):
        if isinstance(entry, Subagent):
            agent = entry.agent_id or f"subagent {position}"
            stream = Stream(agent, position, entry.t_s)
            streams.append(stream)
            for place, inner in enumerate(entry.requests):
                stream.add(inner, _ids(inner, lists), place)
        else:
            parent.add(entry, _ids(entry, lists), position)
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


def _ids(request: Request, lists: list[bytes] | None) -> bytes:
    if lists is None or bytes(request.hash_ids) == _NO_IDS:
        return open_list(request.hash_ids)
    return lists[int(bytes(request.hash_ids))]


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
