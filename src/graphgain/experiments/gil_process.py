"""One process of the `gil` experiment: prints the intervals between a launcher thread's calls.

The call stands for a kernel launch: it enters C, releases the GIL, is busy for a few microseconds
and takes the GIL again. It is libc's `memchr` through `ctypes.CDLL` (which releases the GIL around
every call), searching a buffer for a byte that is not in it. The length that takes the wanted time
is calibrated while no other thread runs, so no compiler is needed. The background threads compute
in pure Python and never give up the GIL of their own accord.
"""

import ctypes
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

BUFFER_BYTES = 1 << 24
_CALIBRATION_CALLS = 301
_LONG_CALLS = 5


def main(argument: str) -> None:
    """Run the parameters given as JSON and print {"series": [...]}."""
    wanted = json.loads(argument)
    sys.setswitchinterval(wanted["switch_interval_ms"] / 1000)
    series = []
    for spin_us in wanted["spin_us"]:
        stub, call_us = calibrated_stub(spin_us)
        for threads in wanted["background_threads"]:
            intervals = measure(stub, threads, wanted["duration_s"], wanted["warmup_s"])
            series.append(
                {
                    "spin_us": spin_us,
                    "background_threads": threads,
                    "call_us": call_us,
                    "intervals_us": intervals,
                }
            )
    print(json.dumps({"gil": gil_enabled(), "series": series}))


def calibrated_stub(spin_us: float) -> tuple[Callable[[], Any], list[float]]:
    """A call that is busy for about `spin_us` without the GIL, and its durations (µs) alone.

    Ends the process with a sentence where the buffer is too short for that.
    """
    memchr = ctypes.CDLL(None).memchr
    memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    memchr.restype = ctypes.c_void_p
    buffer = ctypes.create_string_buffer(BUFFER_BYTES)  # zeros
    address = ctypes.addressof(buffer)

    def stub(length: int) -> Callable[[], Any]:
        # `buffer` is a default argument so that it lives as long as its address is used.
        def call(keep: Any = buffer) -> Any:
            return memchr(address, 1, length)

        return call

    shortest, longest = 0, BUFFER_BYTES
    most_us = statistics.median(durations_us(stub(longest), _LONG_CALLS))
    if most_us < spin_us:
        sys.exit(
            f"spin_us {spin_us:g} is more than the call can be busy here ({most_us:.0f} us); "
            "ask for less."
        )
    while longest - shortest > max(64, longest // 64):
        length = (shortest + longest) // 2
        if statistics.median(durations_us(stub(length), _CALIBRATION_CALLS)) < spin_us:
            shortest = length
        else:
            longest = length
    calibrated = stub(longest)
    return calibrated, durations_us(calibrated, _CALIBRATION_CALLS)


def durations_us(call: Callable[[], Any], count: int) -> list[float]:
    """How long each of `count` calls takes, in µs."""
    clock = time.perf_counter_ns
    durations = []
    for _ in range(count):
        start = clock()
        call()
        durations.append((clock() - start) / 1000)
    return durations


def measure(
    stub: Callable[[], Any], threads: int, duration_s: float, warmup_s: float
) -> list[float]:
    """Intervals (µs) from the start of one call to the start of the next, beside `threads`.

    By time and not by number of calls: a launcher that holds the GIL makes thousands of calls
    before another thread's first request for it falls due.
    """
    stop = threading.Event()
    computing = [threading.Thread(target=compute, args=(stop,)) for _ in range(threads)]
    starts: list[int] = []
    launcher = threading.Thread(target=launch, args=(stub, duration_s, warmup_s, starts))
    for thread in computing:
        thread.start()
    launcher.start()
    launcher.join()
    stop.set()
    for thread in computing:
        thread.join()
    kept = [start for start in starts if start >= starts[0] + round(1e9 * warmup_s)]
    return [(later - earlier) / 1000 for earlier, later in pairwise(kept)]


def launch(stub: Callable[[], Any], duration_s: float, warmup_s: float, starts: list[int]) -> None:
    """Call the stub for `warmup_s` and `duration_s`, and until one interval is after the warm-up.

    Noting when is the little Python between two calls.
    """
    clock = time.perf_counter_ns
    now = clock()
    warm = now + round(1e9 * warmup_s)
    end = warm + round(1e9 * duration_s)
    while now < end or starts[-1] < warm:
        starts.append(now)
        stub()
        now = clock()
    starts.append(now)


def compute(stop: threading.Event) -> None:
    """Pure Python arithmetic until told to stop."""
    value = 1
    while not stop.is_set():
        for _ in range(1000):
            value = (value * 1103515245 + 12345) % 2147483648


def gil_enabled() -> bool:
    """False in a free-threaded Python that runs without the GIL."""
    check = getattr(sys, "_is_gil_enabled", None)
    return True if check is None else bool(check())


if __name__ == "__main__":
    main(sys.argv[1])
