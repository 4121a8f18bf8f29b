"""The lean forward against transformers' implementation with the same weights, at small depth."""

import dataclasses

import pytest

pytest.importorskip("triton", reason="PyTorch with Triton is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import torch

from graphgain.measuring.packages import is_importable
from graphgain.models import reference
from graphgain.models.lean import Cache, Lean
from graphgain.models.shapes import QWEN_27B, Shapes
from graphgain.models.weights import Weights, random_weights
from triton_stage import DEVICE, needs_interpreter, needs_kernels, run_interpreted

SMALL = Shapes(
    layers=4, hidden=128, intermediate=192, vocabulary=512, heads=6, kv_heads=2, head_dim=64,
    rotary_dim=16, linear_key_heads=2, linear_value_heads=6, linear_head_dim=64,
)  # fmt: skip
WORSE = 3
"""How much larger than that of transformers' own bf16 our relative error may be, both taken against
transformers in float32. Triton's interpreter truncates to bf16, which alone doubles an error."""


@needs_interpreter
def test_interpreted() -> None:
    run_interpreted(__file__)


def weights_of(shapes: Shapes) -> Weights:
    weights = random_weights(shapes, torch.device("cpu"))
    for layer in weights.layers:  # as large in the small model as in the large one
        for name, matrix in vars(layer).items() | vars(layer.mixer).items():
            if isinstance(matrix, torch.Tensor) and matrix.ndim == 2 and name != "conv":
                matrix.mul_((QWEN_27B.hidden / shapes.hidden) ** 0.5)
    return weights


def converted(weights: Weights, to: torch.device | torch.dtype) -> Weights:
    def moved(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return value.to(to)
        if dataclasses.is_dataclass(value) and not isinstance(value, Shapes | type):
            fields = {field.name: moved(getattr(value, field.name)) for field in
                      dataclasses.fields(value)}  # fmt: skip
            return dataclasses.replace(value, **fields)
        return tuple(map(moved, value)) if isinstance(value, tuple) else value

    result = moved(weights)
    assert isinstance(result, Weights)
    return result


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual.float() - expected.float()).norm() / expected.float().norm()).item()


def same_cache(cache: Cache, layers: list[object], cached: int) -> None:
    """Give transformers' cache the content of ours, with `cached` tokens."""
    deltas = attentions = 0
    for layer in layers:
        if hasattr(layer, "cumulative_length"):
            layer.keys[0, :, :cached] = cache.keys[attentions, :, :cached]
            layer.values[0, :, :cached] = cache.values[attentions, :, :cached]
            attentions += 1
        else:
            layer.conv_states[0][0].zero_()
            layer.conv_states[0][0, :, 1:] = cache.conv[deltas].T
            layer.recurrent_states[0][0] = cache.memory[deltas]
            deltas += 1


def reference_run(
    weights: Weights, lean: Lean, monkeypatch: pytest.MonkeyPatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and DeltaNet memories that transformers makes of the same tokens and cache."""
    kept: list[object] = []
    fill = reference._fill

    def fill_with_ours(layers: list[object], cached: int) -> list[torch.Tensor]:
        state = list(fill(layers, cached))
        same_cache(lean.cache, layers, cached)
        kept.extend(layers)
        return state

    with monkeypatch.context() as patched:
        patched.setattr(reference, "_fill", fill_with_ours)
        model = reference.build_model(weights, "eager")
        step = reference.forward(model, lean.ids[None], lean.cached)
        step.before()
        logits = step.run()
    memories = [layer.recurrent_states[0] for layer in kept if hasattr(layer, "recurrent_states")]
    return logits, torch.cat(memories) if memories else torch.zeros(1)


def assert_as_good_as_transformers(
    shapes: Shapes, tokens: int, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = converted(weights_of(shapes), DEVICE)
    cache = Cache.random(shapes, cached + tokens, DEVICE)
    if not cached:
        cache.conv.zero_()
        cache.memory.zero_()
    lean = Lean(weights, cache, tokens, cached, pdl=DEVICE.type == "cuda")
    exact, exact_memory = reference_run(converted(weights, torch.float32), lean, monkeypatch)
    theirs, their_memory = reference_run(weights, lean, monkeypatch)
    ours = lean.run()
    assert relative_error(ours, exact) < WORSE * relative_error(theirs, exact)
    assert relative_error(theirs, exact) < 0.1  # so that the bound above means something
    assert lean.next_token.item() == ours.argmax().item()
    if shapes.delta_layers:
        error = relative_error(cache.memory, exact_memory)
        assert error < WORSE * relative_error(their_memory, exact_memory) + 1e-4


@needs_kernels
@pytest.mark.parametrize(
    "shapes",
    [SMALL, dataclasses.replace(SMALL, layers=2, attention_interval=1)],
    ids=["both kinds of layers", "attention only"],
)
def test_decode_agrees_with_transformers(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_good_as_transformers(shapes, 1, 33, monkeypatch)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type == "cpu", reason="flash-linear-attention needs a GPU")
@pytest.mark.skipif(not is_importable("fla"), reason="flash-linear-attention is not installed")
@pytest.mark.parametrize(("tokens", "cached"), [(70, 0), (64, 33), (130, 33)])
def test_prefill_agrees_with_transformers(
    tokens: int, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_as_good_as_transformers(SMALL, tokens, cached, monkeypatch)
