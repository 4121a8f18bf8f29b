"""When each kernel of a forward ends on the GPU, as CUPTI reports it through torch's profiler."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from graphgain.errors import MeasureError
from graphgain.unroll.hosts import CPP, EAGER, GRAPH, Captured


class Span(NamedTuple):
    """One kernel, memset or memcpy on the GPU, in ns of one clock."""

    name: str
    start_ns: int
    end_ns: int


def profile_hosts(captured: Captured, rounds: int) -> dict[str, Any]:
    """Timelines of the forward under Python, C++ and graph, taken in turns.

    By host: `total_us` a round from the first start to the last end, `idle_us` in which nothing
    ran; for C++ and graph also `later_us`, for each kernel the median over rounds of the time from
    its predecessor's end to its own, and the kernels' `names`. Raises MeasureError where the
    profiler does not report the launches that were made.
    """
    hosts = captured.hosts()
    timelines: dict[str, list[list[Span]]] = {host: [] for host in (EAGER, CPP, GRAPH)}
    for _ in range(rounds):
        for host, found in timelines.items():
            found.append(_timeline(captured, hosts[host]))
    expected = len(captured.unrolled.nodes)
    names = [span.name for span in timelines[GRAPH][0]]
    for host in (CPP, GRAPH):
        for spans in timelines[host]:
            if len(spans) != expected or [span.name for span in spans] != names:
                raise MeasureError(
                    f"{captured.forward.model}: the profiler (CUPTI) reports {len(spans)} other "
                    f"nodes than the {expected} that were issued."
                )
    return {
        host: {
            "total_us": [(last_end(spans) - spans[0].start_ns) / 1000 for spans in found],
            "idle_us": [idle_ns(spans) / 1000 for spans in found],
            **(
                {
                    "later_us": medians([later_us(spans) for spans in found]),
                    "names": [span.name for span in found[0]],
                }
                if host != EAGER
                else {}
            ),
        }
        for host, found in timelines.items()
    }


def last_end(spans: list[Span]) -> int:
    """When the last of them ended."""
    return max(span.end_ns for span in spans)


def idle_ns(spans: list[Span]) -> int:
    """Time between the first start and the last end in which none of them ran."""
    idle, end = 0, spans[0].end_ns
    for span in spans[1:]:
        idle += max(0, span.start_ns - end)
        end = max(end, span.end_ns)
    return idle


def later_us(spans: list[Span]) -> list[float]:
    """For each, the time from its predecessor's end to its own; its own duration for the first.

    With PDL a kernel starts before its predecessor ends, so that durations overlap and cannot be
    added up; these times add up to the whole.
    """
    ends = [spans[0].start_ns, *(span.end_ns for span in spans)]
    return [(end - before) / 1000 for before, end in pairwise(ends)]


def medians(rows: list[list[float]]) -> list[float]:
    """The median of each column."""
    values: list[float] = torch.tensor(rows, dtype=torch.float64).quantile(0.5, dim=0).tolist()
    return values


def _timeline(captured: Captured, issue: Callable[[], Any]) -> list[Span]:
    """The spans of one run, the second in its session: the first launches that a session sees are
    slowed down by milliseconds."""
    stream = captured.stream
    with torch.cuda.stream(stream):
        captured.restore()
        stream.synchronize()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True
        ) as profiler:
            issue()
            captured.restore()
            stream.synchronize()
            issue()
            stream.synchronize()
    spans = [
        Span(event.name(), event.start_ns(), event.start_ns() + event.duration_ns())
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA and event.duration_ns() > 0
    ]
    return second_run(sorted(spans, key=lambda span: span.start_ns), len(captured.saved))


def second_run(spans: list[Span], between: int) -> list[Span]:
    """The second of two equal runs with `between` copies between them; raises MeasureError."""
    both = len(spans) - between
    if both <= 0 or both % 2:
        raise MeasureError(
            f"The profiler (CUPTI) reports {len(spans)} spans, which are not two equal "
            f"runs with {between} copies between them."
        )
    return spans[-(both // 2) :]
