"""How a completion is asked for and its stream is read, for each kind of server.

Both kinds stream server-sent events: lines `data: {...}`, at the end `data: [DONE]`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphgain.engines.config import Protocol
from graphgain.errors import MeasureError

DONE = b"[DONE]"


class RequestError(MeasureError):
    """A request failed, or was answered with something that is not one token."""


@dataclass(frozen=True)
class Request:
    """What is sent: a path below the server's address and a body, ready before the clock starts."""

    path: str
    body: bytes


@dataclass(frozen=True)
class Usage:
    """What a server says that a request consisted of; None for what it does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def request(protocol: Protocol, served: str, ids: Sequence[int]) -> Request:
    """One greedy token after the prompt `ids`, streamed; `served` is the model's name there."""
    if protocol == "sglang":
        return Request(
            "/generate",
            _body(
                {
                    "input_ids": list(ids),
                    "sampling_params": {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True},
                    "stream": True,
                }
            ),
        )
    return Request(
        "/v1/completions",
        _body(
            {
                "model": served,
                "prompt": list(ids),
                "max_tokens": 1,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ),
    )


def event(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line of a stream; None for other lines and for the end.

    Raises RequestError where a data line is no JSON object, or is an error of the server's.
    """
    if not line.startswith(b"data:"):
        return None
    data = line[5:].strip()
    if data == DONE or not data:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        raise RequestError(f"The server sent an event that is no JSON: {_start(data)}.") from None
    if not isinstance(found, dict):
        raise RequestError(f"The server sent an event that is no object: {_start(data)}.")
    if found.get("error"):
        raise RequestError(f"The server sent an error in its stream: {_start(data)}.")
    return found


def has_token(protocol: Protocol, found: Mapping[str, Any]) -> bool:
    """Whether an event carries a token. Its text may be empty: a server that was started without a
    tokenizer has none to send."""
    if protocol == "sglang":
        return bool(found.get("output_ids") or found.get("text") or _meta(found).completion_tokens)
    return bool(found.get("choices"))


def usage(protocol: Protocol, found: Mapping[str, Any]) -> Usage:
    """What an event says about the request as a whole."""
    if protocol == "sglang":
        return _meta(found)
    told = _object(found, "usage")
    return Usage(
        _count(told, "prompt_tokens"),
        _count(told, "completion_tokens"),
        _count(_object(told, "prompt_tokens_details"), "cached_tokens"),
    )


def _meta(found: Mapping[str, Any]) -> Usage:
    told = _object(found, "meta_info")
    return Usage(
        _count(told, "prompt_tokens"),
        _count(told, "completion_tokens"),
        _count(told, "cached_tokens"),
    )


def _object(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inside = found.get(name) or {}
    if not isinstance(inside, Mapping):
        raise RequestError(f"The server sent {name} {inside!r}, which is no object.")
    return inside


def _count(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    if value is not None and not isinstance(value, int):
        raise RequestError(f"The server sent {name} {value!r}, which is no number of tokens.")
    return value


def _body(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _start(data: bytes) -> str:
    return repr(data[:160].decode(errors="replace"))
