"""What the CUDA driver says about the device that programs started here will use."""

import ctypes
import uuid
from dataclasses import dataclass
from typing import Any

from graphgain.measuring.unavailable import Unavailable

# CUdevice_attribute numbers, from cuda.h.
_SM_COUNT = 16
_L2_BYTES = 38
_CC_MAJOR = 75
_CC_MINOR = 76


@dataclass(frozen=True)
class CudaDevice:
    """Device 0 as CUDA_VISIBLE_DEVICES leaves it; `uuid` without the `GPU-` prefix."""

    name: str
    uuid: str
    compute_capability: str
    sm_count: int
    l2_bytes: int
    memory_mib: int
    driver_cuda: str


def first_device() -> CudaDevice | None:
    """Device 0, or None where the driver runs and shows none. Creates no context.

    Raises Unavailable with the reason where there is no usable driver.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Unavailable(f"libcuda.so.1 cannot be loaded: {error}") from None

    def call(function: str, *arguments: Any) -> int:
        return int(getattr(driver, function)(*arguments))

    no_device = 100
    status = call("cuInit", 0)
    if status == no_device:
        return None
    _check("cuInit", status)
    count = ctypes.c_int()
    _check("cuDeviceGetCount", call("cuDeviceGetCount", ctypes.byref(count)))
    if count.value == 0:
        return None

    device = ctypes.c_int()
    _check("cuDeviceGet", call("cuDeviceGet", ctypes.byref(device), 0))
    name = ctypes.create_string_buffer(256)
    _check("cuDeviceGetName", call("cuDeviceGetName", name, len(name), device))
    identity = (ctypes.c_ubyte * 16)()
    _check("cuDeviceGetUuid_v2", call("cuDeviceGetUuid_v2", ctypes.byref(identity), device))
    memory = ctypes.c_size_t()
    _check("cuDeviceTotalMem_v2", call("cuDeviceTotalMem_v2", ctypes.byref(memory), device))
    version = ctypes.c_int()
    _check("cuDriverGetVersion", call("cuDriverGetVersion", ctypes.byref(version)))

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        status = call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        _check("cuDeviceGetAttribute", status)
        return value.value

    return CudaDevice(
        name=name.value.decode("utf-8", "replace"),
        uuid=str(uuid.UUID(bytes=bytes(identity))),
        compute_capability=f"{attribute(_CC_MAJOR)}.{attribute(_CC_MINOR)}",
        sm_count=attribute(_SM_COUNT),
        l2_bytes=attribute(_L2_BYTES),
        memory_mib=memory.value // 2**20,
        driver_cuda=cuda_version(version.value),
    )


def runtime_version() -> str:
    """The version of the CUDA runtime library that the loader finds; raises Unavailable."""
    for name in ("libcudart.so", "libcudart.so.13", "libcudart.so.12"):
        try:
            runtime = ctypes.CDLL(name)
        except OSError:
            continue
        version = ctypes.c_int()
        _check("cudaRuntimeGetVersion", runtime.cudaRuntimeGetVersion(ctypes.byref(version)))
        return cuda_version(version.value)
    raise Unavailable("the loader finds no libcudart; the benchmarks carry their own")


def cuda_version(number: int) -> str:
    """13020 → "13.2", as CUDA encodes its versions."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _check(function: str, status: int) -> None:
    if status != 0:
        raise Unavailable(f"{function} of the CUDA driver returned error {status}")
