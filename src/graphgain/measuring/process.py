"""Child processes that print one JSON document, and that never outlive the measurement."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from graphgain.errors import MeasureError
from graphgain.sources import PACKAGE

_PR_SET_PDEATHSIG = 1
_SHOWN_CHARACTERS = 200


def run_json(command: Sequence[str | Path], *, name: str, timeout_s: float) -> dict[str, Any]:
    """Run a program that prints exactly one JSON object; `name` is what errors call it.

    Raises MeasureError if it fails (with its own error sentence), takes longer than `timeout_s`,
    or prints anything else. The program is killed if this process is interrupted or killed.
    """
    return parse_json(run_program(command, name=name, timeout_s=timeout_s), name=name)


def run_program(command: Sequence[str | Path], *, name: str, timeout_s: float) -> str:
    """Run a program to its end and return its standard output; raises MeasureError."""
    ended = run_to_end(command, name=name, timeout_s=timeout_s)
    if ended.returncode != 0:
        raise MeasureError(
            f"{name} failed ({_ending(ended.returncode)}): "
            + _last_line(ended.stderr).removeprefix(f"{name}: ")
        )
    return ended.stdout


def run_to_end(
    command: Sequence[str | Path], *, name: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a program, whether it succeeds or not; raises MeasureError if it has no end or start."""
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            env=child_environment(),
        )
    except OSError as error:
        raise MeasureError(f"{name} could not be started: {error}.") from None
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise MeasureError(f"{name} was stopped after {timeout_s:g} s without a result.") from None
    finally:
        _kill_group(process)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def parse_json(text: str, *, name: str) -> dict[str, Any]:
    """The one JSON object of `text`; raises MeasureError quoting what is there instead."""
    try:
        raw = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        shown = next((line for line in text.splitlines() if line.strip()), "")[:_SHOWN_CHARACTERS]
        raise MeasureError(
            f"{name} did not print one JSON document ({error}); its output begins {shown!r}."
        ) from None
    if not isinstance(raw, dict):
        raise MeasureError(f"{name} printed a JSON {type(raw).__name__}, not an object.")
    return raw


def python_module(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of this package with the same interpreter."""
    return [sys.executable, "-m", module, *arguments]


def child_environment() -> dict[str, str]:
    """Our environment, with this package importable whether it is installed or not."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE.parent), path]))}


@contextlib.contextmanager
def termination_unwinds() -> Iterator[None]:
    """Within it SIGTERM raises SystemExit(143), so that child processes end and files are removed.

    SIGINT raises KeyboardInterrupt already. Does nothing outside the main thread, where Python
    allows no handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _die_with_parent() -> None:
    # A measurement that outlives kill -9 of its parent would disturb the next one.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed no error."


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that a measurement can have")
