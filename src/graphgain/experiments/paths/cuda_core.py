"""cuda.core: `launch(stream, config, kernel, ...)` with the tensors' addresses."""

import ctypes
from typing import Any

try:
    from cuda.core import Device, LaunchConfig, ObjectCode, Stream, launch
except ImportError:  # before cuda.core 1.0
    from cuda.core.experimental import Device, LaunchConfig, ObjectCode, Stream, launch

from graphgain.experiments.paths import BLOCK, ELEMENTS, Issue, Operands, blocks


def prepare(operands: Operands) -> Issue:
    """The kernel comes from a cubin, the stream is torch's."""
    Device().set_current()
    kernel: Any = ObjectCode.from_cubin(str(operands.libraries["cubin"])).get_kernel("add")
    stream: Any = Stream.from_handle(operands.handle)
    config: Any = LaunchConfig(grid=blocks(), block=BLOCK)
    x, y, out = operands.x, operands.y, operands.out
    elements = ctypes.c_int(ELEMENTS)

    def issue(launches: int) -> None:
        for _ in range(launches):
            launch(stream, config, kernel, x.data_ptr(), y.data_ptr(), out.data_ptr(), elements)

    return issue


PREPARE = {"cuda_core": prepare}
