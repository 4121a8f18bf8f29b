"""The life of a server: start, wait until it is healthy, stop with all its processes."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graphgain.engines import keeper
from graphgain.engines.http import NotAnsweredError, ask
from graphgain.errors import MeasureError
from graphgain.measuring.process import child_environment, python_module

GRACE_S = 20.0
_POLL_S = 0.5
_TAIL_LINES = 12
_PROGRESS_S = 10.0
LOOPBACK = "127.0.0.1"


class ServerError(MeasureError):
    """A server could not be started, died, or did not become healthy."""


@dataclass(frozen=True)
class Server:
    """A server that runs; `log` is None for one that was not started by us, `key` its API key."""

    name: str
    url: str
    log: Path | None
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    key: str | None = None

    def check_alive(self) -> None:
        """Raises ServerError with the end of the log where the server has ended."""
        if self.process is not None and self.process.poll() is not None:
            raise ServerError(
                f"{self.name} ended with exit code {self.process.returncode}. {tail(self.log)}"
            )


def free_port(wanted: int | None = None, host: str = LOOPBACK) -> int:
    """A port that nothing listens on; raises ServerError where `wanted` is in use."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted or 0))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "ports are numbers up to 65,535"
            raise ServerError(
                f"Port {wanted} of {host} cannot be used ({reason}): "
                "stop what listens there, or choose another with --port."
            ) from None
        return int(probe.getsockname()[1])


@contextmanager
def started(
    name: str,
    command: Sequence[str],
    url: str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    grace_s: float = GRACE_S,
    last: Sequence[str] = (),
) -> Iterator[Server]:
    """A server from its start to the end of the block, healthy or not; stopped whatever happens.

    Its output goes to `log`. `last` is a command to run once it has ended: it removes what is not
    below the server's process, as a container. Raises ServerError where the command cannot be run.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            python_module(keeper.__name__, str(grace_s), json.dumps(list(last)), *command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**child_environment(), **(environment or {})},
            start_new_session=True,
        )
    try:
        yield Server(name, url, log, process, time.monotonic())
    finally:
        assert process.stdin is not None
        if process.poll() is None:
            print(f"{name}: stopping, at most {grace_s:g} s", file=sys.stderr, flush=True)
        process.stdin.close()
        try:
            process.wait(timeout=grace_s + 30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def await_health(server: Server, path: str, deadline_s: float) -> float:
    """Wait until `path` answers 200; returns the seconds since the start of the server.

    Tells on standard error what the log's last line is. Raises ServerError where the server ends
    before or the deadline passes.
    """
    begin = server.started or time.monotonic()
    told = 0.0
    while True:
        server.check_alive()
        try:
            ask(server.url + path, timeout_s=5, key=server.key)
            # Whoever answers has to be ours: a server that lost its port to another one ends.
            server.check_alive()
            return time.monotonic() - begin
        except NotAnsweredError as error:
            reason = str(error)
        waited = time.monotonic() - begin
        if waited > deadline_s:
            since = "after its start" if server.log else "after it was asked first"
            raise ServerError(
                f"{server.name} was not healthy {deadline_s:g} s {since} "
                f"({server.url}{path}: {reason}). {tail(server.log)}"
            )
        if waited - told >= _PROGRESS_S:
            told = waited
            lines = last_lines(server.log, 1) if server.log else [f"{server.url}: {reason}"]
            line = next(reversed(lines), "")
            print(f"{server.name}: {waited:4.0f} s  {line[:120]}", file=sys.stderr, flush=True)
        time.sleep(_POLL_S)


def tail(log: Path | None) -> str:
    """The end of a log as the last sentence of an error."""
    if log is None:
        return "It was not started by graphgain, so its log is elsewhere."
    lines = last_lines(log, _TAIL_LINES)
    shown = "\n  ".join(lines) if lines else "(empty)"
    return f"Its log {log} ends:\n  {shown}"


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file that are not empty."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 16384))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]
