"""`gil`: how other Python threads delay a thread that keeps releasing the GIL."""

import json
import platform
from typing import Any

import numpy as np

from graphgain.errors import MeasureError
from graphgain.experiments import Context, gil_process
from graphgain.measuring.process import python_module, run_json
from graphgain.measuring.summary import P99_MIN_SAMPLES, percentile, quantity

_TIMEOUT_S = 600
_PARAMETERS = ("spin_us", "background_threads", "switch_interval_ms", "duration_s", "warmup_s")


def measure(context: Context) -> dict[str, Any]:
    """Run the launcher in independent processes; returns the parts of the `gil` document."""
    wanted = context.parameters
    argument = json.dumps({name: wanted[name] for name in _PARAMETERS})
    runs = [
        run_json(
            python_module(gil_process.__name__, argument),
            name="The GIL launcher process",
            timeout_s=_TIMEOUT_S,
        )
        for _ in range(wanted["process_runs"])
    ]
    if not all(run["gil"] for run in runs):
        raise MeasureError("This Python runs without a GIL, so there is nothing to measure.")
    return {
        "parameters": {
            "python": platform.python_version(),
            "switch_interval_ms": wanted["switch_interval_ms"],
            "duration_s": wanted["duration_s"],
            "process_runs": wanted["process_runs"],
        },
        "rows": [row(series) for series in zip(*(run["series"] for run in runs), strict=True)],
    }


def row(series: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One setting's row from its series, one a process run."""
    intervals = [one["intervals_us"] for one in series]
    pooled = np.concatenate(intervals)
    return {
        "background_threads": series[0]["background_threads"],
        "spin_us": series[0]["spin_us"],
        "call_us": quantity([one["call_us"] for one in series], keep_samples=False),
        "interval_us": quantity(intervals, keep_samples=False),
        "p90_us": percentile(intervals, 90),
        "p99_us": percentile(intervals, 99) if len(pooled) >= P99_MIN_SAMPLES else None,
        "max_us": percentile(intervals, 100),
        "share_over_1ms_percent": round(100 * float(np.mean(pooled > 1000)), 3),
        "calls_per_s": quantity([[1e6 / np.mean(run)] for run in intervals], keep_samples=False),
    }
