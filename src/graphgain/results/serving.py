"""Documents about requests: what an agent sends, and how long an engine takes to answer."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict
from graphgain.traces.rules import FirstRequests, LastBlock, Outputs, Seen, Subagents

Tokens = Annotated[int, Field(ge=0)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
EngineName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
"""An engine or one of its modes, as the files below config/engines name them."""


class SweepParameters(Strict):
    """How the requests of a sweep were sent.

    `weights` are `random` or the folder they come from; None where the source does not say.
    """

    model: str
    requests_per_length: Annotated[int, Field(ge=1)]
    warmup_requests: Annotated[int, Field(ge=0)]
    concurrency: Annotated[int, Field(ge=1)]
    output_tokens: Annotated[int, Field(ge=1)]
    weights: str | None = None
    prompts: str | None = None


class TtftRow(Strict):
    """Time to first token of cold prefills of one length."""

    engine: EngineName
    mode: EngineName
    isl_tokens: Annotated[int, Field(ge=1)]
    ttft_ms: Quantity
    failed_requests: Annotated[int, Field(ge=0)] | None = None


class EngineRun(Strict):
    """An engine in one mode: how it was started, and what it said of itself.

    `command` is null for a server that was running already. `settings` were read back from the
    server; what it did not tell is in `unavailable`, with the reason. `beside` names servers that
    were up at the same time, without requests. `card` is the hash of the GPU, where that is another
    one than machine.json describes.
    """

    engine: EngineName
    mode: EngineName
    label: str
    mode_label: str
    version: str | None
    command: list[str] | None
    environment: dict[str, str] = {}
    image: str | None = None
    image_digest: str | None = None
    settings: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    start_s: Annotated[float, Field(ge=0)] | None
    started_at: datetime
    ended_at: datetime
    beside: list[str] = []
    card: str | None = None
    notes: list[str] = []


class ClientCost(Strict):
    """What the client itself takes: its TTFT against a server that answers at once."""

    isl_tokens: Annotated[int, Field(ge=1)]
    ttft_ms: Quantity


class ClientCheck(Strict):
    """This client and another on one running server, by turns; `difference_ms` is ours less
    theirs, from the medians of each turn. The two `alone` are their TTFTs of a server that answers
    at once: what the clients themselves take."""

    engine: EngineName
    mode: EngineName
    isl_tokens: Annotated[int, Field(ge=1)]
    other: str
    ours_ms: Quantity
    other_ms: Quantity
    difference_ms: Quantity
    ours_alone_ms: Quantity | None = None
    other_alone_ms: Quantity | None = None


class Ttft(Document):
    """`ttft`: p50 TTFT by engine, mode and prompt length."""

    experiment: Literal["ttft"]
    parameters: SweepParameters
    rows: Annotated[list[TtftRow], Field(min_length=1)]
    engines: list[EngineRun] | None = None
    client_cost: list[ClientCost] | None = None
    client_check: list[ClientCheck] | None = None


class BreakdownRow(Strict):
    """What one request's time is made of; `ttft_traced_ms` includes the tracing, and
    `ttft_untraced_ms` is of requests sent in the same way just before. `ttft_ms` is the sweep's.

    `gpu_busy_ms` is the length of the union of kernels, copies and fills, and `gpu_busy_percent`
    its share of the time from the first launch to the end of the last operation. Launches are calls
    of the runtime or the driver, a graph's counting once; `kernels_in_graphs_per_request` of
    `kernels_per_request` came from graphs. `launch_interval_us` is the mean between the starts of
    neighbouring launches of the launching thread. While the GPU is idle between two operations, it
    waits for the host until the next one's launch begins (`waiting_for_host_ms`), and after that
    for nothing but its turn (`between_kernels_ms`).
    """

    isl_tokens: Annotated[int, Field(ge=1)]
    ttft_traced_ms: Quantity
    gpu_busy_ms: Quantity
    gpu_busy_percent: Percent
    launches_per_request: Annotated[int, Field(ge=1)]
    launch_interval_us: Quantity
    ttft_ms: Quantity | None = None
    ttft_untraced_ms: Quantity | None = None
    requests: Annotated[int, Field(ge=1)] | None = None
    graph_launches_per_request: Annotated[int, Field(ge=0)] | None = None
    kernels_per_request: Annotated[int, Field(ge=0)] | None = None
    kernels_in_graphs_per_request: Annotated[int, Field(ge=0)] | None = None
    launch_interval_median_us: Quantity | None = None
    waiting_for_host_ms: Quantity | None = None
    between_kernels_ms: Quantity | None = None
    before_first_launch_ms: Quantity | None = None
    after_last_operation_ms: Quantity | None = None


class BreakdownParameters(Strict):
    """Which engine, in which mode, was traced."""

    model: str
    engine: EngineName
    mode: EngineName


class BreakdownBeside(Strict):
    """The same of another engine or mode."""

    engine: EngineName
    mode: EngineName
    rows: Annotated[list[BreakdownRow], Field(min_length=1)]


class TtftBreakdown(Document):
    """`ttft_breakdown`: GPU-busy share, launches and launch interval of traced requests."""

    experiment: Literal["ttft_breakdown"]
    parameters: BreakdownParameters
    rows: Annotated[list[BreakdownRow], Field(min_length=1)]
    beside: list[BreakdownBeside] | None = None
    engines: list[EngineRun] | None = None


class TokenPercentile(Strict):
    """A percentile of the tokens to prefill per request."""

    percentile: Percent
    tokens: Quantity


class TokenShare(Strict):
    """Share of requests with at most `tokens` to prefill.

    `prefill_percent` is the share of all tokens to prefill that those requests have.
    """

    tokens: Tokens
    percent: Percent
    prefill_percent: Percent | None = None


class CountingRules(Strict):
    """What counted as cached; graphgain.traces.rules explains every value."""

    seen: Seen
    subagents: Subagents
    outputs: Outputs
    last_block: LastBlock
    first_requests: FirstRequests


class TraceFile(Strict):
    """One file that was counted; the hash is of its bytes as they lie, packed or not."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: Tokens


class WorkloadParameters(Strict):
    """Which trace, and its block size; for a counted one, how it was counted.

    `subagent_clock` says what the times of subagents count from, and whether that was given or
    found in the data.
    """

    dataset: str
    dataset_url: str
    block_tokens: Annotated[int, Field(ge=1)]
    licence: str | None = None
    formats: list[str] | None = None
    files: list[TraceFile] | None = None
    rules: CountingRules | None = None
    subagent_clock: str | None = None


class WorkloadTotals(Strict):
    """Sums over the requests counted."""

    conversations: Tokens
    requests: Tokens
    subagent_requests: Tokens
    input_tokens: Tokens
    cached_tokens: Tokens
    prefill_tokens: Tokens
    output_tokens: Tokens


class PrefillBin(Strict):
    """Requests with at most so many tokens to prefill, and more than the bin before."""

    at_most_tokens: Tokens
    requests: Annotated[int, Field(ge=1)]
    prefill_tokens: Tokens


class CachePoint(Strict):
    """The hit rate of a cache of one size that evicts the least recently used block."""

    cache_tokens: Tokens
    cache_hit_percent: Percent


class WorkloadVariant(Strict):
    """The same requests counted under other rules; `p50_tokens` and `mean_tokens` to prefill."""

    rules: CountingRules
    requests: Annotated[int, Field(ge=1)]
    cache_hit_percent: Percent
    p50_tokens: Finite
    mean_tokens: Finite
    at_most_4096_percent: Percent


class AgentWorkload(Document):
    """`agent_workload`: how much of an agent's input really needs prefill.

    A published one is a summary; one counted from a trace has the rest as well. `machine` is then
    the name of the folder, trace-…: a trace's numbers do not depend on the machine that counts.
    """

    experiment: Literal["agent_workload"]
    parameters: WorkloadParameters
    cache_hit_percent: Finite
    percentiles: Annotated[list[TokenPercentile], Field(min_length=1)]
    shares: Annotated[list[TokenShare], Field(min_length=1)]
    totals: WorkloadTotals | None = None
    distribution: list[PrefillBin] | None = None
    cache_curve: list[CachePoint] | None = None
    variants: list[WorkloadVariant] | None = None
    skipped: list[str] | None = None
