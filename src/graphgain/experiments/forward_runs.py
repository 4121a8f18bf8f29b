"""Running `forward_process` repeatedly, and what both documents about forwards take from it."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from graphgain.errors import MeasureError
from graphgain.experiments import Context, forward_process
from graphgain.measuring.process import python_module, run_json
from graphgain.measuring.summary import paired_difference, quantity
from graphgain.unroll.library import build_library

Case = tuple[int, int]
"""New tokens, and tokens cached before."""

MODEL = "Qwen3.8-27B"
OWN_MODELS = ("lean", "transformers")
_TIMEOUT_S = 3600

Raw = Mapping[str, Any]
"""One forward as one process printed it."""


def run_processes(
    context: Context, cases: Mapping[str, Sequence[Case]], hosts: Sequence[str], name: str
) -> list[dict[str, Any]]:
    """The documents of independent processes, each of which measures the cases of every model."""
    wanted = context.parameters
    build_library(context.build)  # once, before processes look for it
    argument = json.dumps(
        {
            **{key: wanted[key] for key in ("layers", "checkpoint", "rounds", "warmup")},
            "cases": {model: list(pairs) for model, pairs in cases.items()},
            "hosts": list(hosts),
            "profiled_rounds": wanted["profiled_rounds"],
            "build": str(context.build),
        }
    )
    runs = []
    for index in range(wanted["process_runs"]):
        print(f"{name}: process {index + 1} of {wanted['process_runs']}", file=sys.stderr)
        command = python_module(forward_process.__name__, argument)
        runs.append(run_json(command, name=name, timeout_s=_TIMEOUT_S))
    context.versions["cuda_runtime"] = runs[0]["cuda_runtime"]
    return runs


def parameters(wanted: Mapping[str, Any], engine: str, **more: Any) -> dict[str, Any]:
    """The document's parameters for its own forward, that of `engine`."""
    own = engine in OWN_MODELS
    return {
        "model": MODEL if own else engine,
        "engine": engine if own else "transformers",
        **({"layers": wanted["layers"]} if wanted["layers"] else {}),
        "weights": wanted["checkpoint"] if own and wanted["checkpoint"] else "random",
        "rounds": wanted["rounds"] + wanted["warmup"],
        "warmup_rounds": wanted["warmup"],
        "process_runs": wanted["process_runs"],
        "profiled_rounds": wanted["profiled_rounds"],
        **more,
    }


def by_forward(runs: Sequence[Raw]) -> dict[tuple[str, int, int], list[Raw]]:
    """Each forward (model, tokens, cached tokens) with what every process measured of it.

    Raises MeasureError where the processes captured different launches.
    """
    found: dict[tuple[str, int, int], list[Raw]] = {}
    for run in runs:
        for forward in run["forwards"]:
            key = (forward["model"], forward["tokens"], forward["cached_tokens"])
            found.setdefault(key, []).append(forward)
    for (model, tokens, cached), forwards in found.items():
        launches = {forward["launches"] for forward in forwards}
        if len(forwards) != len(runs) or len(launches) != 1:
            raise MeasureError(
                f"{model}, {tokens} tokens after {cached}: the processes captured different "
                f"numbers of launches: {sorted(launches)}."
            )
    return found


def timed(forwards: Sequence[Raw], metric: str, host: str) -> dict[str, Any]:
    """The Quantity of a metric of `Samples` under one host."""
    return quantity([forward["samples"][metric][host] for forward in forwards])


def issue(forwards: Sequence[Raw]) -> dict[str, Any]:
    """The Quantity of the C++ loop's issue time, in ms, never held back by a full queue."""
    return quantity([forward["samples"]["unhindered_issue_ms"] for forward in forwards])


def saved(forwards: Sequence[Raw], host: str, scale: float) -> dict[str, Any]:
    """What the graph saves against a host, round by round; `scale` converts from ms."""
    return paired_difference(
        [_scaled(forward, host, scale) for forward in forwards],
        [_scaled(forward, "graph", scale) for forward in forwards],
        name=f"{host} against graph",
    )


def identical(forwards: Sequence[Raw]) -> dict[str, bool]:
    """By host, whether its result had the graph's bits in every process."""
    hosts = forwards[0]["identical_outputs"]
    return {host: all(forward["identical_outputs"][host] for forward in forwards) for host in hosts}


def warnings(found: Mapping[tuple[str, int, int], list[Raw]]) -> list[str]:
    """Notes about forwards without a profile, and about hosts that gave another result."""
    unprofiled = {
        forward["not_profiled"]: None
        for forwards in found.values()
        for forward in forwards
        if "not_profiled" in forward
    }
    return [*unprofiled] + [
        f"{model}, {tokens} tokens after {cached}: {host} gives another result than the graph."
        for (model, tokens, cached), forwards in found.items()
        for host, same in identical(forwards).items()
        if not same
    ]


def _scaled(forward: Raw, host: str, scale: float) -> list[float]:
    return [scale * ms for ms in forward["samples"]["wall_ms"][host]]
