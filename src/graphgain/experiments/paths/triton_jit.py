"""Triton: `kernel[grid](...)` for every launch, without and with programmatic dependent launch."""

from typing import Any

import triton
import triton.language as tl

from graphgain.experiments.paths import BLOCK, ELEMENTS, Issue, Operands, blocks


def _add(x, y, out, elements, block: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < elements
    sum_ = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
    tl.store(out + offsets, sum_, mask=inside)


def prepare_plain(operands: Operands) -> Issue:
    """An ordinary launch."""
    kernel: Any = triton.jit(_add)
    grid, x, y, out = (blocks(),), operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            kernel[grid](x, y, out, ELEMENTS, BLOCK)

    return issue


def prepare_pdl(operands: Operands) -> Issue:
    """A launch with `launch_pdl`."""
    kernel: Any = triton.jit(_add)
    grid, x, y, out = (blocks(),), operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            kernel[grid](x, y, out, ELEMENTS, BLOCK, launch_pdl=True)

    return issue


PREPARE = {"triton_jit": prepare_plain, "triton_jit_pdl": prepare_pdl}
