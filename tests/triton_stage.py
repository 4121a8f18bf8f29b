"""Where the tests run Triton kernels: on the GPU, or on the CPU through Triton's interpreter.

The interpreter has to be chosen before Triton is imported, so that without a GPU a test file runs
itself again in a process that has chosen it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu")
PDL = [False, True] if DEVICE.type == "cuda" else [False]
BF16 = 1 / 128
"""Bound of the relative error of a result that is rounded to bf16 once or twice (8 bits)."""

needs_kernels = pytest.mark.skipif(
    DEVICE.type == "cpu" and not INTERPRETED,
    reason="no GPU, and this process did not choose Triton's interpreter (another one does)",
)
needs_interpreter = pytest.mark.skipif(
    DEVICE.type == "cuda" or INTERPRETED,
    reason="the kernels run on the GPU, or are interpreted in this process already",
)


def run_interpreted(file: str) -> None:
    """Run a test file in a process that interprets Triton kernels; at least one test must pass."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(file))],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert " passed" in ended.stdout


def random(*shape: int, scale: float = 1.0, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Normal numbers, made on the CPU, so that they are the same everywhere."""
    return (torch.randn(*shape, dtype=torch.float32) * scale).to(dtype).to(DEVICE)


def poisoned(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """NaN everywhere, so that what a kernel does not write shows."""
    return torch.full(shape, float("nan"), dtype=dtype, device=DEVICE)


def assert_close(actual: torch.Tensor, expected: torch.Tensor, bound: float = BF16) -> None:
    """The relative error in the 2-norm is bounded, and so is each element's against the largest."""
    error = (actual.float() - expected.float()).cpu()
    size = expected.float().cpu()
    assert error.norm() <= bound * size.norm()
    assert error.abs().max() <= 2 * bound * size.abs().max()


def _let_interpreter_loop() -> None:
    """Triton 3.6 turns a one-element array into a loop bound in a way that NumPy 2.4 refuses."""
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch_tensor_and_index(tensor, scope) -> None:  # type: ignore[no-untyped-def]
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor_and_index


if INTERPRETED:
    # transformers would call flash-linear-attention, which cannot run on a CPU.
    sys.modules["fla"] = None  # type: ignore[assignment]
    _let_interpreter_loop()
