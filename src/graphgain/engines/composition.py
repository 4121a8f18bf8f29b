"""What a request's time is made of, from launches and operations of the GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from graphgain.engines.kineto import Floats, Integers, ProfileError, Trace
from graphgain.engines.points import by_request

CLEAR_GAP = 2.0
"""The shortest pause between two requests has to be this many times the longest gap within one."""

MOST_UNLIKE = 1.5
"""How many times the launches of the smallest request the largest may have."""


@dataclass(frozen=True)
class Composition:
    """One request. Times in ms, `interval_us` between the starts of neighbouring launches."""

    busy_ms: float
    span_ms: float
    launches: int
    graph_launches: int
    kernels: int
    kernels_in_graphs: int
    interval_us: float
    interval_median_us: float
    waiting_for_host_ms: float
    between_kernels_ms: float
    first_launch_us: float
    last_end_us: float

    @property
    def busy_percent(self) -> float:
        """The share of the span in which the GPU works."""
        return 100 * self.busy_ms / self.span_ms if self.span_ms else 100.0


def compose(
    trace: Trace, requests: int, spans_us: Sequence[tuple[float, float]] | None = None
) -> list[Composition]:
    """The composition of each of so many requests that were sent one by one with pauses.

    `spans_us` is when each was sent and when its first token came, in the trace's time. What was
    launched before that, but was not done by then, is left out: an engine may start the next token
    before it has sent the first. Without spans nothing is left out. Raises ProfileError where that
    many requests cannot be told apart.
    """
    clocked = spans_us and starts_by_clock(trace.launch_us, spans_us)
    bounds = [*(clocked or request_starts(trace.launch_us, requests)), np.inf]
    if not clocked:
        _check_alike(trace.launch_us, bounds)
    tokens = [token for _, token in spans_us] if clocked and spans_us else [np.inf] * requests
    return [
        _compose(trace, first, following, token)
        for (first, following), token in zip(pairwise(bounds), tokens, strict=True)
    ]


def starts_by_clock(
    launch_us: Floats, spans_us: Sequence[tuple[float, float]]
) -> list[float] | None:
    """The first launch after each request was sent; None where the clocks do not agree, which is
    when a request has no launch before its answer, or a launch came before the first request."""
    if len(launch_us) and launch_us[0] < spans_us[0][0]:
        return None
    starts = []
    for sent, answered in spans_us:
        index = int(np.searchsorted(launch_us, sent))
        if index == len(launch_us) or launch_us[index] > answered:
            return None
        starts.append(float(launch_us[index]))
    return starts


def request_starts(launch_us: Floats, requests: int) -> list[float]:
    """When the first launch of each request began: requests are parted by the longest gaps.

    Raises ProfileError where the gaps that part requests are not much longer than all others.
    """
    if not 1 <= requests <= len(launch_us):
        raise ProfileError(
            f"The trace has {len(launch_us)} launches, which cannot be {requests} requests."
        )
    gaps = np.diff(launch_us)
    if requests == 1:
        return [float(launch_us[0])]
    longest = np.argsort(gaps)[::-1]
    parting = np.sort(longest[: requests - 1])
    rest = gaps[longest[requests - 1 :]]
    if len(rest) and gaps[parting].min() < CLEAR_GAP * rest.max():
        raise ProfileError(
            f"{requests} requests cannot be told apart in the trace: the shortest pause between "
            f"two is {gaps[parting].min() / 1000:.1f} ms, the longest gap within one "
            f"{rest.max() / 1000:.1f} ms. Either there are not {requests}, or the pauses between "
            "them have to be longer."
        )
    return [float(launch_us[0]), *(float(launch_us[index + 1]) for index in parting)]


def _check_alike(launch_us: Floats, bounds: Sequence[float]) -> None:
    """Requests of one length make about as many launches; what was parted otherwise is none."""
    counts = np.diff(np.searchsorted(launch_us, bounds))
    if counts.max() > MOST_UNLIKE * counts.min():
        raise ProfileError(
            f"Parted into {len(counts)} requests, the smallest has {counts.min()} launches and the "
            f"largest {counts.max()}: there are not {len(counts)} requests in the trace."
        )


def _compose(trace: Trace, first: float, following: float, token: float) -> Composition:
    launched = (trace.launch_us >= first) & (trace.launch_us < following)
    late = trace.correlation[trace.end_us > token]
    launched &= ~np.isin(trace.launch_correlation, late)
    called = trace.launch_correlation[launched]
    inside = np.isin(trace.correlation, called)
    if not inside.any():
        raise ProfileError(
            "A request in the trace has no operation on the GPU that was done by its first token."
        )
    ours = launched & (trace.launch_thread == _launching_thread(trace.launch_thread[launched]))
    start, end = trace.start_us[inside], trace.end_us[inside]
    kernel = trace.kind[inside] == 0
    graphs = trace.launch_correlation[launched & trace.launch_graph]
    intervals = np.diff(trace.launch_us[ours])
    begun = trace.launch_us[launched][np.argsort(called)][
        np.searchsorted(np.sort(called), trace.correlation[inside])
    ]
    busy, waiting, between = occupation(start, end, begun)
    return Composition(
        busy_ms=busy / 1000,
        span_ms=(float(end.max()) - first) / 1000,
        launches=int(launched.sum()),
        graph_launches=int((launched & trace.launch_graph).sum()),
        kernels=int(kernel.sum()),
        kernels_in_graphs=int((kernel & np.isin(trace.correlation[inside], graphs)).sum()),
        interval_us=float(intervals.mean()) if len(intervals) else 0.0,
        interval_median_us=float(np.median(intervals)) if len(intervals) else 0.0,
        waiting_for_host_ms=waiting / 1000,
        between_kernels_ms=between / 1000,
        first_launch_us=first,
        last_end_us=float(end.max()),
    )


def occupation(start: Floats, end: Floats, launched: Floats) -> tuple[float, float, float]:
    """Time in which operations (sorted by start) run, wait for their launch, and wait for nothing.

    An idle stretch before an operation counts as waiting for the host as long as the operation's
    own launch had not begun, and as between kernels after that. All in the unit of the arguments.
    """
    done = np.maximum.accumulate(end)
    busy = float(end[0] - start[0])
    waiting = between = 0.0
    for index in range(1, len(start)):
        idle_from, idle_to = float(done[index - 1]), float(start[index])
        busy += max(0.0, float(end[index]) - max(idle_from, idle_to))
        if idle_to > idle_from:
            host = min(max(float(launched[index]) - idle_from, 0.0), idle_to - idle_from)
            waiting += host
            between += idle_to - idle_from - host
    return busy, waiting, between


def breakdown_row(
    isl_tokens: int,
    found: Sequence[Composition],
    traced_ms: Sequence[float],
    untraced_ms: Sequence[float],
    swept: dict[str, Any] | None,
    around_ms: Sequence[tuple[float, float]] | None,
) -> dict[str, Any]:
    """The row of a `ttft_breakdown` document for the requests of one length.

    `untraced_ms`: of requests sent like the traced ones. `swept`: the length's Quantity in the
    sweep. `around_ms`: of each request the time before its first launch and after its last
    operation.
    """

    def of(values: Sequence[float]) -> dict[str, Any]:
        return by_request(values, keep_samples=False)

    def count(values: Sequence[int]) -> int:
        return round(float(np.median(values)))

    row = {
        "isl_tokens": isl_tokens,
        "ttft_traced_ms": of(list(traced_ms)),
        "ttft_untraced_ms": of(list(untraced_ms)),
        "gpu_busy_ms": of([one.busy_ms for one in found]),
        "gpu_busy_percent": round(float(np.median([one.busy_percent for one in found])), 2),
        "launches_per_request": count([one.launches for one in found]),
        "launch_interval_us": of([one.interval_us for one in found]),
        "requests": len(found),
        "graph_launches_per_request": count([one.graph_launches for one in found]),
        "kernels_per_request": count([one.kernels for one in found]),
        "kernels_in_graphs_per_request": count([one.kernels_in_graphs for one in found]),
        "launch_interval_median_us": of([one.interval_median_us for one in found]),
        "waiting_for_host_ms": of([one.waiting_for_host_ms for one in found]),
        "between_kernels_ms": of([one.between_kernels_ms for one in found]),
    }
    if swept:
        row["ttft_ms"] = swept
    if around_ms:
        row["before_first_launch_ms"] = of([before for before, _ in around_ms])
        row["after_last_operation_ms"] = of([after for _, after in around_ms])
    return row


def _launching_thread(threads: Integers) -> int:
    """The thread with most launches."""
    values, counts = np.unique(threads, return_counts=True)
    return int(values[np.argmax(counts)])
