"""All prompts seen so far as one tree of blocks, and how much of a new prompt is in it.

A node stands for a block and everything before it; an id has one node. The new prompt is compared
as text with the latest ones first: what is equal as text is equal as ids, so only the rest is
parsed and looked up. That makes counting about as fast as comparing bytes, and it stays exact.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

LATEST = 16
"""How many prompts are kept as text. Parallel agents alternate; a miss only costs time."""

_COMMA = ord(",")
_decode_ids = msgspec.json.Decoder(list[int]).decode


class Range(NamedTuple):
    """Nodes from `start` up to but not including `end`; each is the child of the one before."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Path:
    """The nodes of a prompt from its first block to its last, as ranges, and how many."""

    ranges: tuple[Range, ...] = ()
    length: int = 0

    def node(self, depth: int) -> int:
        """The node of one block; -1 stands for the root, before the first block."""
        if depth < 0:
            return -1
        for start, end in self.ranges:
            if depth < end - start:
                return start + depth
            depth -= end - start
        raise IndexError(depth)

    def head(self, length: int) -> "Path":
        """The first `length` nodes."""
        if length == self.length:
            return self
        kept, left = [], length
        for start, end in self.ranges:
            if left <= end - start:
                kept.append(Range(start, start + left))
                break
            kept.append(Range(start, end))
            left -= end - start
        return Path(tuple(kept) if length else (), length)

    def grown(self, start: int, end: int) -> "Path":
        """This path and a range behind it."""
        if start == end:
            return self
        ranges, length = self.ranges, self.length + end - start
        if ranges and ranges[-1].end == start:
            return Path((*ranges[:-1], Range(ranges[-1].start, end)), length)
        return Path((*ranges, Range(start, end)), length)


class ChainError(ValueError):
    """Hash ids that cannot stand for whole prefixes, or too few or too many of them."""


@dataclass(frozen=True, slots=True)
class Found:
    """A prompt in the tree: its nodes, and how many leading ones were there before."""

    path: Path
    lead: int


class PrefixTree:
    """The tree of one seen-set."""

    def __init__(self) -> None:
        self._nodes: dict[int, int] = {}
        self._parents: list[int] = []
        self._latest: deque[tuple[bytes, Path]] = deque(maxlen=LATEST)

    def copy(self) -> "PrefixTree":
        """A tree that grows on its own from here."""
        other = PrefixTree()
        other._nodes = self._nodes.copy()
        other._parents = self._parents.copy()
        other._latest = self._latest.copy()
        return other

    def add(self, text: bytes, least: int, most: int) -> Found:
        """Put a prompt into the tree; `text` is the JSON array of its ids.

        Raises ChainError, and leaves the tree as it was, where there are fewer ids than `least` or
        more than `most`, where an id comes twice, or follows another id than it did before.
        """
        body = text.strip()
        if not (body.startswith(b"[") and body.endswith(b"]")):
            raise ChainError("hash_ids is not a list")
        body = body[:-1].rstrip()
        path, end = self._longest_known(body)
        ids = _parse(body[end:])
        blocks = path.length + len(ids)
        if not least <= blocks <= most:
            needed = f"{least}" if least == most else f"{least} or {most}"
            raise ChainError(f"{blocks} hash_ids, where the input needs {needed}")
        path = self._follow(path, ids)
        lead = path.length
        new = ids[lead - blocks :] if lead < blocks else []
        self._check_new(new)
        first = len(self._parents)
        after = first + len(new)
        if new:
            self._nodes.update(zip(new, range(first, after), strict=True))
            self._parents.append(path.node(lead - 1))
            self._parents.extend(range(first, after - 1))
        path = path.grown(first, after)
        if blocks:
            self._latest.append((body, path))
        return Found(path, lead)

    def _longest_known(self, body: bytes) -> tuple[Path, int]:
        """The nodes of the longest beginning that a kept text shares, and where it ends."""
        best, end = Path(), 0
        for text, path in reversed(self._latest):
            if body.startswith(text) and body[len(text) : len(text) + 1] in (b"", b",", b" "):
                return path, len(text)
            if not text.startswith(body[: end + 1]):
                continue  # shares no more than the best so far
            comma = body.rfind(b",", 0, _common_bytes(body, text))
            if comma > end:
                # The ids before the comma are whole in both texts.
                commas = np.count_nonzero(np.frombuffer(body, np.uint8, comma) == _COMMA)
                best, end = path.head(int(commas) + 1), comma
        return best, end

    def _follow(self, path: Path, ids: list[int]) -> Path:
        """The path on through the leading ids that are in the tree."""
        node = path.node(path.length - 1)
        for id_ in ids:
            child = self._nodes.get(id_)
            if child is None:
                break
            if self._parents[child] != node:
                raise ChainError(_unchained(id_))
            path = path.grown(child, child + 1)
            node = child
        return path

    def _check_new(self, new: list[int]) -> None:
        if not self._nodes.keys().isdisjoint(new):
            raise ChainError(_unchained(next(id_ for id_ in new if id_ in self._nodes)))
        if len(set(new)) < len(new):
            raise ChainError("a hash id comes twice in one request")


def _parse(rest: bytes) -> list[int]:
    """The ids of the end of a list: what follows "[", or what follows the ids known, if any."""
    rest = rest.lstrip()
    if rest[:1] in (b",", b"["):
        rest = rest[1:]
    try:
        return _decode_ids(b"[" + rest + b"]")
    except msgspec.DecodeError:
        raise ChainError("hash_ids are not all integers") from None


def _unchained(id_: int) -> str:
    return (
        f"hash id {id_} follows another id than it did before, so an id does not stand for a whole "
        "prefix and cached prefixes cannot be counted"
    )


def _common_bytes(one: bytes, two: bytes) -> int:
    """How many leading bytes are equal."""
    length = min(len(one), len(two))
    differ = np.frombuffer(one, np.uint8, length) != np.frombuffer(two, np.uint8, length)
    place = int(differ.argmax())
    return place if differ[place] else length
