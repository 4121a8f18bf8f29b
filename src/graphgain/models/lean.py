"""Our fused forward of a Qwen3.5-type model: few launches, most of them with PDL.

The calls of a decode step are those of Kern's: 10 a layer, around them embedding, rotary rows, norm
and head. Matrices are multiplied by cuBLAS through `torch.mm`, which may launch more than one
kernel; the rest is in `graphgain.models.kernels`. One sequence, all buffers allocated once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgain.errors import MissingToolError
from graphgain.measuring.packages import is_importable
from graphgain.models import kernels
from graphgain.models.forward import Forward
from graphgain.models.shapes import Shapes
from graphgain.models.weights import AttentionWeights, DeltaWeights, Weights


@dataclass(frozen=True)
class Cache:
    """What the layers remember: keys and values, and the state of the DeltaNet layers.

    `keys` and `values` are [attention layers, kv heads, capacity, head dim]; `conv` [delta layers,
    width - 1, channels]; `memory` [delta layers, value heads, key dim, value dim] in float32.
    """

    keys: Tensor
    values: Tensor
    conv: Tensor
    memory: Tensor

    @classmethod
    def random(cls, shapes: Shapes, capacity: int, device: torch.device, seed: int = 1) -> "Cache":
        """A cache that has seen `capacity` tokens of noise: work does not depend on the values."""
        generator = torch.Generator(device).manual_seed(seed)

        def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
            fresh = torch.empty(shape, dtype=dtype, device=device)
            return fresh.normal_(0.0, 0.1, generator=generator)

        kv = (shapes.attention_layers, shapes.kv_heads, capacity, shapes.head_dim)
        heads, dim = shapes.linear_value_heads, shapes.linear_head_dim
        return cls(
            keys=normal(*kv),
            values=normal(*kv),
            conv=normal(shapes.delta_layers, shapes.conv_width - 1, shapes.conv_channels),
            memory=normal(shapes.delta_layers, heads, dim, dim, dtype=torch.float32),
        )


class Lean:
    """Buffers and calls for `tokens` tokens at a time, `cached` ones before them.

    With one token it is a decode step, with more a prefill. Each run begins from `cache` as it is
    and from the same tokens, so that it can be repeated once the cache's states are put back.
    """

    def __init__(
        self, weights: Weights, cache: Cache, tokens: int, cached: int, *, pdl: bool = True
    ) -> None:
        """Raises MissingToolError for a prefill without flash-linear-attention."""
        self.weights, self.cache, self.tokens, self.cached = weights, cache, tokens, cached
        self.pdl = pdl
        if tokens > 1 and not is_importable("fla"):
            raise MissingToolError(
                "The lean prefill needs the Python package flash-linear-attention: "
                "pip install flash-linear-attention."
            )
        shapes, device = weights.shapes, weights.embedding.device
        generator = torch.Generator(device).manual_seed(2)
        self.ids = torch.randint(
            shapes.vocabulary, (tokens,), generator=generator, device=device, dtype=torch.int64
        )
        self.positions = torch.arange(cached, cached + tokens, device=device)
        self.cosines, self.sines = rotary_tables(shapes, cached + tokens, device)

        def rows(width: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
            return torch.empty((tokens, width), dtype=dtype, device=device)

        half, heads = shapes.rotary_dim // 2, shapes.linear_value_heads
        self.residual, self.normed = rows(shapes.hidden), rows(shapes.hidden)
        self.cosine, self.sine = rows(half), rows(half)
        self.qkvz, self.ba = rows(shapes.conv_channels + shapes.value_width), rows(2 * heads)
        self.convolved = torch.empty(
            tokens * shapes.conv_channels, dtype=torch.bfloat16, device=device
        )
        self.decay, self.beta = rows(heads, torch.float32), rows(heads, torch.float32)
        self.delta_out = rows(shapes.value_width)
        self.qkv = rows(2 * (shapes.attention_width + shapes.kv_width))
        self.q = rows(shapes.attention_width).view(tokens, shapes.heads, shapes.head_dim)
        self.attended = torch.empty_like(self.q)
        self.gated = rows(shapes.attention_width)
        self.scratch = kernels.AttentionScratch(
            shapes.heads, shapes.kv_heads, shapes.head_dim, device
        )
        self.mixed = rows(shapes.hidden)
        self.gate_up, self.act = rows(2 * shapes.intermediate), rows(shapes.intermediate)
        self.logits = torch.empty((1, shapes.vocabulary), dtype=torch.bfloat16, device=device)
        self.best = torch.empty(kernels.ARGMAX_PARTS, dtype=torch.float32, device=device)
        self.where = torch.empty(kernels.ARGMAX_PARTS, dtype=torch.int32, device=device)
        self.next_token = torch.empty(1, dtype=torch.int64, device=device)

    def forward(self) -> Forward:
        """The forward for measuring; its result are the logits of the last token."""
        return Forward("lean", self.run, (self.cache.conv, self.cache.memory))

    def run(self) -> Tensor:
        """Issue the forward on the current stream; returns the last token's logits."""
        weights, pdl, epsilon = self.weights, self.pdl, self.weights.shapes.norm_epsilon
        kernels.gather(weights.embedding, self.ids, self.residual, pdl=pdl)
        kernels.gather(self.cosines, self.positions, self.cosine, pdl=pdl)
        kernels.gather(self.sines, self.positions, self.sine, pdl=pdl)
        layers = weights.layers
        kernels.gemma_norm(self.residual, layers[0].input_norm, self.normed, epsilon, pdl=pdl)
        deltas = attentions = 0
        for index, layer in enumerate(layers):
            if isinstance(layer.mixer, DeltaWeights):
                self._delta(layer.mixer, deltas)
                deltas += 1
            else:
                self._attention(layer.mixer, attentions)
                attentions += 1
            self._add_and_norm(self.mixed, layer.post_norm)
            _multiply(self.normed, layer.gate_up, self.gate_up)
            kernels.silu_mul(self.gate_up, self.act, pdl=pdl)
            _multiply(self.act, layer.down, self.mixed)
            last = index + 1 == len(layers)
            self._add_and_norm(self.mixed, weights.norm if last else layers[index + 1].input_norm)
        _multiply(self.normed[-1:], weights.head, self.logits)
        kernels.argmax(self.logits, self.best, self.where, self.next_token, pdl=pdl)
        return self.logits

    def _add_and_norm(self, x: Tensor, weight: Tensor) -> None:
        epsilon = self.weights.shapes.norm_epsilon
        kernels.gemma_norm(self.residual, weight, self.normed, epsilon, add=x, pdl=self.pdl)

    def _delta(self, mixer: DeltaWeights, index: int) -> None:
        shapes, pdl = self.weights.shapes, self.pdl
        _multiply(self.normed, mixer.qkvz, self.qkvz)
        _multiply(self.normed, mixer.ba, self.ba)
        kernels.delta_conv(
            self.qkvz, mixer.conv, self.cache.conv[index], self.convolved, shapes.key_width,
            shapes.value_width, pdl=pdl,
        )  # fmt: skip
        z, memory = self.qkvz[:, shapes.conv_channels :], self.cache.memory[index]
        if self.tokens == 1:
            kernels.delta_step(
                self.convolved, z, self.ba, mixer.a_log, mixer.dt_bias, mixer.norm, memory,
                self.delta_out, shapes.norm_epsilon, pdl=pdl,
            )  # fmt: skip
        else:
            kernels.delta_gates(self.ba, mixer.a_log, mixer.dt_bias, self.decay, self.beta, pdl=pdl)
            out = self._chunked_delta(memory)
            kernels.gated_norm(out, z, mixer.norm, self.delta_out, shapes.norm_epsilon, pdl=pdl)
        _multiply(self.delta_out, mixer.out, self.mixed)

    def _chunked_delta(self, memory: Tensor) -> Tensor:
        """The gated delta rule over all tokens by flash-linear-attention's kernels.

        Returns [tokens, value heads, value dim] and updates `memory`.
        """
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule

        shapes, dim = self.weights.shapes, self.weights.shapes.linear_head_dim
        widths = [shapes.key_width, shapes.key_width, shapes.value_width]
        parts = self.convolved.split([self.tokens * width for width in widths])
        q, k, v = (part.view(1, self.tokens, -1, dim) for part in parts)
        out, after = chunk_gated_delta_rule(
            q,
            k,
            v,
            g=self.decay[None],
            beta=self.beta[None],
            initial_state=memory[None],
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        memory.copy_(after[0])
        result: Tensor = out[0]
        return result

    def _attention(self, mixer: AttentionWeights, index: int) -> None:
        shapes, pdl = self.weights.shapes, self.pdl
        keys, values = self.cache.keys[index], self.cache.values[index]
        _multiply(self.normed, mixer.qkv, self.qkv)
        kernels.attention_prepare(
            self.qkv, mixer.q_norm, mixer.k_norm, self.cosine, self.sine, self.positions, self.q,
            keys, values, shapes.norm_epsilon, pdl=pdl,
        )  # fmt: skip
        if self.tokens == 1:
            kernels.decode_attention(
                self.q, keys, values, self.positions, self.attended, self.scratch, pdl=pdl
            )
        else:
            kernels.prefill_attention(self.q, keys, values, self.attended, self.cached, pdl=pdl)
        kernels.sigmoid_mul(self.attended, self.qkv, self.gated, shapes.head_dim, pdl=pdl)
        _multiply(self.gated, mixer.out, self.mixed)


def rotary_tables(shapes: Shapes, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines in bf16, one row a position, one column a frequency."""
    exponents = torch.arange(0, shapes.rotary_dim, 2, dtype=torch.float32, device=device)
    frequencies = shapes.rope_theta ** (-exponents / shapes.rotary_dim)
    angles = torch.arange(length, dtype=torch.float32, device=device)[:, None] * frequencies
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def _multiply(x: Tensor, weight: Tensor, out: Tensor) -> None:
    torch.mm(x, weight.t(), out=out)
