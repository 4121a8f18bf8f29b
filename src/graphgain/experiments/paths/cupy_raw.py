"""CuPy: a raw kernel called with CuPy arrays."""

from typing import Any

import cupy

from graphgain.experiments.paths import BLOCK, ELEMENTS, Issue, Operands, blocks


def prepare(operands: Operands) -> Issue:
    """The arrays share the tensors' memory; CuPy's current stream is torch's."""
    kernel: Any = cupy.RawModule(path=str(operands.libraries["cubin"])).get_function("add")
    x, y, out = (cupy.from_dlpack(tensor) for tensor in (operands.x, operands.y, operands.out))
    elements = cupy.int32(ELEMENTS)
    grid, block = (blocks(),), (BLOCK,)
    stream = cupy.cuda.ExternalStream(operands.handle)

    def issue(launches: int) -> None:
        with stream:
            for _ in range(launches):
                kernel(grid, block, (x, y, out, elements))

    return issue


PREPARE = {"cupy_raw": prepare}
