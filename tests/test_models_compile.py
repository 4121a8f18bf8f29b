"""The Triton kernels compile for a Hopper GPU with PDL, which Triton can do without having one."""

from collections.abc import Iterator

import pytest

pytest.importorskip("triton", reason="PyTorch with Triton is not installed")

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from graphgain.models import kernels
from graphgain.models.lean import Cache, Lean
from graphgain.models.shapes import Shapes
from graphgain.models.weights import random_weights

CPU = torch.device("cpu")
WIDE = Shapes(layers=4, hidden=640, intermediate=512, vocabulary=4096)
"""The heads of Qwen3.8-27B, between narrower matrices."""


class Hopper:
    """What Triton asks of a driver when it only compiles."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[object]]]:
    """By name, the kernels that were compiled instead of launched."""
    if triton.knobs.runtime.interpret:
        pytest.skip("Triton's interpreter compiles nothing")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, on which the other tests run the kernels")
    found: dict[str, list[object]] = {}
    run = JITFunction.run

    def compile_only(self, *args, grid, warmup, **kwargs):  # type: ignore[no-untyped-def]
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        found.setdefault(self.fn.__name__, []).append(kernel)
        return kernel

    monkeypatch.setattr(JITFunction, "run", compile_only)
    before = triton.runtime.driver._active
    triton.runtime.driver.set_active(Hopper())
    yield found
    triton.runtime.driver._active = before


def assert_waits(found: dict[str, list[object]]) -> None:
    """Every kernel is launched with PDL and waits for its predecessor."""
    for name, compilations in found.items():
        for kernel in compilations:
            assert kernel.metadata.launch_pdl, name  # type: ignore[attr-defined]
            assert "griddepcontrol.wait" in kernel.asm["ptx"], name  # type: ignore[attr-defined]
            assert kernel.asm["cubin"]  # type: ignore[attr-defined]


def test_decode_kernels_compile_for_hopper(compiled: dict[str, list[object]]) -> None:
    lean = Lean(random_weights(WIDE, CPU), Cache.random(WIDE, 64, CPU), 1, 63)
    lean.run()
    assert_waits(compiled)
    launches = {name: len(kernels) for name, kernels in compiled.items()}
    assert launches == {
        "_gather": 3, "_gemma_norm": 9, "_silu_mul": 4, "_delta_conv": 3, "_delta_step": 3,
        "_attention_prepare": 1, "_decode_attention": 1, "_sigmoid_mul": 1, "_argmax_part": 1,
        "_argmax_final": 1,
    }  # fmt: skip


def test_prefill_kernels_compile_for_hopper(compiled: dict[str, list[object]]) -> None:
    tokens, heads, dim = 100, WIDE.linear_value_heads, WIDE.linear_head_dim
    bf16 = torch.zeros(tokens, WIDE.conv_channels + WIDE.value_width, dtype=torch.bfloat16)
    ba, wide = bf16[:, : 2 * heads].contiguous(), bf16[:, WIDE.conv_channels :]
    a_log, norm = torch.zeros(heads), torch.zeros(dim, dtype=torch.bfloat16)
    decay = torch.zeros(tokens, heads)
    cache = Cache.random(WIDE, 256, CPU)
    conv = torch.zeros(WIDE.conv_channels, 4, dtype=torch.bfloat16)
    flat = torch.zeros(tokens * WIDE.conv_channels, dtype=torch.bfloat16)
    o = torch.zeros(tokens, heads, dim, dtype=torch.bfloat16)
    q = torch.zeros(tokens, WIDE.heads, WIDE.head_dim, dtype=torch.bfloat16)
    keys, values = cache.keys[0], cache.values[0]
    kernels.delta_conv(bf16, conv, cache.conv[0], flat, WIDE.key_width, WIDE.value_width, pdl=True)
    kernels.delta_gates(ba, a_log, a_log, decay, decay.clone(), pdl=True)
    kernels.gated_norm(o, wide, norm, torch.empty_like(o), 1e-6, pdl=True)
    kernels.prefill_attention(q, keys, values, torch.empty_like(q), 100, pdl=True)
    assert_waits(compiled)
    assert len(compiled) == 4
