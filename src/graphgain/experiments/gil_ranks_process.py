"""Ranks in lock-step: steps of a launcher thread in each of several processes, with a barrier.

A step is a number of launcher calls, then `meet` of workflow/native/gil/spin.c, in which a rank
waits for the others without the GIL, as a launcher waits for its GPU. With one rank it returns at
once, and the steps are what a single rank needs.

{"library", "ranks", "background", "background_threads", "spin_us", "switch_interval_ms", "calls",
"seconds"} gives {"step_us": [...]}: the time from one meeting to the next, a meeting being when
the last rank arrives.
"""

import ctypes
import json
import mmap
import multiprocessing
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphgain.experiments.gil_process import Stub, background, die_with_parent

SHARED_BYTES = 4096
STOP = 2
"""Index of the word in which rank 0 writes how many steps there are, when time is up."""
WARMUP_STEPS = 5


def main(argument: str) -> None:
    """Fork the ranks, and print the steps of the group."""
    wanted = json.loads(argument)
    with tempfile.NamedTemporaryFile() as shared:
        shared.truncate(SHARED_BYTES)
        # Forked while this process has one thread, so that each rank starts with one.
        fork = multiprocessing.get_context("fork")
        with fork.Pool(wanted["ranks"], initializer=die_with_parent) as pool:
            ranks = [(wanted, shared.name, rank) for rank in range(wanted["ranks"])]
            arrivals = pool.starmap(run_rank, ranks, chunksize=1)
    print(json.dumps({"step_us": steps_us(arrivals)}))


def steps_us(arrivals: list[list[int]]) -> list[float]:
    """µs from meeting to meeting, given when each rank arrived at each (ns)."""
    meetings = [max(times) for times in zip(*arrivals, strict=True)]
    return [(later - earlier) / 1000 for earlier, later in pairwise(meetings)]


def run_rank(wanted: dict[str, Any], path: str, rank: int) -> list[int]:
    """One rank: when it arrived at each meeting, in ns of the clock that all processes share."""
    sys.setswitchinterval(wanted["switch_interval_ms"] / 1000)
    stub = Stub(wanted["library"])
    call = stub.call("released")
    argument = stub.argument(call, wanted["spin_us"])
    meet = ctypes.CDLL(wanted["library"]).meet
    meet.argtypes, meet.restype = [ctypes.c_void_p, ctypes.c_int], None
    arrivals: list[int] = []
    words = shared_words(path)
    shared = ctypes.addressof(words)

    def launcher() -> None:
        meet(shared, wanted["ranks"])  # all have started
        clock = time.monotonic_ns
        end = clock() + round(1e9 * wanted["seconds"])
        # The number of the last step is set before its meeting, so that all ranks end with it.
        while not words[STOP] or len(arrivals) < words[STOP]:
            for _ in range(wanted["calls"]):
                call(argument)
            now = clock()
            arrivals.append(now)
            if rank == 0 and not words[STOP] and now > end and len(arrivals) > WARMUP_STEPS + 1:
                words[STOP] = len(arrivals)
            meet(shared, wanted["ranks"])

    with background(wanted["background"], wanted["background_threads"]):
        thread = threading.Thread(target=launcher)
        thread.start()
        thread.join()
    return arrivals[WARMUP_STEPS:]


def shared_words(path: str) -> Any:
    """The memory that the ranks share, as an array of ints; it lives as long as the array."""
    with Path(path).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), SHARED_BYTES)
    return (ctypes.c_int * (SHARED_BYTES // ctypes.sizeof(ctypes.c_int))).from_buffer(memory)


if __name__ == "__main__":
    main(sys.argv[1])
