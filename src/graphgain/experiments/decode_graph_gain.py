"""`decode_graph_gain`: one decode step under Python, C++ and a graph, with identical kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphgain.experiments import Context
from graphgain.experiments.forward_runs import (
    OWN_MODELS,
    Raw,
    by_forward,
    identical,
    issue,
    parameters,
    run_processes,
    saved,
    timed,
    warnings,
)
from graphgain.measuring.summary import SUMMARY_DIGITS, quantity, significant

HOSTS = ("eager", "cpp_eager", "cpp_eager_no_pdl", "graph")
_NOTES = [
    "Hosts took turns round by round; before each run the forward's state was put back and the GPU "
    "was idle.",
    "host_issue_ms is the C++ loop's, issued in parts of 512 launches with an empty queue before "
    "each.",
    "idle_us, launch_times and per_kernel are from CUPTI's view of profiled runs, the second of "
    "each session; profiled_ms tells how long those took.",
]


def measure(context: Context) -> dict[str, Any]:
    """Run the models in independent processes; the parts of the document."""
    wanted = context.parameters
    case = (1, wanted["cached_tokens"])
    cases = {model: [case] for model in wanted["models"]}
    runs = run_processes(context, cases, HOSTS, "decode_graph_gain")
    first = wanted["models"][0]
    return {
        "parameters": parameters(wanted, first, tokens=1, cached_tokens=wanted["cached_tokens"]),
        **body(runs),
    }


def body(runs: Sequence[Raw]) -> dict[str, Any]:
    """The document's own step, which is the first model's, and the others beside it."""
    found = by_forward(runs)
    steps = {model: _step(model, forwards, runs) for (model, _, _), forwards in found.items()}
    (_, own), *others = steps.items()
    return {
        **own,
        "beside": [{"engine": model, **step} for model, step in others],
        "notes": [*_NOTES, *warnings(found)],
    }


def _step(model: str, forwards: Sequence[Raw], runs: Sequence[Raw]) -> dict[str, Any]:
    one = forwards[0]
    times = _launch_times(forwards)
    step = {
        "rows": [_row(forwards, host) for host in HOSTS],
        "launches": one["launches"],
        "pdl_launches": one["pdl_launches"],
        "host_issue_ms": issue(forwards),
        "saved_us": saved(forwards, "cpp_eager", 1000),
        "python_saved_us": saved(forwards, "eager", 1000),
        "memsets": one["memsets"],
        "memcpys": one["memcpys"],
        "kernels": _mix(one["kernels"], times),
        "identical_outputs": identical(forwards),
    }
    if times:
        step |= {"launch_times": times, "per_kernel": _slowdowns(times)}
    if model in OWN_MODELS:
        bandwidth = quantity([[run["copy_gb_s"]] for run in runs])
        floor_ms = 1000 * one_value(runs, "decode_weight_gb") / bandwidth["median"]
        graph_ms = next(row["step_ms"]["median"] for row in step["rows"] if row["host"] == "graph")
        step["weight_stream"] = {
            "weight_gb": one_value(runs, "decode_weight_gb"),
            "copy_gb_s": bandwidth,
            "floor_ms": significant(floor_ms, SUMMARY_DIGITS),
            "graph_over_floor": significant(graph_ms / floor_ms, SUMMARY_DIGITS),
        }
    return step


def one_value(runs: Sequence[Raw], key: str) -> float:
    """A number that every process prints alike."""
    return float(runs[0][key])


def _row(forwards: Sequence[Raw], host: str) -> dict[str, Any]:
    row = {
        "host": host,
        "step_ms": timed(forwards, "wall_ms", host),
        "gpu_ms": timed(forwards, "gpu_ms", host),
        "issue_ms": timed(forwards, "issue_ms", host),
    }
    if all(host in forward.get("profile", {}) for forward in forwards):
        profiles = [forward["profile"][host] for forward in forwards]
        row["idle_us"] = quantity([profile["idle_us"] for profile in profiles])
        row["profiled_ms"] = quantity(
            [[us / 1000 for us in profile["total_us"]] for profile in profiles]
        )
    return row


def _launch_times(forwards: Sequence[Raw]) -> dict[str, Any] | None:
    """By node, the median over processes of the times that each process's profile gives."""
    if not all("profile" in forward for forward in forwards):
        return None
    one = forwards[0]
    names = list(dict.fromkeys(one["profile"]["graph"]["names"]))
    place = {name: index for index, name in enumerate(names)}
    return {
        "names": names,
        "kernel": [place[name] for name in one["profile"]["graph"]["names"]],
        "pdl": one["pdl_nodes"],
        **{
            f"{host}_us": [
                round(float(us), 3)
                for us in np.median(
                    [forward["profile"][host]["later_us"] for forward in forwards], axis=0
                )
            ]
            for host in ("cpp_eager", "graph")
        },
    }


def _slowdowns(times: dict[str, Any]) -> list[dict[str, Any]]:
    """Quartiles over launches of how much later they end in C++ eager than in the graph.

    The first node has no predecessor whose end it could be counted from.
    """
    pdl = np.array(times["pdl"], dtype=bool)[1:]
    slower = (np.array(times["cpp_eager_us"]) - np.array(times["graph_us"]))[1:]
    found = []
    for kind in (True, False):
        own = slower[pdl == kind]
        if own.size:
            low, median, high = (
                significant(float(us), SUMMARY_DIGITS) for us in np.percentile(own, (25, 50, 75))
            )
            found.append(
                {
                    "pdl": kind,
                    "slower_us": {
                        "median": median,
                        "low": low,
                        "high": high,
                        "interval": "quartiles",
                        "n": int(own.size),
                    },
                    "total_us": significant(float(own.sum()), SUMMARY_DIGITS),
                }
            )
    return found


def _mix(kernels: Sequence[Raw], times: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The kernels by name, with their times where the profile knows the same name."""
    totals: dict[str, dict[str, float]] = {}
    if times:
        for host in ("cpp_eager_us", "graph_us"):
            for index, us in zip(times["kernel"], times[host], strict=True):
                own = totals.setdefault(times["names"][index], {})
                own[host] = own.get(host, 0.0) + us
    return [
        {
            **kernel,
            **{
                host: significant(us, SUMMARY_DIGITS)
                for host, us in totals.get(kernel["name"], {}).items()
            },
        }
        for kernel in kernels
    ]
