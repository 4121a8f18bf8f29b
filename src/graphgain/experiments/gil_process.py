"""One process of the `gil` experiment: how long a launcher thread takes from call to call.

It runs under any Python from 3.11 on with nothing but the standard library, so it is started by its
path and imports nothing of this package.

The launcher's call stands for a kernel launch: it enters C through ctypes and is busy for a given
time, with the GIL released (`ctypes.CDLL`) or kept (`ctypes.PyDLL`). With a C compiler it is
`spin` of workflow/native/gil/spin.c, which watches the monotonic clock. Without one it is libc's
`memchr`, searching a buffer for a byte that is not in it, over a length that is calibrated while no
other thread runs; what that call takes may then differ from what was asked for, and is printed.

The threads beside it compute in pure Python, poll a queue with a timeout, or write and read a few
bytes; none does anything for the launcher.
"""

import contextlib
import ctypes
import json
import platform
import queue
import signal
import socket
import statistics
import subprocess
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

Call = Callable[[int], Any]

POLL_S = 0.001
IO_BYTES = 64
BUFFER_BYTES = 1 << 24
PAIRS = 50
_CALIBRATION_CALLS = 101
_LONG_CALLS = 5
_CORRECTIONS = 3
_PR_SET_PDEATHSIG = 1


def main(argument: str) -> None:
    """Measure the settings given as JSON, in `processes` processes at once, and print a document.

    {"library": path of spin.c's library or null, "processes": 3, "settings": [...]} gives
    {"runs": [{"python", "free_threaded", "gil", "series": [...]}]}, one run a process.
    """
    wanted = json.loads(argument)
    if wanted["processes"] > 1:
        print(json.dumps({"runs": run_copies(wanted)}))
        return
    die_with_parent()
    stub = Stub(wanted["library"])
    series = [measure_setting(stub, setting) for setting in wanted["settings"]]
    print(json.dumps({"runs": [{**describe_python(), "series": series}]}))


def run_copies(wanted: dict[str, Any]) -> list[Any]:
    """The runs of several processes that measure the same at the same time."""
    command = [sys.executable, __file__, json.dumps({**wanted, "processes": 1})]
    copies = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for _ in range(wanted["processes"])
    ]
    outputs = [copy.communicate()[0] for copy in copies]
    if any(copy.returncode for copy in copies):
        sys.exit("a measuring process failed, see above")
    return [run for output in outputs for run in json.loads(output)["runs"]]


def die_with_parent() -> None:
    """End with the process that started this one, however it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def describe_python() -> dict[str, Any]:
    """Which Python this is, and whether it runs with a GIL."""
    check = getattr(sys, "_is_gil_enabled", None)
    return {
        "python": platform.python_version(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil": True if check is None else bool(check()),
    }


class Stub:
    """The call into C: `call(gil)` gives a function of the argument that `argument` calculates."""

    def __init__(self, library: str | None) -> None:
        self.library = library
        # Zeros; kept here because memchr gets the address alone.
        self._buffer = None if library else ctypes.create_string_buffer(BUFFER_BYTES)

    def call(self, gil: str) -> Call:
        """A function that is busy in C, with the GIL "released" or "kept"."""
        load = ctypes.CDLL if gil == "released" else ctypes.PyDLL
        if self.library:
            spin = load(self.library).spin
            spin.argtypes, spin.restype = [ctypes.c_int64], None
            return spin
        memchr = load(None).memchr
        memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        memchr.restype = ctypes.c_void_p
        address = ctypes.addressof(self._buffer)  # type: ignore[arg-type]
        return lambda length: memchr(address, 1, length)

    def argument(self, call: Call, spin_us: float) -> int:
        """What to call it with so that it is busy for `spin_us`: nanoseconds, or a length."""
        if self.library:
            return calibrated_ns(call, spin_us) if spin_us else 0
        most_us = statistics.median(durations_us(call, BUFFER_BYTES, _LONG_CALLS))
        if most_us < spin_us:
            sys.exit(
                f"spin_us {spin_us:g} is more than the call can be busy here ({most_us:.0f} us); "
                "ask for less, or install a C compiler."
            )
        shortest, longest = 0, BUFFER_BYTES
        while spin_us and longest - shortest > max(64, longest // 64):
            length = (shortest + longest) // 2
            if statistics.median(durations_us(call, length, _CALIBRATION_CALLS)) < spin_us:
                shortest = length
            else:
                longest = length
        return longest if spin_us else 0


def calibrated_ns(call: Call, spin_us: float) -> int:
    """What `spin` is asked for so that its call takes `spin_us` longer than an empty call."""
    wanted = argument = round(1000 * spin_us)
    for _ in range(_CORRECTIONS):
        empty_us = statistics.median(durations_us(call, 0, _CALIBRATION_CALLS))
        took_us = statistics.median(durations_us(call, argument, _CALIBRATION_CALLS)) - empty_us
        argument = max(1, argument + wanted - round(1000 * took_us))
    return argument


def durations_us(call: Call, argument: int, count: int) -> list[float]:
    """How long each of `count` calls takes, in µs, reading the clock included."""
    clock = time.perf_counter_ns
    durations = []
    for _ in range(count):
        start = clock()
        call(argument)
        durations.append((clock() - start) / 1000)
    return durations


def measure_setting(stub: Stub, setting: dict[str, Any]) -> dict[str, Any]:
    """One setting's series: the call alone, the loop with and without a thread, the intervals.

    Intervals are counted by their length in ns, as there may be millions.
    """
    sys.setswitchinterval(setting["switch_interval_ms"] / 1000)
    call = stub.call(setting["gil"])
    argument = stub.argument(call, setting["spin_us"])
    alone = not setting["background_threads"]
    bare_us, thread_us = compare_loops(call, argument, setting["min_s"]) if alone else ([], [])
    intervals = measure(call, argument, setting)
    counted = sorted(Counter(intervals).items())
    return {
        "empty_us": durations_us(call, 0, _CALIBRATION_CALLS),
        "call_us": durations_us(call, argument, _CALIBRATION_CALLS),
        "bare_us": bare_us,
        "thread_us": thread_us,
        "interval_ns": [ns for ns, _ in counted],
        "interval_count": [count for _, count in counted],
    }


def measure(call: Call, argument: int, setting: dict[str, Any]) -> list[int]:
    """Intervals (ns) from the start of one call to the start of the next, beside other threads.

    It ends after `min_s` with at least `intervals` of them, and after `limit_s` in any case: a
    launcher that keeps the GIL makes thousands of calls before another thread's first request for
    it falls due, one that loses it at every call makes few a second.
    """
    starts: list[int] = []

    def launcher() -> None:
        warm = time.perf_counter_ns() + round(1e9 * setting["warmup_s"])
        launch(call, argument, starts, 1, warm, warm)
        starts.clear()
        now = time.perf_counter_ns()
        soonest = now + round(1e9 * setting["min_s"])
        latest = now + round(1e9 * setting["limit_s"])
        launch(call, argument, starts, setting["intervals"] + 1, soonest, latest)

    with background(setting["background"], setting["background_threads"]):
        thread = threading.Thread(target=launcher)
        thread.start()
        thread.join()
    return [later - earlier for earlier, later in pairwise(starts)]


def launch(
    call: Call, argument: int, starts: list[int], count: int, soonest: int, latest: int
) -> None:
    """Call again and again and note when: the little Python between two calls.

    Until the clock is past `soonest` with `count` starts noted, or past `latest`; there are always
    two starts.
    """
    clock = time.perf_counter_ns
    now = clock()
    while now < soonest or (len(starts) < count and now < latest) or len(starts) < 1:
        starts.append(now)
        call(argument)
        now = clock()
    starts.append(now)


def compare_loops(call: Call, argument: int, seconds: float) -> tuple[list[float], list[float]]:
    """µs a call of the launcher's loop in the main thread alone, and in a thread of its own.

    `PAIRS` of each, taking turns, as a core does not keep its speed. The main thread's come from
    the whole time of a turn and its number of calls, and not from the times that the loop notes, as
    the others do.
    """
    clock, turn_ns = time.perf_counter_ns, round(1e9 * seconds / PAIRS / 2)
    bare: list[float] = []
    threaded: list[float] = []
    for _ in range(PAIRS):
        starts: list[int] = []
        begin = clock()
        launch(call, argument, starts, 1, begin + turn_ns, begin + turn_ns)
        bare.append((clock() - begin) / 1000 / (len(starts) - 1))
        starts.clear()
        end = clock() + turn_ns
        thread = threading.Thread(target=launch, args=(call, argument, starts, 1, end, end))
        thread.start()
        thread.join()
        threaded.append((starts[-1] - starts[0]) / 1000 / (len(starts) - 1))
    return bare, threaded


@contextlib.contextmanager
def background(kind: str, count: int) -> Iterator[None]:
    """Threads of one kind that run until the block ends."""
    stop = threading.Event()
    threads = [threading.Thread(target=KINDS[kind], args=(stop,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def compute(stop: threading.Event) -> None:
    """Pure Python arithmetic: it never gives the GIL up of its own accord."""
    value = 1
    while not stop.is_set():
        for _ in range(1000):
            value = (value * 1103515245 + 12345) % 2147483648


def poll(stop: threading.Event) -> None:
    """Waiting for work that does not come, as a scheduler's queue threads do most of the time."""
    inbox: queue.Queue[None] = queue.Queue()
    while not stop.is_set():
        try:
            inbox.get(timeout=POLL_S)
        except queue.Empty:
            continue


def io(stop: threading.Event) -> None:
    """A few bytes through a socket and back out, again and again; each end releases the GIL."""
    near, far = socket.socketpair()
    with near, far:
        message = bytes(IO_BYTES)
        while not stop.is_set():
            near.send(message)
            far.recv(IO_BYTES)


KINDS: dict[str, Callable[[threading.Event], None]] = {
    "none": compute,
    "compute": compute,
    "poll": poll,
    "io": io,
}

if __name__ == "__main__":
    main(sys.argv[1])
