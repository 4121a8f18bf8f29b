"""One forward under several hosts: Python, a C++ loop with and without PDL, and a graph.

The hosts take turns round by round, so that what drifts (clocks, temperature) drifts for all. Every
sample begins with the forward's state put back and an idle GPU.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphgain.errors import MeasureError
from graphgain.models.forward import Forward
from graphgain.unroll.unrolled import Unrolled

EAGER, CPP, CPP_NO_PDL, GRAPH = "eager", "cpp_eager", "cpp_eager_no_pdl", "graph"
HOSTS = (EAGER, CPP, CPP_NO_PDL, GRAPH)
WARMUP_RUNS = 3
"""Python runs before a capture: compilation, tuning and handles must not be captured."""
UNHINDERED_ROUNDS = 5
"""Rounds in which the C++ loop is also timed in parts: its time is steady, and parts take long."""


@dataclass(frozen=True)
class Captured:
    """A forward as a graph and unrolled; `output` is where the graph leaves its result."""

    forward: Forward
    graph: torch.cuda.CUDAGraph
    unrolled: Unrolled
    output: Tensor
    saved: tuple[Tensor, ...]
    stream: torch.cuda.Stream

    def restore(self) -> None:
        """Put back all that a run changes and reads again."""
        self.forward.before()
        for tensor, kept in zip(self.forward.state, self.saved, strict=True):
            tensor.copy_(kept)

    def hosts(self) -> dict[str, Callable[[], Any]]:
        """By name, a function that issues the forward on `stream`, which has to be current."""
        pointer = self.stream.cuda_stream
        return {
            EAGER: self.forward.run,
            CPP: lambda: self.unrolled.launch(pointer),
            CPP_NO_PDL: lambda: self.unrolled.launch(pointer, pdl=False),
            GRAPH: self.graph.replay,
        }


@dataclass
class Samples:
    """Per host and round: time until all is done, time between two events on the GPU around it, and
    the host's time to issue it. `unhindered_issue_ms` of the C++ loop is never held back by a full
    queue, as it waits for the GPU between parts of the forward."""

    wall_ms: dict[str, list[float]] = field(default_factory=dict)
    gpu_ms: dict[str, list[float]] = field(default_factory=dict)
    issue_ms: dict[str, list[float]] = field(default_factory=dict)
    unhindered_issue_ms: list[float] = field(default_factory=list)


def capture(forward: Forward, build: Path) -> Captured:
    """Run a forward a few times, capture it into a graph, and unroll that.

    Raises MeasureError where it cannot be captured, does not fit into memory, or cannot be
    unrolled; MissingToolError where the unroller cannot be built.
    """
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    saved = tuple(tensor.clone() for tensor in forward.state)

    def restore() -> None:
        forward.before()
        for tensor, kept in zip(forward.state, saved, strict=True):
            tensor.copy_(kept)

    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_RUNS):
                restore()
                forward.run()
            restore()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            output = forward.run()
        torch.cuda.synchronize()
    except torch.OutOfMemoryError as error:
        raise MeasureError(
            f"{forward.model}: the GPU's memory is too small for this forward "
            f"({_first_line(error)}); use fewer tokens, fewer layers or a smaller model."
        ) from None
    except RuntimeError as error:
        raise MeasureError(
            f"{forward.model}: the forward cannot be captured into a CUDA graph "
            f"({_first_line(error)})."
        ) from None
    graph.instantiate()
    unrolled = Unrolled.from_graph(graph.raw_cuda_graph(), build=build, owner=graph)
    return Captured(forward, graph, unrolled, output, saved, stream)


def identical_outputs(captured: Captured) -> dict[str, bool]:
    """By host, whether its result has the bits of the graph's, the result poisoned before.

    The Python host's result may be another tensor, and its kernels may be chosen anew.
    """
    results: dict[str, Tensor] = {}
    with torch.cuda.stream(captured.stream):
        for host, issue in captured.hosts().items():
            captured.restore()
            captured.output.fill_(float("nan"))
            returned = issue()
            output = returned if isinstance(returned, Tensor) else captured.output
            captured.stream.synchronize()
            results[host] = output.clone()
    reference = results.pop(GRAPH)
    if not reference.isfinite().all():
        raise MeasureError(f"{captured.forward.model}: the forward's result is not finite.")
    return {host: torch.equal(result, reference) for host, result in results.items()}


def time_hosts(
    captured: Captured, rounds: int, warmup: int, hosts: Sequence[str] = HOSTS
) -> Samples:
    """Time every host `rounds` times in turns, after `warmup` rounds that are thrown away."""
    samples = Samples()
    stream = captured.stream
    issues = captured.hosts()
    for index in range(warmup + rounds):
        for host in hosts:
            wall, gpu, issued = _sample(captured, issues[host])
            if index >= warmup:
                samples.wall_ms.setdefault(host, []).append(wall)
                samples.gpu_ms.setdefault(host, []).append(gpu)
                samples.issue_ms.setdefault(host, []).append(issued)
        if not warmup <= index < warmup + UNHINDERED_ROUNDS:
            continue
        with torch.cuda.stream(stream):
            captured.restore()
        stream.synchronize()
        us = captured.unrolled.issue_us(stream.cuda_stream, stream.synchronize)
        samples.unhindered_issue_ms.append(us / 1000)
    return samples


def _sample(captured: Captured, issue: Callable[[], Any]) -> tuple[float, float, float]:
    """Wall, GPU and issue time of one run, in ms."""
    stream = captured.stream
    first = torch.cuda.Event(enable_timing=True)
    last = torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        captured.restore()
        stream.synchronize()
        start = time.perf_counter_ns()
        first.record(stream)
        issue()
        last.record(stream)
        issued = time.perf_counter_ns()
        stream.synchronize()
        end = time.perf_counter_ns()
    return (end - start) / 1e6, first.elapsed_time(last), (issued - start) / 1e6


def counts(captured: Captured) -> Mapping[str, Any]:
    """How many launches, and which kernels, as a document holds them."""
    summary = captured.unrolled.summary()
    pdl: dict[str, int] = {}
    for node in captured.unrolled.nodes:
        if node.kind == "kernel" and node.pdl:
            pdl[node.name] = pdl.get(node.name, 0) + 1
    return {
        "launches": summary.launches,
        "pdl_launches": summary.pdl,
        "memsets": summary.memsets,
        "memcpys": summary.memcpys,
        "kernels": [
            {"name": name, "launches": count, "pdl_launches": pdl.get(name, 0)}
            for name, count in summary.kernels.items()
        ],
    }


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
