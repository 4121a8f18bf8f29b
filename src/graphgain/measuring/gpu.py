"""The GPU that measurements use: what it is, how it is doing, and who else is computing on it.

Facts come from NVML (`pynvml`) where it works, else from `nvidia-smi`, and from the CUDA driver.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graphgain.measuring import nvml, smi
from graphgain.measuring.cuda import CudaDevice, first_device
from graphgain.measuring.unavailable import Unavailable

T = TypeVar("T")

NOT_FOUND = "no NVIDIA GPU was found"


@dataclass(frozen=True)
class LocalGpu:
    """`facts` has the fields of the machine document's `gpu`; `unavailable` the reasons for nulls.

    `uuid` is as NVML prints it, and null where nothing tells it.
    """

    facts: dict[str, Any]
    unavailable: dict[str, str]
    uuid: str | None
    driver: str | None
    driver_cuda: str | None

    @property
    def lock_name(self) -> str:
        """What distinguishes this GPU in lock files and documents."""
        return f"gpu-{self.facts['uuid_hash'] or 'unknown'}"


def find_gpu() -> LocalGpu | None:
    """The GPU that a CUDA program started now would use as device 0; None where there is none."""
    reasons: dict[str, str] = {}
    device: CudaDevice | None = None
    try:
        device = first_device()
        if device is None:
            return None
    except Unavailable as reason:
        reasons["cuda"] = str(reason)
    selected = f"GPU-{device.uuid}" if device else None
    try:
        read, reasons["driver"] = _first(
            lambda: nvml.read_facts(selected), lambda: smi.read_facts(selected)
        )
    except Unavailable as reason:
        if device is None:
            return None
        read, reasons["driver"] = {}, str(reason)
    facts: dict[str, Any] = {
        "name": device.name if device else read["name"],
        "uuid_hash": uuid_hash(selected or read.get("uuid")),
        "compute_capability": device.compute_capability if device else None,
        "sm_count": device.sm_count if device else None,
        "l2_bytes": device.l2_bytes if device else None,
    }
    for field in nvml.FACTS:
        facts[field] = read.get(field)
    facts["memory_mib"] = facts["memory_mib"] or (device.memory_mib if device else None)
    facts["compute_capability"] = facts["compute_capability"] or read.get("compute_capability")
    unavailable = {
        f"gpu.{field}": reasons["cuda"]
        if field in ("sm_count", "l2_bytes")
        else "; ".join(filter(None, ["the driver does not report it", reasons["driver"]]))
        for field, value in facts.items()
        if value is None
    }
    return LocalGpu(
        facts=facts,
        unavailable=unavailable,
        uuid=selected or read.get("uuid"),
        driver=read.get("driver"),
        driver_cuda=device.driver_cuda if device else None,
    )


def gpu_name() -> str | None:
    """The GPU's name from the driver alone, without starting CUDA; None where there is none."""
    try:
        return str(_first(nvml.read_name, smi.read_name)[0])
    except Unavailable:
        return None


def device_files_exist() -> bool:
    """Whether this machine has an NVIDIA device at all, in microseconds."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def read_state(gpu: LocalGpu) -> dict[str, Any] | None:
    """Clocks, temperature, power and throttle reasons now; None where nothing reports them."""
    try:
        return _first(lambda: nvml.read_state(gpu.uuid), lambda: smi.read_state(gpu.uuid))[0]
    except Unavailable:
        return None


def compute_processes(gpu: LocalGpu) -> list[int] | None:
    """The pids that have work on the GPU; None where nothing reports them."""
    try:
        return _first(
            lambda: nvml.compute_processes(gpu.uuid), lambda: smi.compute_processes(gpu.uuid)
        )[0]
    except Unavailable:
        return None


def uuid_hash(uuid: str | None) -> str | None:
    """A short hash that tells two cards apart without publishing the serial."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:12] if uuid else None


def _first(*readers: Callable[[], T]) -> tuple[T, str]:
    """The first answer, and why those before it gave none; raises Unavailable with all reasons."""
    reasons: list[str] = []
    for reader in readers:
        try:
            return reader(), "; ".join(reasons)
        except Unavailable as reason:
            reasons.append(str(reason))
    raise Unavailable("; ".join(reasons))
