"""Documents that compare one forward under different hosts."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict

Host = Literal["eager", "cpp_eager", "graph"]


class ForwardParameters(Strict):
    """Which forward was run."""

    model: str
    engine: str
    tokens: Annotated[int, Field(ge=1)] | None = None


class DecodeRow(Strict):
    """One decode step under one host; `idle_us` is time in which the GPU clearly waits."""

    host: Host
    step_ms: Quantity
    idle_us: Quantity | None = None


class KernelSlowdown(Strict):
    """How much later a kernel ends under eager than under graph, by kind of launch."""

    pdl: bool
    slower_us: Quantity


class DecodeGraphGain(Document):
    """`decode_graph_gain`: one decode step, eager and as a graph, same kernels."""

    experiment: Literal["decode_graph_gain"]
    parameters: ForwardParameters
    rows: Annotated[list[DecodeRow], Field(min_length=1)]
    launches: Annotated[int, Field(ge=1)]
    pdl_launches: Annotated[int, Field(ge=0)]
    host_issue_ms: Quantity
    saved_us: Quantity | None = None
    per_kernel: list[KernelSlowdown] = []


class PrefillRow(Strict):
    """One prefill; the two `_printed` fields are the source's own arithmetic, kept as printed."""

    tokens: Annotated[int, Field(ge=1)]
    cached_tokens: Annotated[int, Field(ge=0)]
    graph_ms: Quantity
    eager_ms: Quantity
    cpp_eager_ms: Quantity | None = None
    host_issue_ms: Quantity
    saved_percent_printed: Finite | None = None
    per_call_us_printed: Finite | None = None


class PrefillGraphGain(Document):
    """`prefill_graph_gain`: short prefills, eager and as a graph."""

    experiment: Literal["prefill_graph_gain"]
    parameters: ForwardParameters
    calls_per_forward: Annotated[int, Field(ge=1)]
    rows: Annotated[list[PrefillRow], Field(min_length=1)]
