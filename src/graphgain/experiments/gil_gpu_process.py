"""Real launches beside other Python threads: intervals between them, and how long the GPU idles.

The launcher thread issues `launches` kernels through tvm-ffi, waits for the GPU, and begins again:
a step. Without other threads the GPU is the slower side, so what it idles beside them is theirs.

{"library", "launches", "kernel_us", "switch_interval_ms", "min_s", "limit_s", "intervals",
"settings": [{"background", "background_threads", "gil"}]} gives {"gpu_us", "series": [...]}.
"""

import json
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from graphgain.experiments.gil_process import background

CYCLES_GUESS = 10_000
CALIBRATION_KERNELS = 256
CALIBRATIONS = 20


def main(library: str, argument: str) -> None:
    """Measure the settings given as JSON and print one document."""
    import tvm_ffi

    wanted = json.loads(argument)
    sys.setswitchinterval(wanted["switch_interval_ms"] / 1000)
    module = tvm_ffi.load_module(library)
    cycles, gpu_us = calibrate(module, wanted["kernel_us"])
    series = []
    for setting in wanted["settings"]:
        module.launch.release_gil = setting["gil"] == "released"
        with background(setting["background"], setting["background_threads"]):
            intervals, steps = in_thread(lambda: run_steps(module, cycles, wanted))
        counted = sorted(Counter(intervals).items())
        series.append(
            {
                "interval_ns": [ns for ns, _ in counted],
                "interval_count": [count for _, count in counted],
                "step_us": steps,
            }
        )
    print(json.dumps({"gpu_us": gpu_us, "series": series}))


def calibrate(module: Any, kernel_us: float) -> tuple[int, list[float]]:
    """Cycles for a kernel of about `kernel_us`, and the GPU's time from one to the next (µs)."""

    def gpu_us(cycles: int) -> list[float]:
        return [module.gpu_us(cycles, CALIBRATION_KERNELS) for _ in range(CALIBRATIONS)]

    cycles = CYCLES_GUESS
    for _ in range(3):
        cycles = max(1, round(cycles * kernel_us / statistics.median(gpu_us(cycles))))
    return cycles, gpu_us(cycles)


def run_steps(module: Any, cycles: int, wanted: dict[str, Any]) -> tuple[list[int], list[float]]:
    """Intervals (ns) between launches of one step, and the steps (µs) from first launch to idle."""
    launch, synchronize, launches = module.launch, module.synchronize, wanted["launches"]
    clock = time.perf_counter_ns
    intervals: list[int] = []
    steps: list[float] = []
    soonest = clock() + round(1e9 * wanted["min_s"])
    latest = clock() + round(1e9 * wanted["limit_s"])
    while (now := clock()) < soonest or (len(intervals) < wanted["intervals"] and now < latest):
        starts = []
        for _ in range(launches):
            starts.append(clock())
            launch(cycles)
        synchronize()
        steps.append((clock() - starts[0]) / 1000)
        intervals += [later - earlier for earlier, later in pairwise(starts)]
    return intervals, steps


def in_thread(work: Callable[[], Any]) -> Any:
    """The result of `work` in a thread of its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    if not results:
        sys.exit("the launcher thread failed, see above")
    return results[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
