"""The GPU through NVML (`pynvml`, from nvidia-ml-py)."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from graphgain.measuring.unavailable import Unavailable

FACTS = (
    "memory_mib",
    "power_limit_w",
    "sm_mhz",
    "sm_max_mhz",
    "memory_mhz",
    "memory_max_mhz",
    "ecc",
    "mig",
)
"""The fields of a machine's GPU that NVML and nvidia-smi give, by the document's names."""

_THROTTLE_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
)


def read_facts(uuid: str | None) -> dict[str, Any]:
    """Name, UUID, driver and `FACTS` of a GPU (None: the first); raises Unavailable.

    A query that this GPU does not answer is null.
    """
    with _device(uuid) as (nvml, device):
        facts = {
            "memory_mib": lambda: nvml.nvmlDeviceGetMemoryInfo(device).total // 2**20,
            "power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(device) / 1000,
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            "sm_max_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            "memory_max_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_MEM),
            "ecc": lambda: bool(nvml.nvmlDeviceGetEccMode(device)[0]),
            "mig": lambda: bool(nvml.nvmlDeviceGetMigMode(device)[0]),
            "uuid": lambda: _text(nvml.nvmlDeviceGetUUID(device)),
            "driver": lambda: _text(nvml.nvmlSystemGetDriverVersion()),
        }
        name = _text(nvml.nvmlDeviceGetName(device))
        return {"name": name, **{field: _or_none(nvml, read) for field, read in facts.items()}}


def read_name() -> str:
    """The name of the first visible GPU; raises Unavailable."""
    with _device(None) as (nvml, device):
        return _text(nvml.nvmlDeviceGetName(device))


def read_state(uuid: str | None) -> dict[str, Any]:
    """The fields of a document's GpuState; raises Unavailable."""
    with _device(uuid) as (nvml, device):
        reasons = _or_none(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device))
        queries = {
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(
                device, nvml.NVML_TEMPERATURE_GPU
            ),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
        }
        return {
            **{field: _or_none(nvml, read) for field, read in queries.items()},
            "throttle_reasons": None if reasons is None else throttle_reasons(reasons),
        }


def compute_processes(uuid: str | None) -> list[int]:
    """The pids of processes with a compute context on the GPU; raises Unavailable."""
    with _device(uuid) as (nvml, device):
        processes = _or_none(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(device))
        if processes is None:
            raise Unavailable("NVML does not list compute processes here")
        return sorted(int(process.pid) for process in processes)


def throttle_reasons(mask: int) -> list[str]:
    """The names of the bits in NVML's mask of clock event ("throttle") reasons."""
    names = [name for bit, name in enumerate(_THROTTLE_REASONS) if mask >> bit & 1]
    unknown = mask >> len(_THROTTLE_REASONS) << len(_THROTTLE_REASONS)
    return [*names, *([hex(unknown)] if unknown else [])]


@contextlib.contextmanager
def _device(uuid: str | None) -> Iterator[tuple[Any, Any]]:
    """NVML and the handle of a GPU; its errors leave as Unavailable."""
    try:
        import pynvml
    except ImportError:
        raise Unavailable("pynvml (pip install nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
        try:
            yield pynvml, _handle(pynvml, uuid)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise Unavailable(f"NVML: {error}") from None


def _handle(nvml: Any, uuid: str | None) -> Any:
    """By UUID, with which CUDA knows a MIG slice too; else as CUDA_VISIBLE_DEVICES begins."""
    wanted = uuid or os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    if wanted.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(wanted))
    if not wanted.startswith(("GPU-", "MIG-")):
        raise Unavailable(f"CUDA_VISIBLE_DEVICES shows no GPU: it begins with {wanted!r}")
    try:
        return nvml.nvmlDeviceGetHandleByUUID(wanted)
    except nvml.NVMLError_NotFound:
        return nvml.nvmlDeviceGetHandleByUUID(wanted.replace("GPU-", "MIG-", 1))


def _or_none(nvml: Any, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
