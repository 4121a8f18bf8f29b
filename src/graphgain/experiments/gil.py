"""`gil`: how other Python threads delay a thread that keeps releasing the GIL.

Not every combination is measured, but slices through a middle: beside each kind and number of
threads at one length of call; each length of call beside none and one computing thread; each switch
interval beside one; calls that keep the GIL; each CPython found; ranks in lock-step; and, with a
GPU, real launches.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphgain.errors import ConfigError, GraphgainError, MeasureError
from graphgain.experiments import Context, gil_gpu_process, gil_process, gil_ranks_process
from graphgain.experiments.ffi_launch import library_flags
from graphgain.experiments.gil_interpreters import Interpreter, find_interpreters
from graphgain.experiments.gil_lock_step import measured, min_samples, resampled
from graphgain.measuring import gpu, lock
from graphgain.measuring.cc import build_c_library
from graphgain.measuring.native import SOURCES, build_program
from graphgain.measuring.nvcc import find_nvcc
from graphgain.measuring.packages import is_importable
from graphgain.measuring.process import python_module, run_json
from graphgain.measuring.summary import SUMMARY_DIGITS, percentile, quantity, significant

_TIMEOUT_S = 1800
_COMPUTING = (0, 1)
_KEPT_SPIN_US = 1.0

PROBABILITIES = (
    *(0.0, 0.0001, 0.001, 0.01),
    *(round(0.02 * step, 2) for step in range(1, 50)),
    *(0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99999, 1.0),
)
"""Where a distribution is kept: its quantiles at these probabilities, linearly interpolated. Those
that the number of intervals cannot support are null; 10,000 support all but the last few."""

BINS_PER_DECADE = 100

CORES_OF_TWO_RANKS = 4
"""Each rank has a launcher in its call and a thread that computes meanwhile."""

Counts = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]
"""Lengths of intervals in µs, rising, and how many there are of each."""


@dataclass(frozen=True)
class Setting:
    """What one row measures."""

    background: Literal["none", "compute", "poll", "io"]
    background_threads: int
    spin_us: float
    switch_interval_ms: float
    gil: Literal["released", "kept"] = "released"


def measure(context: Context) -> dict[str, Any]:
    """Run the slices in independent processes; returns the parts of the `gil` document."""
    wanted = context.parameters
    library = build_c_library(SOURCES / "gil" / "spin.c", context.build)
    interpreters = find_interpreters(wanted["interpreters"])
    own = gil_process.describe_python()
    if not own["gil"]:
        raise MeasureError(
            "This Python runs without a GIL, so there is nothing to measure; "
            "it is measured beside one that has it."
        )
    rows = run_settings(context, library, None, settings(wanted))
    for interpreter in interpreters.values():
        if interpreter and interpreter.version != own["python"]:
            rows += run_settings(context, library, interpreter, beside_computing(wanted))
    lock_step, skipped_ranks = run_ranks(wanted, library)
    launches, skipped_gpu = run_gpu(context)
    return {
        "parameters": {
            "python": own["python"],
            "switch_interval_ms": wanted["switch_interval_ms"],
            "stub": "clock" if library else "memchr",
            "spin_us": wanted["launch_us"],
            "poll_ms": 1000 * gil_process.POLL_S,
            "io_bytes": gil_process.IO_BYTES,
            "intervals": wanted["intervals"],
            "min_s": wanted["min_s"],
            "limit_s": wanted["limit_s"],
            "process_runs": wanted["process_runs"],
            "processes_at_once": processes_at_once(wanted),
            "calls_per_step": wanted["calls_per_step"],
        },
        "probabilities": list(PROBABILITIES),
        "rows": rows,
        "interpreters": [
            describe_interpreter(release, found) for release, found in interpreters.items()
        ],
        "lock_step": lock_step,
        "lock_step_skipped": skipped_ranks,
        "gpu": launches,
        "gpu_skipped": skipped_gpu,
    }


def settings(wanted: Any) -> list[Setting]:
    """The slices for this Python, each setting once."""
    middle_us, switch_ms = wanted["launch_us"], wanted["switch_interval_ms"]
    crowd = [
        Setting("none", 0, middle_us, switch_ms)
        if not threads
        else Setting(kind, threads, middle_us, switch_ms)
        for kind in wanted["background"]
        for threads in wanted["background_threads"]
    ]
    lengths = [
        _computing(threads, spin_us, switch_ms)
        for spin_us in wanted["spin_us"]
        for threads in _COMPUTING
    ]
    switches = [_computing(1, middle_us, other_ms) for other_ms in wanted["switch_intervals_ms"]]
    kept = [
        _computing(threads, spin_us, switch_ms, "kept")
        for spin_us in (_KEPT_SPIN_US, middle_us)
        for threads in _COMPUTING
    ]
    return list(dict.fromkeys([*crowd, *lengths, *switches, *kept]))


def beside_computing(wanted: Any) -> list[Setting]:
    """The slice for every other Python."""
    return [
        _computing(threads, wanted["launch_us"], wanted["switch_interval_ms"])
        for threads in _COMPUTING
    ]


def _computing(
    threads: int, spin_us: float, switch_ms: float, gil: Literal["released", "kept"] = "released"
) -> Setting:
    return Setting("compute" if threads else "none", threads, spin_us, switch_ms, gil)


def processes_at_once(wanted: Any) -> int:
    """How many processes run at the same time without sharing a core.

    However many threads a process has, one of them runs Python and one is in a call.
    """
    return max(1, min(int(wanted["process_runs"]), len(os.sched_getaffinity(0)) // 3))


def run_settings(
    context: Context, library: Path | None, python: Interpreter | None, chosen: list[Setting]
) -> list[dict[str, Any]]:
    """A row a setting, from `process_runs` processes of this or another Python."""
    wanted = context.parameters
    each = -(-wanted["intervals"] // wanted["process_runs"])
    timing = {
        **{name: wanted[name] for name in ("min_s", "limit_s", "warmup_s")},
        "intervals": each,
    }
    listed = [{**asdict(setting), **timing} for setting in chosen]
    command = (
        [python.path, str(Path(gil_process.__file__))]
        if python
        else python_module(gil_process.__name__)
    )
    runs: list[dict[str, Any]] = []
    while len(runs) < wanted["process_runs"]:
        together = min(processes_at_once(wanted), wanted["process_runs"] - len(runs))
        argument = {
            "library": str(library) if library else None,
            "processes": together,
            "settings": listed,
        }
        runs += run_json(
            [*command, json.dumps(argument)], name="The GIL launcher", timeout_s=_TIMEOUT_S
        )["runs"]
    return [
        row(setting, runs[0], series)
        for setting, *series in zip(chosen, *(run["series"] for run in runs), strict=True)
    ]


def row(
    setting: Setting, python: dict[str, Any], series: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """One setting's row from its series, one a process run."""
    counts = [interval_counts(one) for one in series]
    bare = [one["bare_us"] for one in series]
    result = {
        **asdict(setting),
        **{name: python[name] for name in ("python", "free_threaded")},
        "holds_gil": python["gil"],
        "empty_us": quantity([one["empty_us"] for one in series], keep_samples=False),
        "call_us": quantity([one["call_us"] for one in series], keep_samples=False),
        **distribution(counts, setting.switch_interval_ms),
    }
    if all(bare):
        result["bare_loop_us"] = quantity(bare, keep_samples=False)
        result["above_bare_loop_percent"] = quantity(
            [100 * (np.array(one["thread_us"]) / np.array(one["bare_us"]) - 1) for one in series],
            keep_samples=False,
        )
    return result


def interval_counts(series: dict[str, Any]) -> Counts:
    """The intervals of one process run."""
    return np.array(series["interval_ns"]) / 1000, np.array(series["interval_count"])


def distribution(counts: Sequence[Counts], switch_interval_ms: float) -> dict[str, Any]:
    """Summary of intervals: percentiles that their number supports, and what was interrupted.

    An interval longer than half a switch interval is an interruption: calls are far shorter, and
    a thread that does not give the GIL up is asked for it after a whole one.
    """
    runs = [np.repeat(lengths, times) for lengths, times in counts]
    pooled = np.concatenate(runs)
    interruptions = [run[run > 500 * switch_interval_ms] for run in runs]
    many = [run for run in interruptions if len(run)]
    return {
        "interval_us": quantity(runs, keep_samples=False),
        **{
            name: percentile(runs, percent) if len(pooled) >= min_samples(percent) else None
            for name, percent in (("p90_us", 90), ("p99_us", 99), ("p999_us", 99.9))
        },
        "max_us": percentile(runs, 100),
        "share_over_1ms_percent": share_percent(pooled > 1000),
        "share_interrupted_percent": share_percent(pooled > 500 * switch_interval_ms),
        "interruption_us": quantity(many, keep_samples=False) if many else None,
        "interruption_mode_us": mode_us(np.concatenate(many)) if many else None,
        "mode_us": mode_us(pooled),
        "calls_per_s": quantity([[1e6 / float(np.mean(run))] for run in runs], keep_samples=False),
        "quantiles_us": [
            significant(float(value), SUMMARY_DIGITS)
            if tells_quantile(probability, len(pooled))
            else None
            for probability, value in zip(
                PROBABILITIES, np.quantile(pooled, PROBABILITIES), strict=True
            )
        ],
    }


def tells_quantile(probability: float, intervals: int) -> bool:
    """Whether so many intervals tell a quantile, by the rule for percentiles at either end.

    The shortest and the longest are what they are.
    """
    rarer = max(probability, 1 - probability)
    return rarer == 1 or intervals >= min_samples(100 * rarer)


def share_percent(which: npt.NDArray[np.bool_]) -> float:
    """How many are true, in percent, to five digits."""
    return significant(100 * float(np.mean(which)), 5)


def mode_us(values: npt.NDArray[np.float64]) -> float:
    """The middle of the fullest of logarithmic bins, 100 a decade."""
    bins, times = np.unique(
        np.floor(BINS_PER_DECADE * np.log10(np.maximum(values, 1e-3))), return_counts=True
    )
    return significant(float(10 ** ((bins[np.argmax(times)] + 0.5) / BINS_PER_DECADE)), 4)


def describe_interpreter(release: str, found: Interpreter | None) -> dict[str, Any]:
    """An entry of the document's list of Pythons."""
    return {
        "release": release,
        "version": found.version if found else None,
        "free_threaded": release.endswith("t"),
        "skipped": None if found else "not installed",
    }


def run_ranks(wanted: Any, library: Path | None) -> tuple[list[dict[str, Any]], str | None]:
    """Steps of groups: resampled from single ranks for every size, and of two real ranks.

    The latter not where their launchers and computing threads would have to share cores.
    """
    if library is None:
        return [], "no C compiler was found, and the ranks' barrier is written in C"
    rows = []
    for background in wanted["rank_backgrounds"]:
        kind, threads = parse_background(background)
        argument = {
            "library": str(library),
            "background": kind,
            "background_threads": threads,
            "spin_us": wanted["launch_us"],
            "switch_interval_ms": wanted["switch_interval_ms"],
            "calls": wanted["calls_per_step"],
            "seconds": wanted["rank_s"],
        }
        found = resampled(group_steps(argument, 1, wanted["process_runs"]), wanted["ranks"])
        if kind != "compute" or len(os.sched_getaffinity(0)) >= CORES_OF_TWO_RANKS:
            found.append(measured(group_steps(argument, 2, wanted["process_runs"]), 2))
        rows += [{"background": kind, "background_threads": threads, **one} for one in found]
    return rows, None


def group_steps(argument: dict[str, Any], ranks: int, runs: int) -> npt.NDArray[np.float64]:
    """The steps of so many groups of ranks, one after the other."""
    command = python_module(gil_ranks_process.__name__, json.dumps({**argument, "ranks": ranks}))
    return np.concatenate(
        [
            run_json(command, name="The group of ranks", timeout_s=_TIMEOUT_S)["step_us"]
            for _ in range(runs)
        ]
    )


def parse_background(text: str) -> tuple[str, int]:
    """ "poll:4" → ("poll", 4); raises ConfigError."""
    kind, colon, threads = text.partition(":")
    if kind not in gil_process.KINDS or not colon or not threads.isdigit():
        raise ConfigError(f"gil: {text!r} is not a kind and a number of threads, such as poll:4.")
    return kind, int(threads)


def run_gpu(context: Context) -> tuple[list[dict[str, Any]], str | None]:
    """Rows of real launches, or why there are none."""
    wanted = context.parameters
    device = gpu.find_gpu()
    if device is None:
        return [], gpu.NOT_FOUND
    if find_nvcc() is None:
        return [], "nvcc was not found"
    if not is_importable("tvm_ffi"):
        return [], "apache-tvm-ffi is not installed"
    from tvm_ffi import libinfo

    argument = {
        "launches": wanted["gpu_launches"],
        "kernel_us": wanted["gpu_kernel_us"],
        "switch_interval_ms": wanted["switch_interval_ms"],
        "intervals": -(-wanted["intervals"] // wanted["process_runs"]),
        "min_s": wanted["min_s"],
        "limit_s": wanted["gpu_limit_s"],
        "settings": [
            {"background": kind, "background_threads": threads, "gil": gil}
            for gil in ("released", "kept")
            for kind, threads in (("none", 0), *map(parse_background, wanted["gpu_backgrounds"]))
        ],
    }
    try:
        library = build_program(
            SOURCES / "gil" / "spin_kernel.cu",
            context.build,
            context.arch,
            library_flags(libinfo),
            suffix=".so",
        )
        with lock.exclusive(device.lock_name):
            runs = [
                run_json(
                    python_module(gil_gpu_process.__name__, str(library), json.dumps(argument)),
                    name="The GPU launcher",
                    timeout_s=_TIMEOUT_S,
                )
                for _ in range(wanted["process_runs"])
            ]
    except GraphgainError as error:
        return [], " ".join(str(error).split())
    return gpu_rows(argument, runs), None


def gpu_rows(argument: dict[str, Any], runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of real launches from what the processes printed.

    The GPU idles for what of a step is left over by its kernels, one after the other.
    """
    launches = argument["launches"]
    rows = []
    for setting, *series in zip(
        argument["settings"], *(run["series"] for run in runs), strict=True
    ):
        busy_us = [launches * float(np.median(run["gpu_us"])) for run in runs]
        idle_percent = [
            [100 * max(0.0, 1 - busy / step) for step in one["step_us"]]
            for busy, one in zip(busy_us, series, strict=True)
        ]
        rows.append(
            {
                **setting,
                "launches_per_step": launches,
                "gpu_us_per_kernel": quantity([run["gpu_us"] for run in runs], keep_samples=False),
                "step_us": quantity([one["step_us"] for one in series], keep_samples=False),
                "gpu_idle_percent": quantity(idle_percent, keep_samples=False),
                **distribution(
                    [interval_counts(one) for one in series], argument["switch_interval_ms"]
                ),
            }
        )
    return rows
