"""Servers: started, awaited and stopped with all that they started, whatever happens."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from graphgain.engines import server as servers
from graphgain.engines.keeper import descendants
from graphgain.engines.server import ServerError, await_health, free_port, started

FAKE = Path(__file__).parent / "fake_engine.py"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_POLL_S", 0.02)


def command(port: int, folder: Path, *more: str) -> list[str]:
    return [sys.executable, str(FAKE), str(port), "--pid-file", str(folder / "pids"), *more]


def ended(pid: int) -> bool:
    """Whether a process has ended: it is not there, or waits for nobody but its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pids(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def test_a_server_is_awaited_and_stopped_with_its_children(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started("fake", command(port, tmp_path), url, tmp_path / "log") as server:
        assert await_health(server, "/health", 60) > 0
        running = pids(tmp_path)
        assert not any(map(ended, running))
    assert all(map(ended, running))
    assert "loading" in (tmp_path / "log").read_text()


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    port = free_port()
    arguments = command(port, tmp_path, "--fault", "ignores stop")
    with started(
        "fake", arguments, f"http://127.0.0.1:{port}", tmp_path / "log", grace_s=0.2
    ) as server:
        await_health(server, "/health", 60)
    assert all(map(ended, pids(tmp_path)))


def test_a_failure_inside_the_block_stops_the_server(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted_measurement(tmp_path)
    assert all(map(ended, pids(tmp_path)))


def interrupted_measurement(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started("fake", command(port, tmp_path), url, tmp_path / "log") as server:
        await_health(server, "/health", 60)
        raise KeyboardInterrupt


def test_kill_9_of_the_parent_stops_the_server(tmp_path: Path) -> None:
    port = free_port()
    arguments = command(port, tmp_path)
    program = (
        "import sys, pathlib\n"
        "from graphgain.engines.server import started, await_health\n"
        f"with started('fake', {arguments!r}, 'http://127.0.0.1:{port}',"
        f" pathlib.Path({str(tmp_path / 'log')!r})) as server:\n"
        "    await_health(server, '/health', 60)\n"
        "    print(server.process.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None and parent.stdin is not None
    keeper = int(parent.stdout.readline())
    running = pids(tmp_path)
    # The keeper's end, which comes after its children's, can be waited for through its file.
    handle = os.pidfd_open(keeper)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert select.select([handle], [], [], 60)[0]
    os.close(handle)
    assert all(map(ended, running))
    parent.stdin.close()
    parent.stdout.close()


def test_a_server_that_dies_early_shows_the_end_of_its_log(tmp_path: Path) -> None:
    port = free_port()
    arguments = command(port, tmp_path, "--fault", "dies")
    with (
        started("fake", arguments, f"http://127.0.0.1:{port}", tmp_path / "log") as server,
        pytest.raises(ServerError, match=r"(?s)exit code 1.*out of memory"),
    ):
        await_health(server, "/health", 60)


def test_a_server_that_never_gets_healthy_is_given_up(tmp_path: Path) -> None:
    port = free_port()
    arguments = command(port, tmp_path, "--fault", "never healthy")
    with (
        started("fake", arguments, f"http://127.0.0.1:{port}", tmp_path / "log") as server,
        pytest.raises(ServerError, match=r"not healthy 0\.3 s after its start"),
    ):
        await_health(server, "/health", 0.3)


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    with (
        started("fake", ["/no/such/engine"], "http://127.0.0.1:1", tmp_path / "log") as server,
        pytest.raises(ServerError, match="no/such/engine could not be started"),
    ):
        await_health(server, "/health", 60)


def test_a_port_in_use_is_an_error_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=rf"Port {port} .*--port"):
            free_port(port)


def test_descendants_are_found_through_generations() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys\n"
         "p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
         "print(p.pid, flush=True)\ninput()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stdin is not None
    grandchild = int(child.stdout.readline())
    assert {child.pid, grandchild} <= set(descendants(os.getpid()))
    child.communicate("\n")
