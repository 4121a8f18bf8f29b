"""Documents about requests: what an agent sends, and how long an engine takes to answer."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict

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
    """Share of requests with at most `tokens` to prefill."""

    tokens: Tokens
    percent: Percent


class WorkloadParameters(Strict):
    """Which trace, and its block size."""

    dataset: str
    dataset_url: str
    block_tokens: Annotated[int, Field(ge=1)]


class AgentWorkload(Document):
    """`agent_workload`: how much of an agent's input really needs prefill."""

    experiment: Literal["agent_workload"]
    parameters: WorkloadParameters
    cache_hit_percent: Finite
    percentiles: Annotated[list[TokenPercentile], Field(min_length=1)]
    shares: Annotated[list[TokenShare], Field(min_length=1)]
