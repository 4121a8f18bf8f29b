"""The largest memory that a benchmarked process and its descendants take together."""

import time

import psutil


def watch(root: psutil.Process, peak: list[float], every_s: float) -> None:
    """Keep the largest memory of a process and its descendants, in MB, until it ends."""
    while True:
        try:
            if root.status() == psutil.STATUS_ZOMBIE:
                return
            tree = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        peak[0] = max(peak[0], sum(map(memory_mb, tree)))
        time.sleep(every_s)


def memory_mb(process: psutil.Process) -> float:
    """Proportional set size of a process, or its resident set size where there is no such thing."""
    try:
        memory = process.memory_full_info()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0  # it ended between being listed and being read
    return float(getattr(memory, "pss", memory.rss)) / 1e6
