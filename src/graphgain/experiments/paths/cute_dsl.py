"""CuTe DSL: a compiled function called with tensors that were wrapped once."""

from typing import Any

import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

from graphgain.experiments.paths import BLOCK, Issue, Operands, blocks

GRID = blocks()


@cute.kernel  # type: ignore[untyped-decorator]
def add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):  # type: ignore[no-untyped-def]
    """One element a thread; the grid covers the operands exactly."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * BLOCK + thread
    out[i] = x[i] + y[i]


@cute.jit  # type: ignore[untyped-decorator]
def add(  # type: ignore[no-untyped-def]
    x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, stream: CUstream
):
    """The host function that launches the kernel."""
    add_kernel(x, y, out).launch(grid=(GRID, 1, 1), block=(BLOCK, 1, 1), stream=stream)


def prepare(operands: Operands) -> Issue:
    """Compile for these operands and this stream."""
    x, y, out = (from_dlpack(tensor) for tensor in (operands.x, operands.y, operands.out))
    stream = CUstream(operands.handle)
    compiled: Any = cute.compile(add, x, y, out, stream)

    def issue(launches: int) -> None:
        for _ in range(launches):
            compiled(x, y, out, stream)

    return issue


PREPARE = {"cute_dsl": prepare}
