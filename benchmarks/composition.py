"""How fast a profile is read, and how much memory that takes: a made trace of so many megabytes.

python benchmarks/composition.py [MEGABYTES]
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import psutil
from memory import watch

EVENT = {
    "ph": "X", "cat": "kernel", "name": "void kernel<float, 128, 64>(float const*, float*, int)",
    "pid": 0, "tid": 7, "ts": 0.0, "dur": 4.0,
    "args": {"External id": 1, "queued": 0, "device": 0, "context": 1, "stream": 7,
             "correlation": 0, "registers per thread": 96, "shared memory": 0,
             "grid": [132, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 12},
}  # fmt: skip
CALL = {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 9,
    "ts": 0.0, "dur": 3.0, "args": {"External id": 1, "cbid": 211, "correlation": 0},
}  # fmt: skip
OPERATOR = {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 9, "ts": 0.0, "dur": 30.0,
    "args": {"External id": 1, "Record function id": 0, "Ev Idx": 0},
}  # fmt: skip


def write_trace(path: Path, megabytes: int) -> int:
    """A trace of eight requests of at least that size; returns the number of its launches."""
    launches = 0
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "baseTimeNanoseconds": 1, "traceEvents": [\n')
        separator = ""
        while file.tell() < megabytes * 1e6:
            for _ in range(1000):
                launches += 1
                at = 20.0 * launches
                for event in (OPERATOR, CALL, EVENT):
                    args = {**event["args"], "correlation": launches}  # type: ignore[dict-item]
                    file.write(separator + json.dumps({**event, "ts": at, "args": args}, indent=1))
                    separator = ",\n"
        file.write("\n]}\n")
    return launches


def main() -> None:
    """Print size, time and peak memory."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        launches = write_trace(path, megabytes)
        size_mb = path.stat().st_size / 1e6
        begin, peak_mb = time.monotonic(), [0.0]
        command = [sys.executable, "-m", "graphgain", "ttft", "--compose", str(path)]
        with psutil.Popen(command) as process:
            watch(process, peak_mb, every_s=0.1)
        seconds = time.monotonic() - begin
        if process.returncode:
            sys.exit(process.returncode)
    print(
        f"{size_mb:.0f} MB with {launches:,} launches: {seconds:.1f} s, "
        f"{size_mb / seconds:.0f} MB/s, at most {peak_mb[0]:.0f} MB of memory"
    )


if __name__ == "__main__":
    main()
