"""The experiments that this package can run, and what each needs.

Reading this registry loads no experiment, so that planning is cheap.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from graphgain.errors import ConfigError
from graphgain.measuring.nvcc import WHERE_TO_GET, find_nvcc
from graphgain.measuring.packages import is_importable
from graphgain.sources import PACKAGE

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """What an experiment gets: its parameters, and where and how to build native programs.

    `arch` is nvcc's `-arch`. An experiment adds the versions that only it can know to `versions`.
    """

    parameters: Parameters
    build: Path
    arch: str
    versions: dict[str, str | None] = field(default_factory=dict)


Measure = Callable[[Context], dict[str, Any]]
"""Runs an experiment and returns its document without the envelope (`parameters`, `rows`, ...)."""


@dataclass(frozen=True)
class Experiment:
    """One experiment; `module` has its function `measure`, `native` names files of workflow/native.

    `packages` maps what is imported to what is installed for it. `parameters` are the defaults,
    each of the type that an override must have. `check` names a module whose function `missing()`
    tells what else is missing. Parameters in `scope` say how much is measured and not how: a
    document with others of them is not out of date.
    """

    name: str
    title: str
    module: str
    parameters: Parameters
    needs_gpu: bool = True
    native: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    check: str = ""
    scope: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """The file of `module`."""
        return PACKAGE.parent / Path(*self.module.split(".")).with_suffix(".py")

    @property
    def programs(self) -> tuple[str, ...]:
        """The native sources that are programs of their own; those in folders are libraries, which
        the experiment compiles against the Python package that loads them."""
        return tuple(name for name in self.native if "/" not in name)

    def load(self) -> Measure:
        """Import the experiment's function."""
        return cast(Measure, importlib.import_module(self.module).measure)

    def with_overrides(self, overrides: Parameters) -> dict[str, Any]:
        """The defaults with some of them replaced; raises ConfigError naming what is known."""
        unknown = [name for name in overrides if name not in self.parameters]
        if unknown:
            raise ConfigError(
                f"{self.name} has no parameter {', '.join(unknown)}; "
                f"it has {', '.join(self.parameters)}."
            )
        merged = {**self.parameters, **overrides}
        for name, value in merged.items():
            if not _same_type(value, self.parameters[name]):
                raise ConfigError(
                    f"{self.name}: parameter {name} is {value!r}, but must be like its default "
                    f"{self.parameters[name]!r}."
                )
        if merged.get("process_runs", 1) < 1:
            raise ConfigError(f"{self.name}: parameter process_runs must be at least 1.")
        return merged


def missing_tools(experiment: Experiment) -> str | None:
    """Why an experiment cannot run here, for lack of a tool or package: a sentence, or None."""
    if "nvcc" in experiment.tools and find_nvcc() is None:
        return f"{experiment.name} needs nvcc, which was not found: {WHERE_TO_GET}."
    for module, package in experiment.packages.items():
        if not is_importable(module):
            return (
                f"{experiment.name} needs the Python package {package}, which is not installed: "
                f"pip install {package}."
            )
    if experiment.check:
        try:
            return cast("str | None", importlib.import_module(experiment.check).missing())
        except ConfigError as error:  # a file that cannot be read keeps no other from measuring
            return str(error)
    return None


def find_experiment(name: str) -> Experiment:
    """The experiment of that name; raises ConfigError naming those known."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def _same_type(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list):
        return (
            isinstance(value, list)
            and len(value) > 0
            and all(_same_type(entry, default[0]) for entry in value)
        )
    return isinstance(value, type(default))


_ROUNDS: Parameters = {"rounds": 180, "max_rounds": 540, "warmup": 20, "process_runs": 3}

_FORWARD_PACKAGES: Mapping[str, str] = {
    "torch": "torch",
    "triton": "triton",
    "transformers": "transformers",
}

_CLIENT_PACKAGES: Mapping[str, str] = {
    "aiohttp": "aiohttp",
    "pydantic": "pydantic",
    "yaml": "PyYAML",
}

_SERVING: Parameters = {
    # Modes as `ENGINE` or `ENGINE:MODE` of config/engines.
    "modes": ["all"],
    # A model's folder; empty: random weights in the shapes of Qwen3.8-27B.
    "model": "",
    "served": "",
    # The address of a server that runs already, instead of modes, and how it is asked.
    "attach": "",
    "attach_protocol": "openai",
    # The published sweep.
    "lengths": [*range(128, 4097, 128), *range(5120, 16385, 1024)],
    "requests": 10,
    "passes": 1,
    "warmup_requests": 1,
    "concurrency": 1,
    "profile_lengths": [128, 1024, 2048, 2560, 3072, 3584, 4096],
    "profile_requests": 8,
    # Against `vllm bench serve`, on vLLM's servers; no rounds: not at all.
    "check_lengths": [128, 1024, 4096],
    "check_rounds": 3,
    "check_requests": 10,
    # All modes of an engine are started at once, and asked one after the other.
    "together": False,
    # What is kept of earlier runs is measured again.
    "again": False,
    # 0: any free port.
    "port": 0,
    "process_runs": 1,
}

_SERVING_SCOPE = (
    *("modes", "lengths", "passes", "profile_lengths", "profile_requests"),
    *("check_lengths", "check_rounds", "check_requests", "together", "again", "port"),
    *("attach", "attach_protocol", "served"),
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="launch_floor",
            title="Host cost of launching an empty kernel",
            module="graphgain.experiments.launch_floor",
            native=("launch_floor",),
            tools=("nvcc",),
            parameters={
                "launches": 512,
                # The plain driver launch has no argument and the graph path is the length 512, so
                # neither is measured twice.
                "paths": ["driver", "runtime", "launch_ex", "launch_ex_pdl"],
                "argument_counts": [1, 2, 4, 8, 16, 32, 64],
                "graph_lengths": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
                **_ROUNDS,
            },
        ),
        Experiment(
            name="gemm_host_cost",
            title="Host cost of a matrix-vector cuBLAS call",
            module="graphgain.experiments.gemm_host_cost",
            native=("gemm_host_cost",),
            tools=("nvcc",),
            parameters={
                "shapes": [
                    "96x5120:in_proj_ba=48",
                    "5120x6144:o_proj=16,out_proj=48",
                    "5120x17408:down_proj=64",
                    "14336x5120:qkv_proj=16",
                    "16384x5120:in_proj_qkvz=48",
                    "34816x5120:gate_up=64",
                    "248320x5120:lm_head=1",
                ],
                "calls": 256,
                "l2_multiple": 8,
                # A round takes as long as its weights take to read, up to 0.6 s for lm_head: fewer
                # rounds than for empty kernels, and a limit that may end the largest shape's.
                **_ROUNDS,
                "rounds": 60,
                "max_rounds": 90,
                "warmup": 10,
                "time_limit_s": 20.0,
            },
        ),
        Experiment(
            name="handoff",
            title="GPU time from one kernel to the next, eager and in a graph",
            module="graphgain.experiments.handoff",
            native=("handoff",),
            tools=("nvcc",),
            parameters={
                "chain": 256,
                "kernel_us": [0.0, 1.0, 2.0, 5.0, 10.0, 20.0],
                "grids": ["1", "1x", "8x"],
                "block": 128,
                "argument_bytes": [8, 1024],
                **_ROUNDS,
                # The GPU side is steady: within 0.5 % after a few dozen rounds.
                "rounds": 40,
                "max_rounds": 60,
                "warmup": 5,
            },
        ),
        Experiment(
            name="ffi_launch",
            title="Host cost of a launch that starts in Python",
            module="graphgain.experiments.ffi_launch",
            native=("ffi/ffi_launch",),
            tools=("nvcc",),
            packages={"tvm_ffi": "apache-tvm-ffi"},
            parameters={"launches": 512, "rounds": 180, "warmup": 20, "process_runs": 3},
        ),
        Experiment(
            name="launch_paths",
            title="Host cost of a kernel by the way in which Python launches it",
            module="graphgain.experiments.launch_paths",
            native=("paths/loop", "paths/cubin", "paths/tvm_ffi_add", "paths/torch_add"),
            tools=("nvcc",),
            packages={"torch": "torch"},
            parameters={
                "launches": 512,
                "rounds": 180,
                "warmup": 20,
                "process_runs": 3,
                "paths": [
                    *("cpp_loop", "tvm_ffi", "jit_cached", "jit_torch_op", "jit_custom_op"),
                    *("aot_torch_library", "torch_add_out", "triton_jit", "triton_jit_pdl"),
                    *("cute_dsl", "cupy_raw", "numba_cuda", "cuda_core", "cuda_bindings"),
                    "cuda_graph",
                ],
            },
        ),
        Experiment(
            name="decode_graph_gain",
            title="One decode step under Python, C++ and a graph",
            module="graphgain.experiments.decode_graph_gain",
            native=("unroll/unroll",),
            tools=("nvcc",),
            packages=_FORWARD_PACKAGES,
            parameters={
                # The first is the document's own, the others stand beside it.
                "models": ["lean", "transformers"],
                # 0: all; and the folder of a checkpoint instead of random weights, or "".
                "layers": 0,
                "checkpoint": "",
                "cached_tokens": 1024,
                "rounds": 15,
                "warmup": 2,
                "profiled_rounds": 3,
                "process_runs": 3,
            },
        ),
        Experiment(
            name="prefill_graph_gain",
            title="Short prefills under Python, C++ and a graph",
            module="graphgain.experiments.prefill_graph_gain",
            native=("unroll/unroll",),
            tools=("nvcc",),
            packages={**_FORWARD_PACKAGES, "fla": "flash-linear-attention"},
            parameters={
                "models": ["lean", "transformers"],
                "layers": 0,
                "checkpoint": "",
                "tokens": [128, 256, 384, 512, 768, 1024, 2048, 4096],
                "tokens_after_cached": 256,
                "cached_tokens": [4096, 16384, 32768],
                "tokens_beside": [128, 1024],
                "cached_tokens_beside": [4096],
                "rounds": 10,
                "warmup": 1,
                "profiled_rounds": 0,
                "process_runs": 3,
            },
        ),
        Experiment(
            name="ttft",
            title="Time to first token of serving engines",
            module="graphgain.experiments.ttft",
            packages=_CLIENT_PACKAGES,
            check="graphgain.engines.config",
            parameters=_SERVING,
            scope=_SERVING_SCOPE,
        ),
        Experiment(
            name="ttft_breakdown",
            title="What a first token's time consists of",
            module="graphgain.experiments.ttft_breakdown",
            packages=_CLIENT_PACKAGES,
            check="graphgain.engines.config",
            parameters=_SERVING,
            scope=_SERVING_SCOPE,
        ),
        Experiment(
            name="gil",
            title="Launch intervals of a thread that keeps releasing the GIL",
            module="graphgain.experiments.gil",
            native=("gil/spin.c", "gil/spin_kernel.cu"),
            needs_gpu=False,
            parameters={
                # About what a launch takes that starts in Python; most rows are of this length.
                "launch_us": 5.0,
                "switch_interval_ms": 5.0,
                "background": ["compute", "poll", "io"],
                "background_threads": [0, 1, 2, 4, 6, 10],
                "spin_us": [0.0, 1.0, 5.0, 20.0],
                "switch_intervals_ms": [0.5, 1.0, 5.0, 20.0],
                "interpreters": ["3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t"],
                "rank_backgrounds": ["poll:4", "compute:1"],
                "ranks": [1, 2, 4, 8, 16, 32, 64],
                "calls_per_step": 20,
                "rank_s": 2.0,
                "gpu_backgrounds": ["compute:1", "compute:4", "poll:4"],
                "gpu_launches": 512,
                "gpu_kernel_us": 6.0,
                "gpu_limit_s": 2.0,
                # All process runs together, at least; fewer where `limit_s` ends a run.
                "intervals": 10500,
                "min_s": 1.0,
                "limit_s": 3.0,
                "warmup_s": 0.1,
                "process_runs": 3,
            },
        ),
    )
}
"""Every experiment by name, in the order in which they are measured."""
