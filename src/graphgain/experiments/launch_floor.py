"""`launch_floor`: host cost of launching an empty kernel, by path, arguments and graph length."""

from typing import Any

from graphgain.experiments import Context
from graphgain.measuring.native import Runs, run_benchmark
from graphgain.measuring.summary import quantity

_NOT_OPTIONS = ("process_runs",)


def measure(context: Context) -> dict[str, Any]:
    """Run the native program in independent processes; returns the parts of the document."""
    wanted = context.parameters
    runs = run_benchmark(
        "launch_floor",
        {name: value for name, value in wanted.items() if name not in _NOT_OPTIONS},
        process_runs=wanted["process_runs"],
        build=context.build,
        arch=context.arch,
    )
    context.versions["cuda_runtime"] = runs.outputs[0].device["runtime_version"]
    return {
        "parameters": {
            "launches": wanted["launches"],
            "rounds": wanted["rounds"] + wanted["warmup"],
            "max_rounds": wanted["max_rounds"] + wanted["warmup"],
            "warmup_rounds": wanted["warmup"],
            "process_runs": wanted["process_runs"],
        },
        **body(runs),
    }


def body(runs: Runs) -> dict[str, Any]:
    """Rows and the back-pressure point from what the program printed."""
    outstanding = _outstanding(runs, "driver")
    limit = outstanding["low"] if outstanding else float("inf")
    rows = [*_path_rows(runs), *_argument_rows(runs), *_graph_rows(runs)]
    for row in rows:
        row["past_queue"] = row["launches"] > limit
    result: dict[str, Any] = {"rows": rows}
    if outstanding:
        result["outstanding_launches"] = outstanding
    else:
        result["notes"] = ["No launch blocked the host, however many were outstanding."]
    pdl = _outstanding(runs, "launch_ex_pdl")
    if pdl:
        result["outstanding_pdl_launches"] = pdl
    return result


def _path_rows(runs: Runs) -> list[dict[str, Any]]:
    return [
        {
            "path": axes["path"],
            "launches": runs.series("host_us", "launch", **axes)[0].count,
            "host_us": runs.quantity("host_us", "launch", **axes),
        }
        for axes in runs.axes("host_us", "launch", "path")
    ]


def _argument_rows(runs: Runs) -> list[dict[str, Any]]:
    return [
        {
            "path": axes["path"],
            "launches": runs.series("host_us", "launch", **axes)[0].count,
            "arguments": axes["arguments"],
            "host_us": runs.quantity("host_us", "launch", **axes),
        }
        for axes in runs.axes("host_us", "launch", "path", "arguments")
    ]


def _graph_rows(runs: Runs) -> list[dict[str, Any]]:
    return [
        {
            "path": "graph",
            "launches": axes["graph_length"],
            "host_us": runs.quantity("host_us", "launch", **axes),
            # The same samples as host_us, times the length.
            "graph_host_us": runs.quantity("host_us", "graph", keep_samples=False, **axes),
            "instantiate_us": runs.quantity("instantiate_us", "graph", **axes),
            "gpu_us_per_node": runs.quantity("gpu_us", "node", **axes),
        }
        for axes in runs.axes("host_us", "graph", "path", "graph_length")
    ]


def _outstanding(runs: Runs, path: str) -> dict[str, Any] | None:
    """Launches that returned before one blocked; None where none did in some run."""
    blocked = [
        [
            count["value"]
            for count in output.counts
            if count["metric"] == "outstanding_launches" and count["axes"].get("path") == path
        ]
        for output in runs.outputs
    ]
    if not all(blocked):
        return None
    lowest, highest = min(map(min, blocked)), max(map(max, blocked))
    found = quantity(blocked)
    return {"low": lowest, "high": highest, "interval": "run medians", **found}
