"""How fast `graphgain trace` counts, and in how much memory: prints, asserts nothing.

    python benchmarks/traces.py [--scale 1] [--jobs 1 2] [--seed 0] [--reference]

Makes a set with the size and the shape of AgentX's corpus cc-traces-weka-062126 at full scale, a
quarter and a sixteenth (393 conversations, 98,827 requests and 1.85 GB of JSON lines at scale 1;
40 % of the requests in subagents, prompts that grow to hundreds of thousands of tokens, about 1.7 %
of the tokens new), and counts it in a process of its own, start of Python included. MB/s a core is
per second of processor time, so that it also holds on a machine that does other things. Memory is
that of the process tree at its peak, pages shared between processes counted once. `--reference`
also times counting by sets in plain Python, as the tests have it, on the smallest set.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from memory import watch

ROOT = Path(__file__).resolve().parents[1]
SCALES = (1, 1 / 4, 1 / 16)
CONVERSATIONS, REQUESTS = 393, 98_827
MOST_BLOCKS = 14_000  # of a prompt: about 900,000 tokens
BLOCK_TOKENS = 64
SAMPLE_EVERY_S = 0.1
AIMS = "aims: ≥ 150 MB/s a core, ≤ 1 GB, whole set ≤ 15 s on two cores"


def main() -> int:
    """Print a table of the times; the exit code is 1 where counting fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the largest set (default: 1)")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", action="store_true", help="time plain Python as well")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, ", end="")
    print(f"load {os.getloadavg()[0]:.1f} before, seed {options.seed}; {AIMS}", flush=True)
    header = ("MB", "requests", "jobs", "s", "CPU s", "MB/s", "MB/s a core", "requests/s")
    print("".join(f"{name:>12}" for name in (*header, "peak MB")))
    with tempfile.TemporaryDirectory(prefix="graphgain-benchmark-") as folder:
        for scale in (options.scale * part for part in SCALES):
            path = Path(folder) / "traces.jsonl"
            requests = write_set(path, scale, options.seed)
            size_mb = path.stat().st_size / 1e6
            for jobs in options.jobs:
                wall_s, cpu_s, peak_mb = count(path, jobs)
                times = f"{wall_s:>12.2f}{cpu_s:>12.2f}"
                speeds = (size_mb / wall_s, size_mb / cpu_s, requests / wall_s, peak_mb)
                print(f"{size_mb:>12,.0f}{requests:>12,}{jobs:>12}{times}", end="")
                print("".join(f"{speed:>12,.0f}" for speed in speeds), flush=True)
        if options.reference:
            print_reference(path, size_mb)
    return 0


def write_set(path: Path, scale: float, seed: int) -> int:
    """Write conversations as JSON lines and return the number of their requests."""
    dice = random.Random(seed)
    conversations = max(round(CONVERSATIONS * scale), 1)
    total = 0
    with path.open("w", encoding="ascii") as stream:
        for number in range(conversations):
            # Lengths are skewed, as in the corpus, and add up to about the same mean.
            size = max(round(dice.expovariate(1) * REQUESTS / CONVERSATIONS), 3)
            stream.write(conversation(f"made-{number}", size, dice))
            total += size
    return total


def conversation(name: str, size: int, dice: random.Random) -> str:
    """One conversation of `size` requests as a line of JSON."""
    next_id = 1
    entries = []
    left, at_s = size, 0.0
    parent: list[str] = []
    while left:
        at_s += dice.uniform(2, 60)
        if left > 3 and parent and dice.random() < 0.045:
            inner_size = min(left, max(round(dice.expovariate(1 / 16)), 1))
            context: list[str] = []
            inner = []
            for turn in range(inner_size):
                next_id = grow(context, next_id, dice, first_blocks=250)
                inner.append(request(at_s + 5.0 * turn, context, dice))
            left -= inner_size
            entries.append(
                f'{{"t":{at_s:.3f},"type":"subagent","agent_id":"agent_{len(entries)}",'
                f'"requests":[{",".join(inner)}]}}'
            )
            continue
        if parent and (len(parent) > MOST_BLOCKS or dice.random() < 0.002):
            del parent[max(len(parent) // 3, 1) :]  # the context is compacted
        next_id = grow(parent, next_id, dice, first_blocks=600)
        entries.append(request(at_s, parent, dice))
        left -= 1
    return (
        f'{{"id":"{name}","models":["made"],"block_size":{BLOCK_TOKENS},"hash_id_scope":"local",'
        f'"requests":[{",".join(entries)}]}}\n'
    )


def grow(context: list[str], next_id: int, dice: random.Random, first_blocks: int) -> int:
    """Add new blocks to a prompt; returns the next id that is free."""
    new = round(dice.lognormvariate(3.1, 1.2)) + 1
    if not context:
        new += round(first_blocks * dice.lognormvariate(0, 0.7))
    context.extend(map(str, range(next_id, next_id + new)))
    return next_id + new


def request(at_s: float, context: list[str], dice: random.Random) -> str:
    """One request as JSON."""
    return (
        f'{{"t":{at_s:.3f},"type":"s","model":"made","in":{BLOCK_TOKENS * len(context)},'
        f'"out":{dice.randrange(20, 2000)},"hash_ids":[{",".join(context)}],"api_time":4.25}}'
    )


def count(path: Path, jobs: int) -> tuple[float, float, float]:
    """Wall time, processor time and peak memory of counting a file; raises CalledProcessError."""
    command = [sys.executable, "-m", "graphgain", "trace", str(path), "--no-cache"]
    command += ["--jobs", str(jobs), "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    before, start = cpu_of_children(), time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        peak = [0.0]
        watcher = threading.Thread(
            target=watch, args=(psutil.Process(process.pid), peak, SAMPLE_EVERY_S)
        )
        watcher.start()
        process.communicate()
        wall_s = time.perf_counter() - start
        watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return wall_s, cpu_of_children() - before, peak[0]


def cpu_of_children() -> float:
    """Seconds of processor time that all processes started here have used, once they ended."""
    times = os.times()
    return times.children_user + times.children_system


def print_reference(path: Path, size_mb: float) -> None:
    """Time the tests' plain Python on a file."""
    sys.path.insert(0, str(ROOT / "tests"))
    from trace_reference import leads, weka_turns

    start = time.process_time()
    with path.open(encoding="ascii") as stream:
        for line in stream:
            leads(weka_turns(json.loads(line), "shared", relative=False), "shared")
    cpu_s = time.process_time() - start
    print(f"plain Python, {size_mb:,.0f} MB: {cpu_s:.2f} CPU s, {size_mb / cpu_s:,.0f} MB/s a core")


if __name__ == "__main__":
    sys.exit(main())
