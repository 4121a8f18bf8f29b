"""The article's claims, each with a way to compute it again from result documents.

A claim names the statements that the article prints for it. `recompute` looks at one machine's
documents and says what they give; None where they cannot tell. `agrees` is the judgement on that
machine's own numbers: for a printed number, whether it is the same within the precision in which it
and its sources are printed; for a comparison, whether it holds.

Some claims can be tested on another machine, too. `elsewhere` does that by a rule of its own, as a
number that was printed for one machine need not come out on another.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from graphgain import text
from graphgain.results.article import Statement, Statements
from graphgain.results.document import Document
from graphgain.results.forwards import (
    DecodeGraphGain,
    DecodeRow,
    PrefillGraphGain,
    PrefillRow,
)
from graphgain.results.launches import FfiLaunch, GemmHostCost, Handoff, LaunchFloor, LaunchPaths
from graphgain.results.serving import Ttft, TtftBreakdown
from graphgain.results.threads import Gil, GilRow

Verdict = Literal["agrees", "differs", "not checkable"]
D = TypeVar("D", bound=Document)

SHORT_TOKENS = 4096
"""The bound below which the article calls a prefill short."""


@dataclass(frozen=True)
class Evidence:
    """The documents of one machine."""

    documents: tuple[Document, ...]

    def get(self, model: type[D]) -> D | None:
        """The machine's document of one kind."""
        return next((found for found in self.documents if isinstance(found, model)), None)

    def said(self, name: str) -> Statement | None:
        """One printed statement, where this machine has the article's statements."""
        document = self.get(Statements)
        rows = document.rows if document else []
        return next((row for row in rows if row.name == name), None)


@dataclass(frozen=True)
class Finding:
    """What documents give for a claim, and whether that is what was claimed (None: cannot tell)."""

    text: str
    agrees: bool | None


Recompute = Callable[[Evidence], Finding | None]
Elsewhere = Callable[[Evidence, Evidence], Finding | None]
"""From the article's evidence and that of another machine."""


@dataclass(frozen=True)
class Claim:
    """One claim in our words; `said` are the names of the statements that print its numbers."""

    name: str
    text: str
    said: tuple[str, ...]
    recompute: Recompute
    elsewhere: Elsewhere | None = None


def verdict(finding: Finding | None) -> Verdict:
    """The verdict on a claim from what was found."""
    if finding is None or finding.agrees is None:
        return "not checkable"
    return "agrees" if finding.agrees else "differs"


def half_digit(printed: str) -> float:
    """Half a unit of the last digit of a printed number: 0.05 for 2.5, 0.5 for 74, 50 for 1.6k."""
    number, thousand = (printed[:-1], 1000) if printed.endswith("k") else (printed, 1)
    return 0.5 * 10.0 ** -len(number.partition(".")[2]) * thousand


def same(statement: Statement, low: float, high: float | None = None, slack: float = 0) -> bool:
    """Whether a printed number or range covers what was computed, within its last digit.

    `slack` is what the rounding of the sources adds. A computed range has to fit at both ends.
    """
    high = low if high is None else high
    room = half_digit(statement.printed.replace("-", "–").split("–")[-1]) + slack + 1e-9
    quantity = statement.quantity
    least = quantity.value if quantity.low is None else quantity.low
    most = quantity.value if quantity.high is None else quantity.high
    return least - room <= low and high <= most + room


def _said(evidence: Evidence, *names: str) -> tuple[Statement, ...] | None:
    found = [evidence.said(name) for name in names]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(names) else None


def _unknown(_: Evidence) -> None:
    """The published data hold nothing to compute the claim from."""
    return None


def _printed_alike(first: str, second: str) -> Recompute:
    """One number printed in two places: the coarser has to be the finer one, rounded."""

    def recompute(evidence: Evidence) -> Finding | None:
        said = _said(evidence, first, second)
        if said is None:
            return None
        one, two = said
        room = max(half_digit(one.printed), half_digit(two.printed))
        alike = abs(one.quantity.value - two.quantity.value) <= room + 1e-9
        return Finding(f"{one.printed} and {two.printed} in two places", alike)

    return recompute


def _launch_floor(evidence: Evidence) -> Finding | None:
    document = evidence.get(LaunchFloor)
    cost = {
        row.path: row.host_us.value
        for row in (document.rows if document else [])
        if row.launches == 512 and row.arguments == 0 and not row.past_queue
    }
    if not {"driver", "runtime", "graph"} <= set(cost):
        return None
    least, most = sorted((cost["driver"], cost["runtime"]))
    times = least / cost["graph"]
    # "Microseconds": one digit before the point. "Hundreds of times": at least one hundred.
    return Finding(
        f"{_us_span(least, most, 2)}; in a graph {times:,.0f} times less",
        most < 10 and times >= 100,
    )


def _eager_step(document: DecodeGraphGain) -> DecodeRow | None:
    """The step launched kernel by kernel as the article's host does it: by C++ where that was
    measured, else by the engine's own eager mode, which is C++ in the article."""
    steps = {row.host: row for row in document.rows}
    return steps.get("cpp_eager") or steps.get("eager")


def _eager_prefill_ms(row: PrefillRow) -> float:
    """The prefill launched kernel by kernel, by the same host as in `_eager_step`."""
    return (row.cpp_eager_ms or row.eager_ms).value


def _issue_per_kernel(evidence: Evidence) -> Finding | None:
    document = evidence.get(DecodeGraphGain)
    if document is None:
        return None
    each_us = 1000 * document.host_issue_ms.value / document.launches
    said = evidence.said("decode_host_per_kernel_us")
    return Finding(_us(each_us, 2), said is None or same(said, each_us))


def _host_ahead_in_decode(evidence: Evidence) -> Finding | None:
    document = evidence.get(DecodeGraphGain)
    eager = _eager_step(document) if document else None
    if document is None or eager is None:
        return None
    host_ms, step_ms = document.host_issue_ms.value, eager.step_ms.value
    return Finding(
        f"host {text.number(host_ms, 2)} of {_ms(step_ms, 2)}: {100 * host_ms / step_ms:.0f}%",
        host_ms < step_ms,
    )


def _gemm_one_kernel(evidence: Evidence) -> Finding | None:
    document = evidence.get(GemmHostCost)
    costs = (
        [row.host_us.value for row in document.rows if row.kernels_per_call == 1]
        if document
        else []
    )
    if not costs:
        return None
    said = evidence.said("gemm_one_kernel_us")
    return Finding(
        _us_span(min(costs), max(costs), 2), said is None or same(said, min(costs), max(costs))
    )


def _gemm_split_sum(evidence: Evidence) -> Finding | None:
    document = evidence.get(GemmHostCost)
    if document is None or not document.split:
        return None
    total = sum(part.host_us.value for part in document.split)
    costs = [row.host_us.value for row in document.rows if row.kernels_per_call == 1]
    names = (
        "gemm_algorithm_choice_us",
        "gemm_driver_queries_us",
        "gemm_library_code_us",
        "gemm_launch_us",
    )
    room = sum(half_digit(one.printed) for one in _said(evidence, *names) or ())
    return Finding(
        f"parts add up to {_us(total, 1)}, calls take {_us_span(min(costs), max(costs), 2)}",
        min(costs) - room <= total <= max(costs) + room,
    )


def _gemm_second_kernel(evidence: Evidence) -> Finding | None:
    document = evidence.get(GemmHostCost)
    if document is None:
        return None
    cost = {
        kernels: [row.host_us.value for row in document.rows if row.kernels_per_call == kernels]
        for kernels in (1, 2)
    }
    if not cost[1] or not cost[2]:
        return None
    extra = sum(cost[2]) / len(cost[2]) - sum(cost[1]) / len(cost[1])
    launch = next((p.host_us.value for p in document.split if p.part == "launch"), None)
    if launch is None:
        return Finding(f"{_us(extra, 2)} more", extra > 0)
    said = _said(evidence, "gemm_split_k_us", "gemm_one_kernel_reference_us")
    room = sum(half_digit(one.printed) for one in said or ())
    return Finding(
        f"{_us(extra, 2)} more on average; a launch is {_us(launch, 1)}",
        abs(extra - launch) <= room,
    )


def _gemm_pdl(_: Evidence, other: Evidence) -> Finding | None:
    document = other.get(GemmHostCost)
    calls = [row.kernels for row in document.rows if row.kernels] if document else []
    if not calls:
        return None
    first = [kernels[0].pdl for kernels in calls]
    later = [kernel.pdl for kernels in calls for kernel in kernels[1:]]
    return Finding(
        f"{sum(first)} of {len(first)} calls' first kernels, {sum(later)} of {len(later)} others",
        all(first) and all(later),
    )


def _gemm_kernels(evidence: Evidence) -> Finding | None:
    document, step = evidence.get(GemmHostCost), evidence.get(DecodeGraphGain)
    if document is None or step is None:
        return None
    kernels = sum(row.calls_per_step * row.kernels_per_call for row in document.rows)
    calls = sum(row.calls_per_step for row in document.rows)
    # The GEMMs are only a part, so more kernels than the whole would refute; fewer prove nothing.
    refuted = kernels > step.launches
    return Finding(
        f"{calls} GEMM calls issue {kernels} of {step.launches}", False if refuted else None
    )


def _graph_saves(evidence: Evidence) -> Finding | None:
    document = evidence.get(DecodeGraphGain)
    eager = _eager_step(document) if document else None
    graph = next((row for row in document.rows if row.host == "graph"), None) if document else None
    if eager is None or graph is None:
        return None
    saved_us = 1000 * (eager.step_ms.value - graph.step_ms.value)
    said = evidence.said("bubble_saved_us")
    # Both step times are printed to 0.01 ms, so their difference is good to 10 µs.
    return Finding(_us(saved_us, 0), said is None or same(said, saved_us, slack=10))


def _handoff_each(evidence: Evidence) -> Finding | None:
    document = evidence.get(DecodeGraphGain)
    if document is None or document.saved_us is None:
        return None
    each_us = document.saved_us.value / document.launches
    said = evidence.said("tldr_handoff_saved_us")
    return Finding(f"{_us(each_us, 2)} a kernel on average", said is None or same(said, each_us))


def _handoff_measured(article: Evidence, other: Evidence) -> Finding | None:
    document, said = other.get(Handoff), article.said("tldr_handoff_saved_us")
    if document is None or said is None or said.quantity.low is None or said.quantity.high is None:
        return None
    # A kernel of length zero has no work that its successor could be brought up behind.
    saved = {
        pdl: [row.saved_us.value for row in document.rows if row.pdl == pdl and row.kernel_us]
        for pdl in (True, False)
    }
    if not saved[True] or not saved[False]:
        return None
    every = saved[True] + saved[False]
    # Many kernels against those of one step: the step's range has to lie within theirs.
    return Finding(
        f"{_us_span(min(saved[True]), max(saved[True]), 2)} with PDL, "
        f"{_us_span(min(saved[False]), max(saved[False]), 2)} without",
        0 < min(every) <= said.quantity.low and said.quantity.high <= max(every),
    )


def _handoff_sum(evidence: Evidence) -> Finding | None:
    document = evidence.get(DecodeGraphGain)
    slower = {row.pdl: row.slower_us for row in document.per_kernel} if document else {}
    if document is None or set(slower) != {True, False}:
        return None
    plain = document.launches - document.pdl_launches
    ends = []
    for end in ("low", "high"):
        each = {pdl: getattr(q, end) or q.value for pdl, q in slower.items()}
        ends.append(document.pdl_launches * each[True] + plain * each[False])
    said = evidence.said("bubble_summed_us")
    return Finding(
        _us_span(ends[0], ends[1], 0), said is None or ends[0] <= said.quantity.value <= ends[1]
    )


def _product(kernels: str, each_us: str, total_ms: str) -> Recompute:
    """The article multiplies two of its own numbers."""

    def recompute(evidence: Evidence) -> Finding | None:
        said = _said(evidence, kernels, each_us, total_ms)
        if said is None:
            return None
        count, each, total = said
        product_ms = count.quantity.value * each.quantity.value / 1000
        return Finding(_ms(product_ms, 1), same(total, product_ms))

    return recompute


def _prefill_saved(evidence: Evidence) -> Finding | None:
    document = evidence.get(PrefillGraphGain)
    if document is None:
        return None
    saved = [
        # Measured machines compare launch by launch and graph in pairs, which is less noisy.
        1000 * (row.saved_ms.value if row.saved_ms else row.eager_ms.value - row.graph_ms.value)
        for row in document.rows
    ]
    # "A few hundred": three digits of microseconds.
    return Finding(_us_span(min(saved), max(saved), 0), min(saved) >= 100 and max(saved) < 1000)


def _prefill_columns(evidence: Evidence) -> Finding | None:
    document = evidence.get(PrefillGraphGain)
    rows = document.rows if document else []
    if document is None or any(row.per_call_us_printed is None for row in rows):
        return None
    good = 0
    for row in rows:
        saved_ms = row.eager_ms.value - row.graph_ms.value
        percent = 100 * saved_ms / row.eager_ms.value
        each_us = 1000 * saved_ms / document.calls_per_forward
        # Both columns have a last digit, and the two times are printed to 0.01 ms.
        percent_room = 0.05 + 100 * 0.01 / row.eager_ms.value
        each_room = 0.005 + 10 / document.calls_per_forward
        good += (
            row.saved_percent_printed is not None
            and row.per_call_us_printed is not None
            and abs(percent - row.saved_percent_printed) <= percent_room
            and abs(each_us - row.per_call_us_printed) <= each_room
        )
    return Finding(f"{good} of {len(rows)} rows come out as printed", good == len(rows))


def _host_ahead_in_prefill(evidence: Evidence) -> Finding | None:
    document = evidence.get(PrefillGraphGain)
    if document is None:
        return None
    shares = [100 * row.host_issue_ms.value / _eager_prefill_ms(row) for row in document.rows]
    return Finding(
        f"host time is {text.span(min(shares), max(shares))}% of the forward's", max(shares) < 100
    )


def _waiting(evidence: Evidence) -> list[float]:
    """Launches that still wait when the host is done, by prefill, most first."""
    document = evidence.get(PrefillGraphGain)
    if document is None:
        return []
    waiting = []
    for row in document.rows:
        # The issue of the run that was timed, which a full queue may have held back.
        issue_ms = (row.cpp_issue_ms or row.host_issue_ms).value
        launches = row.launches or document.calls_per_forward
        waiting.append(launches * (1 - issue_ms / _eager_prefill_ms(row)))
    return sorted(waiting, reverse=True)


def _queue_ceiling(evidence: Evidence) -> Finding | None:
    waiting = _waiting(evidence)
    if len(waiting) < 2:
        return None
    most, next_most = waiting[:2]
    return Finding(
        f"{most:,.0f} and {next_most:,.0f} launches wait at the end of two prefills",
        next_most > 0.99 * most,
    )


def _queue_depth(article: Evidence, other: Evidence) -> Finding | None:
    document, waiting = other.get(LaunchFloor), _waiting(article)
    if document is None or document.outstanding_launches is None or not waiting:
        return None
    depth = document.outstanding_launches.value
    return Finding(
        f"{depth:,.0f} launches return before one blocks", abs(depth / waiting[0] - 1) < 0.1
    )


def _ffi_extra(evidence: Evidence) -> Finding | None:
    document = evidence.get(FfiLaunch)
    cost = {row.path: row.host_us.value for row in document.rows} if document else {}
    if not {"python_tvm_ffi", "cpp_loop"} <= set(cost):
        return None
    extra = cost["python_tvm_ffi"] - cost["cpp_loop"]
    said = evidence.said("ffi_extra_us")
    return Finding(_us(extra, 3), said is None or same(said, extra))


def _ffi_tensors(evidence: Evidence) -> Finding | None:
    launch, paths = evidence.get(FfiLaunch), evidence.get(LaunchPaths)
    if launch is None or paths is None:
        return None
    bare = next((row.host_us.value for row in launch.rows if row.path == "python_tvm_ffi"), None)
    call = next((row.host_us for row in paths.rows if row.path == "tvm_ffi"), None)
    if bare is None or call is None:
        return None
    ends = [(call.value if end is None else end) - bare for end in (call.low, call.high)]
    # Another kernel and three tensors, so this neither confirms nor refutes.
    return Finding(f"an add of three tensors takes {_us_span(ends[0], ends[1], 2)} more", None)


def _worst_path(evidence: Evidence) -> Finding | None:
    paths, step = evidence.get(LaunchPaths), evidence.get(DecodeGraphGain)
    measured = [row.host_us for row in paths.rows if row.host_us is not None] if paths else []
    if not measured or step is None:
        return None
    worst = max(measured, key=lambda quantity: quantity.value)
    ends = [
        step.launches * (worst.value if end is None else end) / 1000
        for end in (worst.low, worst.high)
    ]
    said = evidence.said("paths_issue_ms")
    eager = _eager_step(step)
    slower = "" if eager is None else f" of the step's {_ms(eager.step_ms.value, 2)}"
    return Finding(
        f"{text.with_unit(text.span(ends[0], ends[1], 2), 'ms')}{slower}",
        said is None or same(said, sum(ends) / 2),
    )


def _mode_ms(row: GilRow) -> float:
    return (row.interruption_mode_us or 0.0) / 1000


def _gil_cut_in(_: Evidence, other: Evidence) -> Finding | None:
    document = other.get(Gil)
    row = next(
        (
            row
            for row in (document.rows if document else [])
            if (row.background, row.background_threads, row.gil) == ("compute", 1, "released")
        ),
        None,
    )
    if document is None or row is None:
        return None
    # The first such row is of the usual call and the default switch interval.
    return Finding(
        f"beside one computing thread {row.share_interrupted_percent:.0f}% of the intervals are "
        f"interruptions, most of {text.with_unit(text.number(_mode_ms(row), 1), 'ms')}",
        row.share_interrupted_percent > 50
        and _mode_ms(row) >= document.parameters.switch_interval_ms,
    )


def _curves(evidence: Evidence) -> dict[tuple[str, str], dict[int, float]]:
    document = evidence.get(Ttft)
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for row in document.rows if document else []:
        curves.setdefault((row.engine, row.mode), {})[row.isl_tokens] = row.ttft_ms.value
    return curves


def _kern_first(evidence: Evidence) -> Finding | None:
    curves = _curves(evidence)
    kern = curves.pop(("kern", "default"), {})
    short = [isl for isl in kern if isl <= SHORT_TOKENS]
    if not short or not curves:
        return None
    first = sum(all(kern[isl] < curve[isl] for curve in curves.values()) for isl in short)
    return Finding(f"first at {first} of {len(short)} lengths", first == len(short))


def _graph_off(evidence: Evidence) -> Finding | None:
    curves = _curves(evidence)
    on, off = curves.get(("sglang", "breakable")), curves.get(("sglang", "no-prefill-graph"))
    if not on or not off:
        return None
    isl = min(set(on) & set(off))
    return Finding(
        f"{text.number(on[isl], 1)} → {_ms(off[isl], 1)} at {isl} tokens", off[isl] > on[isl]
    )


def _composition(evidence: Evidence) -> TtftBreakdown | None:
    """The composition of SGLang without its graph, which is what the article's claims are about."""
    document = evidence.get(TtftBreakdown)
    if document is None or document.parameters.engine != "sglang":
        return None
    return document if document.parameters.mode == "no-prefill-graph" else None


def _sglang_interval(name: str) -> Recompute:
    """A printed interval of SGLang against the composition table's rows up to 3k tokens."""

    def recompute(evidence: Evidence) -> Finding | None:
        document = _composition(evidence)
        rows = [row for row in document.rows if row.isl_tokens <= 3072] if document else []
        if not rows:
            return None
        values = [row.launch_interval_us.value for row in rows]
        said = evidence.said(name)
        agrees = said is None or same(said, min(values), max(values))
        return Finding(_us_span(min(values), max(values), 1), agrees)

    return recompute


def _interval_is_ttft_over_launches(evidence: Evidence) -> Finding | None:
    document = _composition(evidence)
    if document is None:
        return None
    off = [
        abs(
            1000 * row.ttft_traced_ms.value / row.launches_per_request
            - row.launch_interval_us.value
        )
        / row.launch_interval_us.value
        for row in document.rows
    ]
    return Finding(f"within {100 * max(off):.1f}% in all rows", max(off) < 0.01)


def _busy_below(evidence: Evidence) -> Finding | None:
    document = _composition(evidence)
    rows = [row for row in document.rows if row.isl_tokens < 3072] if document else []
    if not rows:
        return None
    shares = [row.gpu_busy_percent for row in rows]
    said = evidence.said("tldr_gpu_busy_percent")
    return Finding(
        f"{text.span(min(shares), max(shares))}%",
        said is None or same(said, min(shares), max(shares)),
    )


def _ttft_model(evidence: Evidence) -> Finding | None:
    document = _composition(evidence)
    rows = document.rows if document else []
    host = [row.ttft_traced_ms.value for row in rows if row.gpu_busy_percent < 95]
    rest = [
        row.ttft_traced_ms.value - row.gpu_busy_ms.value
        for row in rows
        if row.gpu_busy_percent >= 95
    ]
    if not host or not rest:
        return None
    # The model holds if the host's part is flat and what the GPU leaves over is small and steady.
    flat = max(host) < 1.05 * min(host)
    return Finding(
        f"{'flat' if flat else 'not flat,'} at {text.span(min(host), max(host), 1)} ms, then GPU "
        f"time plus {text.with_unit(text.span(min(rest), max(rest), 1), 'ms')}",
        flat and max(rest) - min(rest) < 0.05 * min(host),
    )


def _tracing(evidence: Evidence) -> Finding | None:
    document = _composition(evidence)
    if document is None:
        return None
    sweep = _curves(evidence).get((document.parameters.engine, document.parameters.mode), {})
    row = min(document.rows, key=lambda row: row.isl_tokens)
    if row.isl_tokens not in sweep:
        return None
    traced, untraced = row.ttft_traced_ms.value, sweep[row.isl_tokens]
    return Finding(
        f"{text.number(traced, 1)} and {_ms(untraced, 2)} at {row.isl_tokens} tokens",
        abs(traced / untraced - 1) < 0.05,
    )


def _us(value: float, digits: int) -> str:
    return text.with_unit(text.number(value, digits), "µs")


def _us_span(low: float, high: float, digits: int) -> str:
    return text.with_unit(text.span(low, high, digits), "µs")


def _ms(value: float, digits: int) -> str:
    return text.with_unit(text.number(value, digits), "ms")


CLAIMS = (
    Claim(
        "cache_hits",
        "Share of an agent's input that a prefix cache holds",
        ("tldr_cache_hit_percent",),
        _unknown,
    ),
    Claim(
        "prefill_median",
        "Tokens that the median request has left to prefill",
        ("agentx_prefill_tokens_p50",),
        _unknown,
    ),
    Claim(
        "short_share",
        "Share of requests with at most 4k tokens to prefill",
        ("tldr_short_prefill_percent", "agentx_short_prefill_percent"),
        _printed_alike("tldr_short_prefill_percent", "agentx_short_prefill_percent"),
    ),
    Claim(
        "decode_launches",
        "Kernels in one decode step, and those of them launched with PDL",
        ("decode_launches", "bubble_pdl_launches"),
        _gemm_kernels,
    ),
    Claim(
        "launch_floor",
        "Launching an empty kernel takes the host microseconds, in a graph hundreds of times less",
        (),
        _launch_floor,
        lambda _, other: _launch_floor(other),
    ),
    Claim(
        "issue_per_kernel",
        "Host time for one kernel of the decode step",
        ("decode_host_per_kernel_us",),
        _issue_per_kernel,
    ),
    Claim(
        "host_ahead_decode",
        "The host issues a decode step faster than the GPU executes it",
        ("decode_host_issue_ms", "bubble_eager_ms"),
        _host_ahead_in_decode,
    ),
    Claim(
        "gemm_one_kernel",
        "Host time of a cuBLAS call that issues one kernel",
        ("gemm_one_kernel_us",),
        _gemm_one_kernel,
    ),
    Claim(
        "gemm_split",
        "The four parts of that time",
        (
            "gemm_algorithm_choice_us",
            "gemm_driver_queries_us",
            "gemm_library_code_us",
            "gemm_launch_us",
        ),
        _gemm_split_sum,
    ),
    Claim(
        "gemm_second_kernel",
        "A GEMM that splits k costs the host one launch more",
        ("gemm_split_k_us", "gemm_one_kernel_reference_us"),
        _gemm_second_kernel,
    ),
    Claim(
        "gemm_pdl",
        "cuBLAS launches its kernels with PDL by default",
        (),
        _unknown,
        _gemm_pdl,
    ),
    Claim(
        "graph_saves",
        "What the graph saves in a decode step",
        ("bubble_saved_us",),
        _graph_saves,
    ),
    Claim(
        "handoff_each",
        "What the graph saves in one hand-over between kernels",
        ("tldr_handoff_saved_us",),
        _handoff_each,
        _handoff_measured,
    ),
    Claim(
        "handoff_sum",
        "The slower kernels add up to the graph's gain",
        ("bubble_summed_us", "bubble_slower_us", "bubble_slower_without_pdl_us"),
        _handoff_sum,
    ),
    Claim(
        "unfused_gain",
        "What the graph would save with little fusion",
        ("bubble_unfused_launches", "bubble_unfused_per_kernel_us", "bubble_unfused_saved_ms"),
        _product(
            "bubble_unfused_launches", "bubble_unfused_per_kernel_us", "bubble_unfused_saved_ms"
        ),
    ),
    Claim(
        "prefill_saved",
        "A graph saves a short prefill only a few hundred microseconds",
        (),
        _prefill_saved,
    ),
    Claim(
        "prefill_columns",
        "Saved share and saving per call follow from the two times",
        (),
        _prefill_columns,
    ),
    Claim(
        "host_ahead_prefill",
        "The host stays ahead of the GPU in short prefills of Kern",
        (),
        _host_ahead_in_prefill,
    ),
    Claim(
        "queue_depth",
        "Launches wait in a queue of about a thousand (our reading of the prefills)",
        (),
        _queue_ceiling,
        _queue_depth,
    ),
    Claim(
        "ffi_extra",
        "What tvm-ffi adds to a launch from C++",
        ("ffi_extra_us",),
        _ffi_extra,
    ),
    Claim(
        "ffi_tensors",
        "What tensor arguments add to that",
        ("ffi_tensor_arguments_extra_us",),
        _ffi_tensors,
    ),
    Claim(
        "worst_path",
        "Issuing a decode step through the slowest way from Python",
        ("paths_issue_ms", "paths_decode_forward_ms"),
        _worst_path,
    ),
    Claim(
        "worst_path_unfused",
        "The same with little fusion",
        ("paths_unfused_launches", "paths_worst_us", "paths_unfused_issue_ms"),
        _product("paths_unfused_launches", "paths_worst_us", "paths_unfused_issue_ms"),
    ),
    Claim(
        "gil_cut_in",
        "A thread that often releases the GIL is cut in on",
        ("gil_wait_ms",),
        _unknown,
        _gil_cut_in,
    ),
    Claim(
        "kern_first",
        "Kern has the lowest TTFT up to 4k tokens, whatever graphs the others use",
        ("sweep_kern_fastest_tokens",),
        _kern_first,
    ),
    Claim(
        "graph_off",
        "Without its prefill graph SGLang's TTFT of short prompts rises",
        (),
        _graph_off,
    ),
    Claim(
        "busy_below",
        "Below 3k tokens SGLang's GPU is idle much of the time",
        ("tldr_gpu_busy_percent",),
        _busy_below,
    ),
    Claim(
        "interval_summary",
        "SGLang's interval between launches, in the summary",
        ("tldr_sglang_launch_interval_us",),
        _sglang_interval("tldr_sglang_launch_interval_us"),
    ),
    Claim(
        "interval_text",
        "SGLang's interval between launches, in the text",
        ("breakdown_launch_overhead_us",),
        _sglang_interval("breakdown_launch_overhead_us"),
    ),
    Claim(
        "interval_kern",
        "Kern's interval between launches",
        ("tldr_kern_launch_interval_us", "kern_prefill_launch_interval_us"),
        _printed_alike("tldr_kern_launch_interval_us", "kern_prefill_launch_interval_us"),
    ),
    Claim(
        "interval_definition",
        "The table's interval is its TTFT over its launches",
        (),
        _interval_is_ttft_over_launches,
    ),
    Claim(
        "ttft_model",
        "TTFT is a fixed overhead plus the slower of host and GPU",
        (),
        _ttft_model,
    ),
    Claim(
        "tracing",
        "The composition table's TTFT is the sweep's",
        (),
        _tracing,
    ),
)
"""In the order of the article."""


def statements_of(claims: Iterable[Claim]) -> set[str]:
    """Names of all statements that the claims refer to."""
    return {name for claim in claims for name in claim.said}
