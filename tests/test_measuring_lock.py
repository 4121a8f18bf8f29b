"""The lock that keeps two measurements from sharing a GPU."""

import os
import stat
from pathlib import Path

import pytest

from graphgain.errors import BusyError, MeasureError
from graphgain.measuring import lock


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_held_once_and_named_by_its_holder() -> None:
    with lock.exclusive("gpu-a"):
        assert lock.lock_path("gpu-a").read_text() == f"{os.getpid()}\n"
        with pytest.raises(BusyError) as refused, lock.exclusive("gpu-a"):
            pass
        assert f"(pid {os.getpid()}) is running on this GPU" in str(refused.value)
        with lock.exclusive("gpu-b"), lock.exclusive(lock.HOST):
            pass
    with lock.exclusive("gpu-a"):
        pass


def test_a_refused_lock_is_not_released_for_its_holder() -> None:
    with lock.exclusive(lock.HOST):
        for _ in range(2):
            with pytest.raises(BusyError, match="this host"), lock.exclusive(lock.HOST):
                pass


def test_an_exception_releases_it() -> None:
    with pytest.raises(ValueError, match="inside"), lock.exclusive("gpu-a"):
        raise ValueError("inside")
    with lock.exclusive("gpu-a"):
        pass


def test_a_shorter_pid_leaves_nothing_of_a_longer_one() -> None:
    lock.lock_path("gpu-a").write_text("4194304999999\n")
    with lock.exclusive("gpu-a"):
        assert lock.lock_path("gpu-a").read_text() == f"{os.getpid()}\n"


def test_all_users_may_take_it_whatever_the_umask() -> None:
    old = os.umask(0o077)
    try:
        with lock.exclusive("gpu-a"):
            pass
    finally:
        os.umask(old)
    assert stat.S_IMODE(lock.lock_path("gpu-a").stat().st_mode) == 0o666


def test_a_link_in_its_place_is_refused(own_folder: Path) -> None:
    victim = own_folder / "victim"
    victim.write_text("kept")
    lock.lock_path("gpu-a").symlink_to(victim)
    with pytest.raises(MeasureError, match="cannot be opened"), lock.exclusive("gpu-a"):
        pass
    assert victim.read_text() == "kept"
