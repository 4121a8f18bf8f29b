"""A captured graph as a list of nodes that a C++ loop issues on a stream."""

import json
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from graphgain.unroll.library import Library, build_library

Kind = Literal["kernel", "memset", "memcpy"]
Three = tuple[int, int, int]

CHUNK = 512
"""Launches that fit in any launch queue seen so far, so that their issue is never held back."""


@dataclass(frozen=True)
class Node:
    """One node of a graph. `pdl`: its incoming edge is programmatic.

    A kernel has a name, a grid and so on; memsets and memcpys have `moved_bytes` only.
    """

    kind: Kind
    name: str
    pdl: bool
    grid: Three | None = None
    block: Three | None = None
    shared_bytes: int = 0
    argument_bytes: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True)
class Summary:
    """What a graph consists of; `kernels` counts launches by name, the most frequent first."""

    nodes: int
    launches: int
    memsets: int
    memcpys: int
    pdl: int
    kernels: dict[str, int]

    def __str__(self) -> str:
        """A few lines for a terminal."""
        lines = [
            f"{self.nodes} nodes: {self.launches} kernels, {self.memsets} memsets, "
            f"{self.memcpys} memcpys; {self.pdl} of the kernels with PDL"
        ]
        lines += [f"{count:6d}  {name}" for name, count in self.kernels.items()]
        return "\n".join(lines)


class Unrolled:
    """The nodes of a captured graph, ready to be issued as ordinary stream launches.

    They use the memory and the modules that were captured, so `owner` (whatever keeps those alive,
    such as the `torch.cuda.CUDAGraph`) is kept as long as this object lives.
    """

    def __init__(self, library: Library, graph: int, owner: object = None) -> None:
        self._library = library
        self._handle = library.read(graph)
        self._owner = owner
        self._close = weakref.finalize(self, library.free, self._handle)
        self.nodes: tuple[Node, ...] = read_nodes(library.describe(self._handle))

    @classmethod
    def from_graph(cls, graph: int, *, build: Path, owner: object = None) -> Self:
        """Take apart a `cudaGraph_t`, such as `torch.cuda.CUDAGraph.raw_cuda_graph()` gives.

        The library is built below `build` if need be. Raises MissingToolError without nvcc, and
        MeasureError for a graph with branches or with a node that a stream cannot be given again
        (a host function, a child graph, a conditional node, ...), which it names.
        """
        return cls(Library(build_library(build)), graph, owner)

    def launch(self, stream: int, *, pdl: bool = True) -> float:
        """Issue all nodes on a stream (a `cudaStream_t` as an integer); does not wait for them.

        With `pdl` false no launch has the programmatic attribute. Returns the host's µs. Raises
        MeasureError for a launch that fails.
        """
        return self._library.issue(self._handle, stream, pdl, 0, len(self.nodes))

    def issue_us(
        self, stream: int, wait: Callable[[], Any], *, pdl: bool = True, chunk: int = CHUNK
    ) -> float:
        """The host's µs to issue all nodes, never held back by a full launch queue.

        The nodes go in chunks, and `wait` (for the stream) runs after each, outside the clock.
        """
        total_us = 0.0
        for first in range(0, len(self.nodes), chunk):
            last = min(first + chunk, len(self.nodes))
            total_us += self._library.issue(self._handle, stream, pdl, first, last)
            wait()
        return total_us

    def summary(self) -> Summary:
        """Counts by kind and by name."""
        return summarise(self.nodes)


def read_nodes(text: str) -> tuple[Node, ...]:
    """The nodes that the library describes as JSON."""
    return tuple(_node(raw) for raw in json.loads(text))


def summarise(nodes: tuple[Node, ...]) -> Summary:
    """Counts by kind and by name."""
    kinds = Counter(node.kind for node in nodes)
    names = Counter(node.name for node in nodes if node.kind == "kernel")
    return Summary(
        nodes=len(nodes),
        launches=kinds["kernel"],
        memsets=kinds["memset"],
        memcpys=kinds["memcpy"],
        pdl=sum(node.pdl for node in nodes if node.kind == "kernel"),
        kernels=dict(names.most_common()),
    )


def _node(raw: dict[str, Any]) -> Node:
    if raw["kind"] != "kernel":
        return Node(raw["kind"], raw["kind"], raw["programmatic"], moved_bytes=raw["bytes"])
    (x, y, z), (width, height, depth) = raw["grid"], raw["block"]
    return Node(
        kind="kernel",
        name=raw["demangled"],
        pdl=raw["programmatic"],
        grid=(x, y, z),
        block=(width, height, depth),
        shared_bytes=raw["dynamic_shared_bytes"],
        argument_bytes=raw["argument_bytes"],
    )
