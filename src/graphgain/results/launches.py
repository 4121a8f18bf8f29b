"""Documents of the launch microbenchmarks."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict

Count = Annotated[int, Field(ge=0)]


class RoundParameters(Strict):
    """How a host loop is timed: `launches` a round, the first `warmup_rounds` dropped.

    A noisy series goes on up to `max_rounds`.
    """

    launches: Annotated[int, Field(ge=1)] = 512
    rounds: Annotated[int, Field(ge=1)] = 200
    warmup_rounds: Count = 20
    max_rounds: Annotated[int, Field(ge=1)] | None = None
    process_runs: Annotated[int, Field(ge=1)] | None = None


LaunchPath = Literal["driver", "runtime", "launch_ex", "launch_ex_pdl", "graph"]


class LaunchFloorRow(Strict):
    """Host cost of launching an empty kernel: `host_us` is a launch (a graph: a kernel in it)."""

    path: LaunchPath
    launches: Annotated[int, Field(ge=1)]
    arguments: Count = 0
    host_us: Quantity
    graph_host_us: Quantity | None = None
    instantiate_us: Quantity | None = None
    gpu_us_per_node: Quantity | None = None
    past_queue: bool = False


class LaunchFloor(Document):
    """`launch_floor`: empty kernels through each way of launching them."""

    experiment: Literal["launch_floor"]
    parameters: RoundParameters
    rows: Annotated[list[LaunchFloorRow], Field(min_length=1)]
    outstanding_launches: Quantity | None = None
    outstanding_pdl_launches: Quantity | None = None


class CapturedKernel(Strict):
    """One kernel node of a captured call."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: Count
    pdl: bool


class GemmRow(Strict):
    """Host cost of one n×1×k cuBLAS call; `uses` tells which projections share the shape.

    `bare_us` launches the captured kernels without cuBLAS. `algorithm_choice_us` is lt_heuristic −
    lt_pinned, `remainder_us` is the call − bare − algorithm choice, both as paired differences.
    """

    gemm: str
    n: Annotated[int, Field(ge=1)]
    k: Annotated[int, Field(ge=1)]
    uses: dict[str, int]
    host_us: Quantity
    kernels_per_call: Annotated[int, Field(ge=1)]
    kernels: list[CapturedKernel] | None = None
    lt_heuristic_us: Quantity | None = None
    lt_pinned_us: Quantity | None = None
    bare_us: Quantity | None = None
    empty_us: Quantity | None = None
    algorithm_choice_us: Quantity | None = None
    remainder_us: Quantity | None = None
    memsets_per_call: Count | None = None
    programmatic_edges_per_call: Count | None = None
    launches_per_round: Count | None = None
    weight_copies: Count | None = None
    lt_pinned_same_kernels: bool | None = None

    @property
    def calls_per_step(self) -> int:
        """Calls in one decode step, over all projections of this shape."""
        return sum(self.uses.values())


class SplitPart(Strict):
    """One part of what a single-kernel cuBLAS call costs the host.

    `remainder` is what is neither algorithm choice nor launch: driver queries and library code.
    """

    part: Literal["algorithm_choice", "driver_queries", "library_code", "launch", "remainder"]
    host_us: Quantity


class GemmHostCost(Document):
    """`gemm_host_cost`: the decode step's GEMM shapes at batch size 1."""

    experiment: Literal["gemm_host_cost"]
    parameters: RoundParameters
    rows: Annotated[list[GemmRow], Field(min_length=1)]
    empty_us: Quantity | None = None
    split: list[SplitPart] = []


FfiPath = Literal[
    "python_tvm_ffi",
    "python_tvm_ffi_tensors",  # two tensors of tvm-ffi
    "python_tvm_ffi_torch_tensors",  # two tensors of torch, which cross by DLPack
    "cpp_loop",
    "graph",
]


class FfiRow(Strict):
    """Host cost of one launch that starts in Python."""

    path: FfiPath
    host_us: Quantity


class FfiLaunch(Document):
    """`ffi_launch`: Python → tvm-ffi → launch, the C++ loop and the graph beside it."""

    experiment: Literal["ffi_launch"]
    parameters: RoundParameters
    rows: Annotated[list[FfiRow], Field(min_length=1)]
    tensor_arguments_extra_us: Quantity | None = None


class LaunchPathRow(Strict):
    """Host cost of one elementwise add through one way of integrating a kernel into Python.

    `call_chain` is null where the source names a way without its steps. A measured row has either
    `host_us` or, in `skipped`, why not; `version` names the packages that it goes through.
    """

    path: str
    label: str
    call_chain: str | None
    used_in: str | None = None
    files: Count | None = None
    host_us: Quantity | None
    skipped: str | None = None
    version: str | None = None


LaunchStageName = Literal[
    "call",  # entering and leaving C without arguments
    "arguments",  # converting and checking three tensors
    "launch",  # the runtime's launch, and finding the stream
    "python_wrapper",  # a Python function that looks its compiled module up
    "dispatcher",  # torch's dispatcher, into Python code again
    "custom_op",  # what torch.library.custom_op adds to Library.impl
]


class LaunchStage(Strict):
    """What one stage of a path costs: the paired difference between two calls, with and without it.

    The stages of a path add up to it.
    """

    path: str
    stage: LaunchStageName
    host_us: Quantity


class LaunchVariant(Strict):
    """Host cost of a call with stages left out, which the stages are computed from."""

    variant: str
    host_us: Quantity


class LaunchPaths(Document):
    """`launch_paths`: how Python code reaches a kernel, and what each way costs.

    `parameters` is null where the source does not print how it timed the calls.
    """

    experiment: Literal["launch_paths"]
    parameters: RoundParameters | None
    rows: Annotated[list[LaunchPathRow], Field(min_length=1)]
    stages: list[LaunchStage] = []
    variants: list[LaunchVariant] = []


class HandoffParameters(Strict):
    """Chains of `kernels` kernels behind a gate, `rounds` times, the host out of the way."""

    kernels: Annotated[int, Field(ge=2)]
    rounds: Annotated[int, Field(ge=1)]
    warmup_rounds: Count
    max_rounds: Annotated[int, Field(ge=1)] | None = None
    process_runs: Annotated[int, Field(ge=1)]


class HandoffRow(Strict):
    """One configuration, end to end per kernel; `bare_us` is the kernel's own duration.

    `saved_us` is eager − graph as a paired difference; the two `_issue_us` are host time a kernel.
    """

    pdl: bool
    kernel_us: Finite
    grid_blocks: Annotated[int, Field(ge=1)]
    argument_bytes: Count
    eager_us: Quantity
    graph_us: Quantity
    saved_us: Quantity
    bare_us: Quantity | None = None
    host_issue_us: Quantity | None = None
    graph_host_issue_us: Quantity | None = None
    programmatic_edges: Count


class Handoff(Document):
    """`handoff`: the GPU-side step from one kernel to the next."""

    experiment: Literal["handoff"]
    parameters: HandoffParameters
    rows: Annotated[list[HandoffRow], Field(min_length=1)]
    sm_cycles_per_us: Quantity | None = None
