"""The weights of one model, stored once and seen by both implementations.

The lean forward multiplies with merged matrices (q, k, v in one; gate and up in one); transformers
has a parameter for each part. A part is a range of rows of the merged matrix, hence a view of it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from graphgain.errors import MeasureError, MissingToolError
from graphgain.measuring.packages import is_importable
from graphgain.models.shapes import Shapes

_DEVIATION = 0.02
"""Standard deviation of random matrices: transformers' own for this model."""


@dataclass(frozen=True)
class DeltaWeights:
    """A Gated DeltaNet layer; matrices are [out, in]. `qkvz` and `ba` are merged."""

    qkvz: Tensor
    ba: Tensor
    conv: Tensor
    a_log: Tensor
    dt_bias: Tensor
    norm: Tensor
    out: Tensor


@dataclass(frozen=True)
class AttentionWeights:
    """A full attention layer; `qkv` is merged: per head query and gate, then keys, then values."""

    qkv: Tensor
    q_norm: Tensor
    k_norm: Tensor
    out: Tensor


@dataclass(frozen=True)
class LayerWeights:
    """One layer: its mixer, its norms, and its feed-forward network with gate and up merged."""

    mixer: DeltaWeights | AttentionWeights
    input_norm: Tensor
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True)
class Weights:
    """All weights: bf16, but `a_log` and `dt_bias`, which are float32."""

    shapes: Shapes
    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor

    def named(self) -> dict[str, Tensor]:
        """By the names of transformers' `Qwen3_5ForCausalLM`, as views of the merged matrices."""
        return dict(self._names())

    def _names(self) -> Iterator[tuple[str, Tensor]]:
        yield "model.embed_tokens.weight", self.embedding
        yield "model.norm.weight", self.norm
        yield "lm_head.weight", self.head
        for index, layer in enumerate(self.layers):
            prefix = f"model.layers.{index}"
            yield f"{prefix}.input_layernorm.weight", layer.input_norm
            yield f"{prefix}.post_attention_layernorm.weight", layer.post_norm
            gate, up = layer.gate_up.chunk(2)
            yield f"{prefix}.mlp.gate_proj.weight", gate
            yield f"{prefix}.mlp.up_proj.weight", up
            yield f"{prefix}.mlp.down_proj.weight", layer.down
            mixer = layer.mixer
            parts = (
                _delta_names(mixer, self.shapes)
                if isinstance(mixer, DeltaWeights)
                else _attention_names(mixer, self.shapes)
            )
            yield from ((f"{prefix}.{name}", part) for name, part in parts)


def random_weights(shapes: Shapes, device: torch.device, seed: int = 20260923) -> Weights:
    """Weights that are the same for the same seed on the same kind of device.

    Raises MeasureError where they do not fit into the device's memory.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int, deviation: float = _DEVIATION) -> Tensor:
        fresh = torch.empty(shape, dtype=torch.bfloat16, device=device)
        return fresh.normal_(0.0, deviation, generator=generator)

    def ones(*shape: int) -> Tensor:
        return torch.ones(shape, dtype=torch.bfloat16, device=device)

    def delta() -> DeltaWeights:
        heads = shapes.linear_value_heads
        rate = torch.empty(heads, device=device).uniform_(0.01, 16, generator=generator)
        return DeltaWeights(
            qkvz=normal(shapes.conv_channels + shapes.value_width, shapes.hidden),
            ba=normal(2 * heads, shapes.hidden),
            conv=normal(shapes.conv_channels, shapes.conv_width, deviation=0.3),
            a_log=rate.log(),
            dt_bias=torch.ones(heads, device=device),
            norm=ones(shapes.linear_head_dim),
            out=normal(shapes.hidden, shapes.value_width),
        )

    def attention() -> AttentionWeights:
        return AttentionWeights(
            qkv=normal(2 * (shapes.attention_width + shapes.kv_width), shapes.hidden),
            q_norm=normal(shapes.head_dim),
            k_norm=normal(shapes.head_dim),
            out=normal(shapes.hidden, shapes.attention_width),
        )

    def layer(index: int) -> LayerWeights:
        return LayerWeights(
            mixer=attention() if shapes.is_attention(index) else delta(),
            input_norm=normal(shapes.hidden),
            post_norm=normal(shapes.hidden),
            gate_up=normal(2 * shapes.intermediate, shapes.hidden),
            down=normal(shapes.hidden, shapes.intermediate),
        )

    try:
        return Weights(
            shapes,
            embedding=normal(shapes.vocabulary, shapes.hidden, deviation=1.0),
            layers=tuple(layer(index) for index in range(shapes.layers)),
            norm=normal(shapes.hidden),
            head=normal(shapes.vocabulary, shapes.hidden),
        )
    except torch.OutOfMemoryError:
        size = (shapes.decode_weight_bytes() + 2 * shapes.vocabulary * shapes.hidden) / 1e9
        raise MeasureError(
            f"The weights need {size:.0f} GB, and the GPU has less free memory: "
            "use a smaller model or fewer layers."
        ) from None


def load_weights(weights: Weights, folder: Path) -> None:
    """Overwrite `weights` with the safetensors of a checkpoint of the same geometry.

    Raises MissingToolError without safetensors, MeasureError for a folder without them, and for a
    tensor that is missing or of another shape.
    """
    if not is_importable("safetensors"):
        raise MissingToolError(
            f"Reading {folder} needs the Python package safetensors: pip install safetensors."
        )
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise MeasureError(f"{folder}: holds no *.safetensors; give the folder of a checkpoint.")
    missing = weights.named()
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a mapping)
                target = missing.pop(name.replace("model.language_model.", "model."), None)
                if target is not None:
                    _copy(tensors.get_tensor(name), target, f"{file}: {name}")
    if missing:
        raise MeasureError(
            f"{folder}: {len(missing)} tensors of the model are missing in it, such as "
            f"{next(iter(missing))}; it has to be a checkpoint of this architecture and depth."
        )


def checkpoint_shapes(folder: Path) -> Shapes:
    """The geometry that a checkpoint's `config.json` describes; raises MeasureError."""
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        text = raw.get("text_config", raw)
        rope = text["rope_parameters"]
        return Shapes(
            layers=text["num_hidden_layers"],
            hidden=text["hidden_size"],
            intermediate=text["intermediate_size"],
            vocabulary=text["vocab_size"],
            heads=text["num_attention_heads"],
            kv_heads=text["num_key_value_heads"],
            head_dim=text["head_dim"],
            rotary_dim=round(text["head_dim"] * rope["partial_rotary_factor"]),
            rope_theta=rope["rope_theta"],
            linear_key_heads=text["linear_num_key_heads"],
            linear_value_heads=text["linear_num_value_heads"],
            linear_head_dim=text["linear_key_head_dim"],
            conv_width=text["linear_conv_kernel_dim"],
            attention_interval=text["full_attention_interval"],
            norm_epsilon=text["rms_norm_eps"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MeasureError(
            f"{path}: does not describe a Qwen3.5-type model ({error!r}); "
            "`weights` has to name the folder of such a checkpoint."
        ) from None


def _delta_names(mixer: DeltaWeights, shapes: Shapes) -> Iterator[tuple[str, Tensor]]:
    qkv, z = mixer.qkvz.split([shapes.conv_channels, shapes.value_width])
    b, a = mixer.ba.chunk(2)
    yield "linear_attn.in_proj_qkv.weight", qkv
    yield "linear_attn.in_proj_z.weight", z
    yield "linear_attn.in_proj_b.weight", b
    yield "linear_attn.in_proj_a.weight", a
    yield "linear_attn.conv1d.weight", mixer.conv.unsqueeze(1)
    yield "linear_attn.A_log", mixer.a_log
    yield "linear_attn.dt_bias", mixer.dt_bias
    yield "linear_attn.norm.weight", mixer.norm
    yield "linear_attn.out_proj.weight", mixer.out


def _attention_names(mixer: AttentionWeights, shapes: Shapes) -> Iterator[tuple[str, Tensor]]:
    widths = [2 * shapes.attention_width, shapes.kv_width, shapes.kv_width]
    for name, part in zip("qkv", mixer.qkv.split(widths), strict=True):
        yield f"self_attn.{name}_proj.weight", part
    yield "self_attn.q_norm.weight", mixer.q_norm
    yield "self_attn.k_norm.weight", mixer.k_norm
    yield "self_attn.o_proj.weight", mixer.out


def _copy(source: Tensor, target: Tensor, name: str) -> None:
    if source.shape != target.shape:
        raise MeasureError(
            f"{name} has the shape {list(source.shape)}, and the model needs {list(target.shape)}."
        )
    target.copy_(source)
