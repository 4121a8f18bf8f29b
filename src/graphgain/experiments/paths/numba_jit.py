"""Numba-CUDA: `kernel[grid, block, stream](...)` for every launch, with arrays of Numba."""

from typing import Any

from numba import cuda

from graphgain.experiments.paths import BLOCK, Issue, Operands, blocks


def _add(x, y, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def prepare(operands: Operands) -> Issue:
    """The arrays share the tensors' memory."""
    kernel: Any = cuda.jit(_add)
    x, y, out = (cuda.as_cuda_array(tensor) for tensor in (operands.x, operands.y, operands.out))
    stream = cuda.external_stream(operands.handle)
    grid, block = blocks(), BLOCK

    def issue(launches: int) -> None:
        for _ in range(launches):
            kernel[grid, block, stream](x, y, out)

    return issue


PREPARE = {"numba_cuda": prepare}
