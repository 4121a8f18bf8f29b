"""A process between us and a server: whatever happens to us, the server and all it started end.

Run as `python -m graphgain.engines.keeper GRACE_S LAST COMMAND...`; LAST is a JSON list, a command
to run at the end or none. It ends the server when its standard input ends, which it does even if we
are killed with SIGKILL, and when it is told to terminate. It is its own session, and takes in (as a
subreaper) what the server's processes leave behind.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.1


def main(grace_s: float, last: list[str], command: list[str]) -> int:
    """Run the command until it ends or standard input does; returns its exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _exit)
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_us)
    except OSError as error:
        print(f"{command[0]} could not be started: {error.strerror}.", flush=True)
        return 127
    try:
        while server.poll() is None:
            readable, _, _ = select.select([0], [], [], _POLL_S)
            if readable and not os.read(0, 4096):
                break
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end_descendants(os.getpid(), grace_s)
        if last:
            subprocess.run(last, stdin=subprocess.DEVNULL, check=False)
    return server.wait()


def end_descendants(root: int, grace_s: float) -> None:
    """SIGTERM to every descendant of `root`, SIGKILL to those that are there after `grace_s`."""
    deadline = time.monotonic() + grace_s
    for pid in descendants(root):
        _send(pid, signal.SIGTERM)
    while alive := descendants(root):
        if time.monotonic() > deadline:
            for pid in alive:
                _send(pid, signal.SIGKILL)
        _reap()
        time.sleep(_POLL_S)


def descendants(root: int) -> list[int]:
    """The processes below `root` that have not ended, from /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name of a process is in brackets and may hold spaces and brackets itself.
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # ended while we looked
        if state != "Z":
            parents[int(entry.name)] = int(parent)
    found, frontier = [], {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


def _die_with_us() -> None:
    # If we are killed with SIGKILL, the server at least is told to terminate.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap() -> None:
    """Collect what has ended, our own child excepted: Popen waits for that."""
    try:
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
            if ended is None:
                return
    except ChildProcessError:
        return


def _exit(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
