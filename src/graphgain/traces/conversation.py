"""A conversation as counting sees it, whatever the file looked like."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

Count = Annotated[int, Meta(ge=0)]


class Request(Struct, gc=False):
    """One request; the names in a file are those of the weka format."""

    t_s: float = field(name="t")
    input_tokens: Count = field(name="in")
    output_tokens: Count = field(name="out")
    hash_ids: Raw = Raw(b"[]")


def open_list(hash_ids: Raw | bytes) -> bytes:
    """The text of a JSON list up to but not including its closing bracket; others as they are."""
    text = bytes(hash_ids).strip()
    return text[:-1].rstrip() if text.startswith(b"[") and text.endswith(b"]") else text


@dataclass(frozen=True)
class Stream:
    """The requests of one agent: the parent's (`agent` is empty), or one subagent's.

    `ids` has the hash ids of each request as `open_list` has them. They stay text until somebody
    needs the numbers: an agent's request begins with the very text of the request before, so most
    of it never has to be parsed. The ids are chained: an id stands for its block and for everything
    before it.

    `position` is the subagent's place in the parent's list and `start_s` its start; `places` say
    where each request stands in its list, or in which line of the file.
    """

    agent: str
    position: int = 0
    start_s: float = 0.0
    requests: list[Request] = dataclasses.field(default_factory=list)
    ids: list[bytes] = dataclasses.field(default_factory=list)
    places: list[int] = dataclasses.field(default_factory=list)

    def add(self, request: Request, ids: bytes, place: int) -> None:
        """Add the next request."""
        self.requests.append(request)
        self.ids.append(ids)
        self.places.append(place)


@dataclass(frozen=True)
class Conversation:
    """One conversation; the first stream is the parent's, which may be empty.

    `shared_ids`: its hash ids compare with those of other conversations.
    """

    id: str
    file: str
    line: int | None
    block_tokens: int
    streams: list[Stream]
    shared_ids: bool = False
    request_per_line: bool = False

    def where(self, stream: int = 0, index: int | None = None) -> str:
        """The place of a request (or of the whole conversation) for an error message."""
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        if index is None:
            return place
        own = self.streams[stream]
        if self.request_per_line:
            return f"{self.file}, line {own.places[index]}"
        parent = f"requests[{own.position}]." if stream else ""
        return f"{place}: {parent}requests[{own.places[index]}]"


@dataclass(frozen=True)
class Skipped:
    """Something bad that was left out, and why: the sentence that would have been the error."""

    reason: str
