"""`handoff`: what the GPU needs from one kernel to the next, eager and in a graph."""

from typing import Any

from graphgain.experiments import Context
from graphgain.measuring.native import Runs, difference, run_benchmark
from graphgain.measuring.summary import quantity

_NOT_OPTIONS = ("process_runs",)
_AXES = ("mode", "pdl", "kernel_us", "grid", "argument_bytes", "chain")


def measure(context: Context) -> dict[str, Any]:
    """Run the native program in independent processes; returns the parts of the document."""
    wanted = context.parameters
    runs = run_benchmark(
        "handoff",
        {name: value for name, value in wanted.items() if name not in _NOT_OPTIONS},
        process_runs=wanted["process_runs"],
        build=context.build,
        arch=context.arch,
    )
    context.versions["cuda_runtime"] = runs.outputs[0].device["runtime_version"]
    return {
        "parameters": {
            "kernels": wanted["chain"],
            "rounds": wanted["rounds"] + wanted["warmup"],
            "max_rounds": wanted["max_rounds"] + wanted["warmup"],
            "warmup_rounds": wanted["warmup"],
            "process_runs": wanted["process_runs"],
        },
        **body(runs),
    }


def body(runs: Runs) -> dict[str, Any]:
    """One row a case, with the paired difference between eager and graph."""
    cycles = [
        [before, after]
        for (before,), (after,) in zip(
            runs.counts("sm_cycles_per_us_before"),
            runs.counts("sm_cycles_per_us_after"),
            strict=True,
        )
    ]
    cases = [axes for axes in runs.axes("gpu_us", "kernel", *_AXES) if axes["mode"] == "eager"]
    return {
        "rows": [_row(runs, dict(axes)) for axes in cases],
        "sm_cycles_per_us": quantity(cycles),
    }


def _row(runs: Runs, eager: dict[str, Any]) -> dict[str, Any]:
    graph = {**eager, "mode": "graph"}
    bare = {**eager, "mode": "bare", "pdl": False}
    return {
        "pdl": eager["pdl"],
        "kernel_us": eager["kernel_us"],
        "grid_blocks": eager["grid"],
        "argument_bytes": eager["argument_bytes"],
        "eager_us": runs.quantity("gpu_us", "kernel", **eager),
        "graph_us": runs.quantity("gpu_us", "kernel", **graph),
        "saved_us": difference(
            runs.series("gpu_us", "kernel", **eager), runs.series("gpu_us", "kernel", **graph)
        ),
        "bare_us": runs.quantity("gpu_us", "kernel", keep_samples=False, **bare),
        "host_issue_us": runs.quantity("host_us", "kernel", keep_samples=False, **eager),
        "graph_host_issue_us": runs.quantity("host_us", "kernel", keep_samples=False, **graph),
        "programmatic_edges": runs.count("programmatic_edges", **graph),
    }
