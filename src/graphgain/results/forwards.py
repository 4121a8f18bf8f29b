"""Documents that compare one forward under different hosts."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict

Host = Literal["eager", "cpp_eager", "cpp_eager_no_pdl", "graph"]
"""`eager`: the engine's own host, launching kernel by kernel. `cpp_eager`: the same kernels issued
by a C++ loop. `graph`: replayed as one graph."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class ForwardParameters(Strict):
    """Which forward was run, and how often; `tokens` new ones after `cached_tokens`."""

    model: str
    engine: str
    tokens: Positive | None = None
    cached_tokens: Count | None = None
    layers: Positive | None = None
    weights: str | None = None
    rounds: Positive | None = None
    warmup_rounds: Count | None = None
    process_runs: Positive | None = None
    profiled_rounds: Count | None = None


class DecodeRow(Strict):
    """One decode step under one host; `idle_us` is time in which the GPU clearly waits.

    `step_ms` is the time until all is done, `gpu_ms` that between two events on the GPU around it,
    `issue_ms` the host's until it has issued everything, which a full launch queue can hold back.
    `idle_us` and `profiled_ms` are from a profiled run, which takes longer.
    """

    host: Host
    step_ms: Quantity
    idle_us: Quantity | None = None
    gpu_ms: Quantity | None = None
    issue_ms: Quantity | None = None
    profiled_ms: Quantity | None = None


class KernelSlowdown(Strict):
    """How much later a kernel ends under eager than under graph, by kind of launch.

    Where it was measured, quartiles over the `n` launches; `total_us` is the sum over all of them.
    """

    pdl: bool
    slower_us: Quantity
    total_us: Finite | None = None


class KernelMix(Strict):
    """How often a kernel is launched, and from predecessor's end to own end what its launches take
    together in C++ eager and in the graph."""

    name: str
    launches: Positive
    pdl_launches: Count
    cpp_eager_us: Finite | None = None
    graph_us: Finite | None = None


class LaunchTimes(Strict):
    """Every node of the forward in order: from its predecessor's end to its own end.

    Medians over profiled rounds and process runs. `kernel` indexes `names`.
    """

    names: list[str]
    kernel: list[Count]
    pdl: list[bool]
    cpp_eager_us: list[Finite]
    graph_us: list[Finite]

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        lengths = {
            len(column) for column in (self.kernel, self.pdl, self.cpp_eager_us, self.graph_us)
        }
        if len(lengths) != 1:
            raise ValueError("kernel, pdl, cpp_eager_us and graph_us have to be equally long")
        if any(index >= len(self.names) for index in self.kernel):
            raise ValueError("kernel has an index beyond names")
        return self


class WeightStream(Strict):
    """The least time of a step: its weights read once at the bandwidth of a large copy."""

    weight_gb: Finite
    copy_gb_s: Quantity
    floor_ms: Finite
    graph_over_floor: Finite


class DecodeStep(Strict):
    """One decode step of one implementation under every host.

    `host_issue_ms` is the time of the fastest host that launches kernel by kernel, never held back
    by a full queue. `identical_outputs` tells by host whether the result has the graph's bits.
    """

    rows: Annotated[list[DecodeRow], Field(min_length=1)]
    launches: Positive
    pdl_launches: Count
    host_issue_ms: Quantity
    saved_us: Quantity | None = None
    per_kernel: list[KernelSlowdown] = []
    python_saved_us: Quantity | None = None
    memsets: Count | None = None
    memcpys: Count | None = None
    kernels: list[KernelMix] = []
    launch_times: LaunchTimes | None = None
    weight_stream: WeightStream | None = None
    identical_outputs: dict[Host, bool] | None = None


class OtherDecodeStep(DecodeStep):
    """A step of another implementation, measured in the same processes."""

    engine: str


class ForwardDocument(Document):
    """A document about forwards of one model."""

    parameters: ForwardParameters


class DecodeGraphGain(DecodeStep, ForwardDocument):
    """`decode_graph_gain`: one decode step, eager and as a graph, same kernels.

    The document's own step is that of `parameters.engine`; others are `beside` it.
    """

    experiment: Literal["decode_graph_gain"]
    beside: list[OtherDecodeStep] = []


class PrefillRow(Strict):
    """One prefill; the two `_printed` fields are the source's own arithmetic, kept as printed.

    Times are until all is done. `saved_ms` is what the graph saves against C++ eager, pairwise;
    `host_issue_ms` the time of the fastest host that launches kernel by kernel; where there is a
    `cpp_issue_ms`, that is the one which a full launch queue may have held back. `launches` may
    depend on the number of tokens.
    """

    tokens: Positive
    cached_tokens: Count
    graph_ms: Quantity
    eager_ms: Quantity
    cpp_eager_ms: Quantity | None = None
    host_issue_ms: Quantity
    saved_percent_printed: Finite | None = None
    per_call_us_printed: Finite | None = None
    eager_issue_ms: Quantity | None = None
    cpp_issue_ms: Quantity | None = None
    saved_ms: Quantity | None = None
    python_saved_ms: Quantity | None = None
    launches: Positive | None = None
    pdl_launches: Count | None = None
    identical_outputs: dict[Host, bool] | None = None


class OtherPrefills(Strict):
    """Prefills of another implementation, measured in the same processes."""

    engine: str
    rows: Annotated[list[PrefillRow], Field(min_length=1)]


class PrefillGraphGain(ForwardDocument):
    """`prefill_graph_gain`: short prefills, eager and as a graph."""

    experiment: Literal["prefill_graph_gain"]
    calls_per_forward: Positive
    rows: Annotated[list[PrefillRow], Field(min_length=1)]
    beside: list[OtherPrefills] = []
