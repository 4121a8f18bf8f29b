"""Documents about requests: what an agent sends, and how long an engine takes to answer."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict
from graphgain.traces.rules import FirstRequests, LastBlock, Outputs, Seen, Subagents

Tokens = Annotated[int, Field(ge=0)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Engine = Literal["kern", "vllm", "sglang"]


class SweepParameters(Strict):
    """How the requests of a sweep were sent."""

    model: str
    requests_per_length: Annotated[int, Field(ge=1)]
    warmup_requests: Annotated[int, Field(ge=0)]
    concurrency: Annotated[int, Field(ge=1)]
    output_tokens: Annotated[int, Field(ge=1)]


class TtftRow(Strict):
    """Time to first token of cold prefills of one length."""

    engine: Engine
    mode: str
    isl_tokens: Annotated[int, Field(ge=1)]
    ttft_ms: Quantity
    failed_requests: Annotated[int, Field(ge=0)] | None = None


class Ttft(Document):
    """`ttft`: p50 TTFT by engine, mode and prompt length."""

    experiment: Literal["ttft"]
    parameters: SweepParameters
    rows: Annotated[list[TtftRow], Field(min_length=1)]


class BreakdownRow(Strict):
    """What one request's time is made of; `ttft_traced_ms` includes the tracing."""

    isl_tokens: Annotated[int, Field(ge=1)]
    ttft_traced_ms: Quantity
    gpu_busy_ms: Quantity
    gpu_busy_percent: Percent
    launches_per_request: Annotated[int, Field(ge=1)]
    launch_interval_us: Quantity


class BreakdownParameters(Strict):
    """Which engine, in which mode, was traced."""

    model: str
    engine: Engine
    mode: str


class TtftBreakdown(Document):
    """`ttft_breakdown`: GPU-busy share, launches and launch interval of traced requests."""

    experiment: Literal["ttft_breakdown"]
    parameters: BreakdownParameters
    rows: Annotated[list[BreakdownRow], Field(min_length=1)]


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
