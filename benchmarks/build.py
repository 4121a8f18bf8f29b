"""How long the article takes to build, and how much memory: prints, asserts nothing.

    python benchmarks/build.py [--runs N]

Builds the last commit in a fresh clone, with the packages of the Python that runs this script and
without measuring anything: from nothing, again with nothing to do, and once more for one figure
after its drawing code changed. Memory is that of the whole process tree at its peak, pages shared
between processes counted once (Linux; elsewhere they are counted in each).
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from memory import watch

ROOT = Path(__file__).resolve().parents[1]
FIGURE = "ttft"
DRAWING_CODE = Path("src/graphgain/figures") / f"{FIGURE}.py"
# Reading the memory of a tree costs about 10 ms of a core.
SAMPLE_EVERY_S = 0.25
# Step by step, with what the project aims at.
STEPS = {
    "article from a clean checkout": "≤ 30 s",
    "nothing to do": "≤ 2 s",
    "one figure after its drawing code changed": "≤ 5 s",
}
MEMORY_TARGET = "≤ 600 MB"


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    wall_s: float
    peak_mb: float


def main() -> int:
    """Print a table of the costs; the exit code is 1 where a build fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="default: 3")
    runs = parser.parse_args().runs
    commit = git("rev-parse", "--short=10", "HEAD")
    changed = " (uncommitted changes are not in it)" if git("status", "--porcelain") else ""
    print(f"commit {commit}{changed}, Python {platform.python_version()}, ", end="")
    print(f"{os.cpu_count()} cores, runs: {runs}", flush=True)
    try:
        costs = [build() for _ in range(runs)]
    except subprocess.CalledProcessError as error:
        print(f"\n{' '.join(error.cmd)} failed:\n{error.output}", file=sys.stderr)
        return 1
    print(f"{'step':<43}{'wall time, s':>22}{'peak memory, MB':>18}   aims")
    for position, (step, aim) in enumerate(STEPS.items()):
        times = [run[position].wall_s for run in costs]
        interval = f"{statistics.median(times):.2f} ({min(times):.2f}–{max(times):.2f})"
        peak = max(run[position].peak_mb for run in costs)
        print(f"{step:<43}{interval:>22}{peak:>18.0f}   {aim}, {MEMORY_TARGET}")
    return 0


def build() -> list[Cost]:
    """The cost of each step, in a clone of its own; raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="graphgain-benchmark-") as folder:
        clone = Path(folder) / "graphgain"
        git("clone", "--quiet", str(ROOT), str(clone))
        clean = snakemake(clone, "report")
        idle = snakemake(clone, "report")
        with (clone / DRAWING_CODE).open("a", encoding="utf-8") as code:
            code.write("\n# Changed by benchmarks/build.py.\n")
        figure = snakemake(clone, f"figure_{FIGURE}")
        return [clean, idle, figure]


def snakemake(clone: Path, target: str) -> Cost:
    """Build a target on one core and watch the processes that do it; raises CalledProcessError."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", target]
    command += ["--config", "measure=never"]
    environment = {**os.environ, "PYTHONPATH": str(clone / "src")}
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        peak: list[float] = [0.0]
        watcher = threading.Thread(
            target=watch, args=(psutil.Process(process.pid), peak, SAMPLE_EVERY_S)
        )
        watcher.start()
        output, _ = process.communicate()
        wall_s = time.perf_counter() - start
        watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return Cost(wall_s, peak[0])


def git(*arguments: str) -> str:
    """What git prints in the project's folder; raises CalledProcessError."""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
