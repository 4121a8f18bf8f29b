"""`machine.json`: what this machine is, with a reason for everything that it does not tell."""

import os
import platform
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphgain.errors import ConfigError
from graphgain.measuring import SCHEMA_VERSION
from graphgain.measuring.cuda import runtime_version
from graphgain.measuring.gpu import NOT_FOUND, LocalGpu, device_files_exist, find_gpu, gpu_name
from graphgain.measuring.nvcc import toolkit_version
from graphgain.measuring.packages import package_version
from graphgain.measuring.unavailable import Unavailable

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9.]+)*")
"""The pattern of a machine's name, as the documents' model has it."""

FIELDS = (
    "driver",
    "cuda_runtime",
    "cuda_toolkit",
    "cpu",
    "cpu_count",
    "memory_gib",
    "kernel",
    "hypervisor",
    "python",
    "torch",
)


def probe_machine(
    slug: str | None = None, label: str | None = None, *, gpu: LocalGpu | None = None
) -> dict[str, Any]:
    """The `machine.json` of this machine; `slug` and `label` default to what the hardware is.

    `gpu` is the GPU where it was looked for already. Raises ConfigError for an impossible slug.
    """
    gpu = gpu or find_gpu()
    readers: dict[str, Callable[[], Any]] = {
        "driver": lambda: _driver(gpu),
        "cuda_runtime": runtime_version,
        "cuda_toolkit": toolkit_version,
        "cpu": cpu_model,
        "cpu_count": cpu_count,
        "memory_gib": _memory_gib,
        "kernel": platform.release,
        "hypervisor": _hypervisor,
        "python": platform.python_version,
        "torch": _torch,
    }
    facts: dict[str, Any] = {}
    unavailable = dict(gpu.unavailable) if gpu else {"gpu": NOT_FOUND}
    for field in FIELDS:
        try:
            facts[field] = readers[field]()
        except Unavailable as reason:
            facts[field] = None
            unavailable[field] = str(reason)
    return {
        "schema_version": SCHEMA_VERSION,
        "slug": check_slug(slug or default_slug()),
        "label": label or (gpu.facts["name"] if gpu else default_label()),
        "kind": "measured",
        "gpu": gpu.facts if gpu else None,
        **facts,
        "unavailable": unavailable,
    }


def default_slug() -> str:
    """GPU name (without a GPU: CPU model and core count) and host name, the same at every call."""
    name = gpu_name() if device_files_exist() else None
    return slugify(f"{name or default_label()} {socket.gethostname().partition('.')[0]}")


def default_label() -> str:
    """What a machine without a GPU is called."""
    try:
        return f"{cpu_model()} {cpu_count()} cores"
    except Unavailable:
        return f"{platform.machine() or 'unknown'} {cpu_count()} cores"


def slugify(text: str) -> str:
    """Lower case words joined by single hyphens: "NVIDIA H200 node7" → "h200-node7".

    What every vendor writes and tells nothing apart is left out.
    """
    words = re.findall(r"[a-z0-9]+", re.sub(r"\((?:r|tm|c)\)", " ", text.lower()))
    return "-".join(word for word in words if word not in _NOISE) or "machine"


_NOISE = frozenset({"nvidia", "geforce", "cpu", "processor", "graphics", "device"})


def check_slug(slug: str) -> str:
    """The slug itself; raises ConfigError where it cannot name a folder of results."""
    if not SLUG.fullmatch(slug):
        raise ConfigError(
            f"{slug!r} cannot name a machine: use lower-case letters, digits and single hyphens, "
            "such as h200-node7."
        )
    return slug


def cpu_model() -> str:
    """The CPU's model name; raises Unavailable."""
    text = _proc("cpuinfo")
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    if not match:
        raise Unavailable("/proc/cpuinfo names no model")
    return " ".join(match[1].split())


def cpu_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _driver(gpu: LocalGpu | None) -> str:
    if gpu is None:
        raise Unavailable(NOT_FOUND)
    if gpu.driver is None:
        raise Unavailable("neither NVML nor nvidia-smi told the driver's version")
    return gpu.driver


def _memory_gib() -> float:
    match = re.search(r"^MemTotal:\s*(\d+) kB", _proc("meminfo"), re.MULTILINE)
    if not match:
        raise Unavailable("/proc/meminfo has no MemTotal")
    return round(int(match[1]) / 2**20, 1)


def _hypervisor() -> bool:
    """x86 CPUs show a guest that it is one; elsewhere the kernel may know."""
    match = re.search(r"^flags\s*:(.*)$", _proc("cpuinfo"), re.MULTILINE)
    if match:
        return "hypervisor" in match[1].split()
    if Path("/sys/hypervisor/type").exists():
        return True
    raise Unavailable("this CPU does not show whether it is virtual")


def _torch() -> str:
    version = package_version("torch")
    if version is None:
        raise Unavailable("torch is not installed")
    return version


def _proc(name: str) -> str:
    try:
        return (Path("/proc") / name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Unavailable(f"/proc/{name} cannot be read: {error.strerror}") from None
