"""`gemm_host_cost`: host cost of a matrix-vector cuBLAS call, and what it is made of."""

import re
from dataclasses import dataclass
from typing import Any

from graphgain.errors import ConfigError
from graphgain.experiments import Context
from graphgain.measuring.native import Runs, Series, difference, run_benchmark
from graphgain.measuring.summary import quantity

_NOT_OPTIONS = ("process_runs", "shapes")
_SHAPE = re.compile(r"(\d+)x(\d+):(\w+=\d+(?:,\w+=\d+)*)")


@dataclass(frozen=True)
class Shape:
    """One n×1×k product; `uses` are the projections that need it, with calls per decode step."""

    n: int
    k: int
    uses: dict[str, int]

    @property
    def name(self) -> str:
        """What the native program calls it."""
        return f"{self.n}x{self.k}"

    @property
    def option(self) -> str:
        """An entry of the native program's `--shapes`."""
        return f"{self.name}:{self.n}:{self.k}:{sum(self.uses.values())}"


def measure(context: Context) -> dict[str, Any]:
    """Run the native program in independent processes; returns the parts of the document."""
    wanted = context.parameters
    shapes = [parse_shape(text) for text in wanted["shapes"]]
    options = {name: value for name, value in wanted.items() if name not in _NOT_OPTIONS}
    runs = run_benchmark(
        "gemm_host_cost",
        {**options, "shapes": [shape.option for shape in shapes]},
        process_runs=wanted["process_runs"],
        build=context.build,
        arch=context.arch,
    )
    first = runs.outputs[0]
    context.versions["cuda_runtime"] = first.device["runtime_version"]
    context.versions["cublas"] = str(first.parameters["cublas_version"])
    return {
        "parameters": {
            "launches": wanted["calls"],
            "rounds": wanted["rounds"] + wanted["warmup"],
            "max_rounds": wanted["max_rounds"] + wanted["warmup"],
            "warmup_rounds": wanted["warmup"],
            "process_runs": wanted["process_runs"],
        },
        **body(runs, shapes),
    }


def parse_shape(text: str) -> Shape:
    """Read "5120x6144:o_proj=16,out_proj=48"; raises ConfigError."""
    match = _SHAPE.fullmatch(text)
    if not match:
        raise ConfigError(
            f"gemm_host_cost: shape {text!r} is not written like 5120x6144:o_proj=16,out_proj=48 "
            "(n, k, and the projections with their calls per step)."
        )
    uses = dict(use.split("=") for use in match[3].split(","))
    return Shape(int(match[1]), int(match[2]), {name: int(calls) for name, calls in uses.items()})


def body(runs: Runs, shapes: list[Shape]) -> dict[str, Any]:
    """Rows, the empty kernel over all shapes, and the split of a call of one kernel."""
    rows = [_row(runs, shape) for shape in shapes]
    empty = [
        [sample for shape in shapes for sample in _host(runs, shape, "empty")[run].samples]
        for run in range(len(runs.outputs))
    ]
    result = {"rows": rows, "empty_us": quantity(empty, keep_samples=False)}
    single = next((row for row in rows if row["kernels_per_call"] == 1), None)
    if single:
        result["split"] = [
            {"part": "algorithm_choice", "host_us": single["algorithm_choice_us"]},
            {"part": "launch", "host_us": {**single["bare_us"], "samples": None}},
            {"part": "remainder", "host_us": single["remainder_us"]},
        ]
        result["notes"] = [
            f"The split is of {single['gemm']} (n {single['n']}, k {single['k']}), "
            "the first shape that takes one kernel a call."
        ]
    return result


def _row(runs: Runs, shape: Shape) -> dict[str, Any]:
    gemm_ex, heuristic, pinned, bare = (
        _host(runs, shape, call) for call in ("gemm_ex", "lt_heuristic", "lt_pinned", "bare")
    )
    choice = _minus(heuristic, pinned)
    row = {
        "gemm": " / ".join(shape.uses),
        "n": shape.n,
        "k": shape.k,
        "uses": shape.uses,
        "host_us": _quantity(gemm_ex),
        "empty_us": _quantity(_host(runs, shape, "empty")),
        "lt_heuristic_us": _quantity(heuristic),
        "lt_pinned_us": _quantity(pinned),
        "bare_us": _quantity(bare),
        "algorithm_choice_us": difference(heuristic, pinned),
        "remainder_us": difference(_minus(gemm_ex, bare), choice),
    }
    for count in (
        "kernels_per_call",
        "memsets_per_call",
        "programmatic_edges_per_call",
        "launches_per_round",
    ):
        row[count] = runs.count(count, shape=shape.name, call="gemm_ex")
    row["weight_copies"] = runs.count("weight_copies", shape=shape.name)
    row["lt_pinned_same_kernels"] = bool(
        runs.count("lt_pinned_same_kernels_as_gemm_ex", shape=shape.name)
    )
    row["kernels"] = [
        {
            "name": kernel["name"],
            "grid": kernel["grid"],
            "block": kernel["block"],
            "shared_bytes": kernel["dynamic_shared_bytes"],
            "pdl": kernel["programmatic"],
        }
        for kernel in runs.outputs[0].kernels
        if kernel["axes"] == {"shape": shape.name, "call": "gemm_ex"} and kernel["kind"] == "kernel"
    ]
    return row


def _host(runs: Runs, shape: Shape, call: str) -> list[Series]:
    return runs.series("host_us", "call", shape=shape.name, call=call)


def _quantity(series: list[Series]) -> dict[str, Any]:
    return quantity([one.samples for one in series], stop=[one.stop for one in series])


def _minus(a: list[Series], b: list[Series]) -> list[Series]:
    """Sample by sample, for a difference of differences."""
    return [
        Series(
            x.axes, x.metric, x.per, x.count, x.stop,
            tuple(p - q for p, q in zip(x.samples, y.samples, strict=True)),
        )
        for x, y in zip(a, b, strict=True)
    ]  # fmt: skip
