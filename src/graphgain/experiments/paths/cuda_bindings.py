"""cuda.bindings: `cuLaunchKernel`, with a tuple of argument values and one of their types."""

import ctypes
from typing import Any

from cuda.bindings import driver

from graphgain.experiments.paths import BLOCK, ELEMENTS, Issue, Operands, blocks

TYPES = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def prepare(operands: Operands) -> Issue:
    """The kernel comes from a cubin; errors are looked at once a launch, as a program has to."""
    module = _checked(driver.cuModuleLoad(str(operands.libraries["cubin"]).encode()))
    kernel = _checked(driver.cuModuleGetFunction(module, b"add"))
    stream = driver.CUstream(operands.handle)
    grid = blocks()
    x, y, out = operands.x, operands.y, operands.out
    launch, success = driver.cuLaunchKernel, driver.CUresult.CUDA_SUCCESS

    def issue(launches: int) -> None:
        for _ in range(launches):
            values = (x.data_ptr(), y.data_ptr(), out.data_ptr(), ELEMENTS)
            (result,) = launch(kernel, grid, 1, 1, BLOCK, 1, 1, 0, stream, (values, TYPES), 0)
            if result != success:
                raise RuntimeError(f"cuLaunchKernel: {result}")

    return issue


def _checked(answer: tuple[Any, ...]) -> Any:
    result, value = answer
    if result != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuda.bindings: {result}")
    return value


PREPARE = {"cuda_bindings": prepare}
