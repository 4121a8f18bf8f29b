"""The GPU through the program nvidia-smi, for machines without pynvml."""

import csv
import os
import subprocess
from collections.abc import Callable
from typing import Any

from graphgain.measuring.nvml import throttle_reasons
from graphgain.measuring.unavailable import Unavailable

_TIMEOUT_S = 30


def _whole(text: str) -> int:
    return round(float(text))


def _enabled(text: str) -> bool:
    return {"Enabled": True, "Disabled": False}[text]


def _reasons(text: str) -> list[str]:
    return throttle_reasons(int(text, 16))


_Parse = Callable[[str], Any]
_FACTS: dict[str, tuple[str, _Parse]] = {
    "name": ("name", str),
    "uuid": ("uuid", str),
    "driver": ("driver_version", str),
    "compute_capability": ("compute_cap", str),
    "memory_mib": ("memory.total", _whole),
    "power_limit_w": ("power.limit", float),
    "sm_mhz": ("clocks.sm", _whole),
    "sm_max_mhz": ("clocks.max.sm", _whole),
    "memory_mhz": ("clocks.mem", _whole),
    "memory_max_mhz": ("clocks.max.mem", _whole),
    "ecc": ("ecc.mode.current", _enabled),
    "mig": ("mig.mode.current", _enabled),
}
_STATE: dict[str, tuple[str, _Parse]] = {
    "sm_mhz": ("clocks.sm", _whole),
    "memory_mhz": ("clocks.mem", _whole),
    "temperature_c": ("temperature.gpu", _whole),
    "power_w": ("power.draw", float),
    "throttle_reasons": ("clocks_throttle_reasons.active", _reasons),
}


def read_facts(uuid: str | None) -> dict[str, Any]:
    """As `nvml.read_facts`, with the compute capability besides; raises Unavailable."""
    return _query(_FACTS, uuid)


def read_name() -> str:
    """The name of the first visible GPU; raises Unavailable."""
    return str(_query({"name": _FACTS["name"]}, None)["name"])


def read_state(uuid: str | None) -> dict[str, Any]:
    """As `nvml.read_state`; raises Unavailable."""
    return _query(_STATE, uuid)


def compute_processes(uuid: str | None) -> list[int]:
    """As `nvml.compute_processes`; raises Unavailable."""
    lines = _smi("--query-compute-apps=pid", uuid)
    return sorted(int(line) for line in lines if line.isdigit())


def _query(fields: dict[str, tuple[str, _Parse]], uuid: str | None) -> dict[str, Any]:
    queries = ",".join(query for query, _ in fields.values())
    lines = _smi(f"--query-gpu={queries}", uuid)
    cells = next(csv.reader(lines, skipinitialspace=True), [])
    if len(cells) != len(fields):
        raise Unavailable(f"nvidia-smi answered {lines[:1]} to a query of {len(fields)} fields")
    return {
        field: _parsed(parse, cell)
        for (field, (_, parse)), cell in zip(fields.items(), cells, strict=True)
    }


def _parsed(parse: _Parse, cell: str) -> Any:
    """None for what nvidia-smi writes where a GPU lacks a feature, such as `[N/A]`."""
    try:
        return None if cell.startswith("[") else parse(cell)
    except (ValueError, KeyError):
        return None


def _smi(query: str, uuid: str | None) -> list[str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-i", uuid or visible]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise Unavailable("nvidia-smi is not on the PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"nvidia-smi does not run: {error}") from None
    if done.returncode != 0:
        reason = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable(f"nvidia-smi: {reason[-1] if reason else f'exit {done.returncode}'}")
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
