"""All prompts seen so far as one tree of blocks, and how much of a new prompt is in it.

A node stands for a block and everything before it; an id has one node. The new prompt is compared
as text with the latest ones first: what is equal as text is equal as ids, so only the rest is
parsed and looked up. That makes counting about as fast as comparing bytes, and it stays exact.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

LATEST = 16
"""How many prompts are kept as text, one a branch: one that continues another takes its place.
Parallel agents alternate; a branch that was forgotten only costs time."""

_COMMA = ord(",")
_decode_ids = msgspec.json.Decoder(list[int]).decode


Range = tuple[int, int]
"""Nodes from the first up to but not including the second; each is the child of the one before."""


@dataclass(frozen=True, slots=True)
class Path:
    """The nodes of a prompt from its first block to its last, as ranges, and how many.

    A child has a higher number than its parent, so the ranges rise.
    """

    ranges: tuple[Range, ...] = ()
    length: int = 0

    def node(self, depth: int) -> int:
        """The node of one block; -1 stands for the root, before the first block."""
        if depth < 0:
            return -1
        before = self.length
        for start, end in reversed(self.ranges):  # what is asked for is mostly near the end
            before -= end - start
            if depth >= before:
                return start + depth - before
        raise IndexError(depth)

    def head(self, length: int) -> "Path":
        """The first `length` nodes."""
        if length == self.length:
            return self
        kept, left = [], length
        for start, end in self.ranges:
            if left <= end - start:
                kept.append((start, start + left))
                break
            kept.append((start, end))
            left -= end - start
        return Path(tuple(kept) if length else (), length)

    def grown(self, start: int, end: int) -> "Path":
        """This path and a range behind it."""
        if start == end:
            return self
        ranges, length = self.ranges, self.length + end - start
        if ranges and ranges[-1][1] == start:
            return Path((*ranges[:-1], (ranges[-1][0], end)), length)
        return Path((*ranges, (start, end)), length)


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
        self._parents: dict[int, int] = {}  # of a node that does not follow the node before it
        self._latest: list[tuple[bytes, Path]] = []  # the last one used stands last

    def copy(self) -> "PrefixTree":
        """A tree that grows on its own from here."""
        other = PrefixTree()
        other._nodes = self._nodes.copy()
        other._parents = self._parents.copy()
        other._latest = self._latest.copy()
        return other

    def add(self, text: bytes, least: int, most: int) -> Found:
        """Put a prompt into the tree; `text` is the list of its ids without the closing bracket.

        Raises ChainError, and leaves the tree as it was, where there are fewer ids than `least` or
        more than `most`, where an id comes twice, or follows another id than it did before.
        """
        if not text.startswith(b"["):
            raise ChainError("hash_ids is not a list")
        path, end, continued = self._longest_known(text)
        ids = _parse(text[end:])
        blocks = path.length + len(ids)
        if not least <= blocks <= most:
            needed = f"{least}" if least == most else f"{least} or {most}"
            raise ChainError(f"{blocks} hash_ids, where the input needs {needed}")
        path = self._follow(path, ids)
        lead = path.length
        new = ids[lead - blocks :] if lead < blocks else []
        self._check_new(new)
        first = len(self._nodes)
        after = first + len(new)
        if new:
            self._nodes.update(zip(new, range(first, after), strict=True))
            self._parents[first] = path.node(lead - 1)
        path = path.grown(first, after)
        if blocks:
            self._keep(text, path, continued)
        return Found(path, lead)

    def _keep(self, body: bytes, path: Path, continued: int | None) -> None:
        if continued is not None:
            del self._latest[continued]
        elif len(self._latest) == LATEST:
            del self._latest[0]
        self._latest.append((body, path))

    def _longest_known(self, body: bytes) -> tuple[Path, int, int | None]:
        """The nodes of the longest beginning that a kept text shares, where it ends, and the place
        of the kept prompt that the new one continues, if it does."""
        best, end = Path(), 0
        wanted = _through_next_id(body, end)
        for place in range(len(self._latest) - 1, -1, -1):
            text, path = self._latest[place]
            if body.startswith(text) and body[len(text) : len(text) + 1] in (b"", b",", b" "):
                return path, len(text), place
            if not text.startswith(wanted):
                continue  # shares no more ids than the best so far
            comma = body.rfind(b",", 0, _common_bytes(body, text))
            if comma > end:
                # The ids before the comma are whole in both texts.
                commas = np.count_nonzero(np.frombuffer(body, np.uint8, comma) == _COMMA)
                best, end = path.head(int(commas) + 1), comma
                wanted = _through_next_id(body, end)
        return best, end, None

    def _follow(self, path: Path, ids: list[int]) -> Path:
        """The path on through the leading ids that are in the tree."""
        start = node = path.node(path.length - 1)
        first = node + 1  # of the range that is being followed
        for id_ in ids:
            child = self._nodes.get(id_)
            if child is None:
                break
            if self._parents.get(child, child - 1) != node:
                raise ChainError(_unchained(id_))
            if child != node + 1:
                path = path.grown(first, node + 1)
                first = child
            node = child
        return path if node == start else path.grown(first, node + 1)

    def _check_new(self, new: list[int]) -> None:
        if not self._nodes.keys().isdisjoint(new):
            raise ChainError(_unchained(next(id_ for id_ in new if id_ in self._nodes)))
        if len(set(new)) < len(new):
            raise ChainError("a hash id comes twice in one request")


def _parse(rest: bytes) -> list[int]:
    """The ids of the end of a list: what follows "[", or what follows the ids known, if any."""
    rest = rest.lstrip()
    if not rest:
        return []
    if rest[:1] not in (b",", b"["):
        raise ChainError("hash_ids is not a list")
    try:
        return _decode_ids(b"[" + rest[1:] + b"]")
    except msgspec.DecodeError:
        raise ChainError("hash_ids are not all integers") from None


def _through_next_id(body: bytes, end: int) -> bytes:
    """The text up to the comma behind the next id."""
    comma = body.find(b",", end + 1)
    return body if comma < 0 else body[:comma]


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
