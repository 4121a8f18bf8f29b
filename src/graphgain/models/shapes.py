"""The geometry of Qwen3.8-27B, and small models of the same kind for tests.

The published configuration of Qwen3.5-27B has the same layers, heads and widths.
"""

from dataclasses import dataclass, replace
from typing import Any

from graphgain.errors import ConfigError


@dataclass(frozen=True)
class Shapes:
    """Widths and counts of a model that mixes Gated DeltaNet and full attention layers.

    Every `attention_interval`-th layer is full attention. Keys, queries and values of an attention
    head are `head_dim` wide, those of a DeltaNet head `linear_head_dim`; rotary embedding turns the
    first `rotary_dim` of a head.
    """

    layers: int = 64
    hidden: int = 5120
    intermediate: int = 17408
    vocabulary: int = 248320
    heads: int = 24
    kv_heads: int = 4
    head_dim: int = 256
    rotary_dim: int = 64
    rope_theta: float = 1e7
    linear_key_heads: int = 16
    linear_value_heads: int = 48
    linear_head_dim: int = 128
    conv_width: int = 4
    attention_interval: int = 4
    norm_epsilon: float = 1e-6

    def is_attention(self, layer: int) -> bool:
        """Whether layer number `layer` (from 0) is full attention."""
        return (layer + 1) % self.attention_interval == 0

    @property
    def attention_layers(self) -> int:
        """How many layers are full attention."""
        return self.layers // self.attention_interval

    @property
    def delta_layers(self) -> int:
        """How many layers are Gated DeltaNet."""
        return self.layers - self.attention_layers

    @property
    def key_width(self) -> int:
        """Width of a DeltaNet layer's queries, and of its keys."""
        return self.linear_key_heads * self.linear_head_dim

    @property
    def value_width(self) -> int:
        """Width of a DeltaNet layer's values, of its gate z and of its output."""
        return self.linear_value_heads * self.linear_head_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the depthwise convolution: queries, keys and values."""
        return 2 * self.key_width + self.value_width

    @property
    def attention_width(self) -> int:
        """Width of all query heads, and of an attention layer's output."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_dim

    def decode_weight_bytes(self) -> int:
        """Bytes of weights that one decode step reads: all in bf16 but the embedding table.

        Norm weights and other vectors are left out; they are less than a thousandth.
        """
        mlp = 3 * self.intermediate * self.hidden
        attention = (2 * self.attention_width + 2 * self.kv_width) * self.hidden
        attention += self.attention_width * self.hidden
        delta = (self.conv_channels + self.value_width + 2 * self.linear_value_heads) * self.hidden
        delta += self.value_width * self.hidden
        layers = self.attention_layers * attention + self.delta_layers * delta + self.layers * mlp
        return 2 * (layers + self.vocabulary * self.hidden)

    def transformers_config(self) -> dict[str, Any]:
        """The keyword arguments of transformers' `Qwen3_5TextConfig`."""
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "max_position_embeddings": 262144,
            "rms_norm_eps": self.norm_epsilon,
            "tie_word_embeddings": False,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": self.rope_theta,
                "partial_rotary_factor": self.rotary_dim / self.head_dim,
                # Frequencies for time, height and width; text has the same position in all three.
                "mrope_section": [(self.rotary_dim // 2 + extra) // 3 for extra in (2, 1, 0)],
                "mrope_interleaved": True,
            },
            "attention_bias": False,
            "attention_dropout": 0.0,
            "linear_conv_kernel_dim": self.conv_width,
            "linear_key_head_dim": self.linear_head_dim,
            "linear_value_head_dim": self.linear_head_dim,
            "linear_num_key_heads": self.linear_key_heads,
            "linear_num_value_heads": self.linear_value_heads,
            "full_attention_interval": self.attention_interval,
            "layer_types": [
                "full_attention" if self.is_attention(layer) else "linear_attention"
                for layer in range(self.layers)
            ],
        }


QWEN_27B = Shapes()
"""Qwen3.8-27B."""


def with_layers(shapes: Shapes, layers: int) -> Shapes:
    """The same widths with another depth; raises ConfigError without a full attention layer."""
    if layers < shapes.attention_interval:
        raise ConfigError(
            f"layers is {layers}, and only every {shapes.attention_interval}th layer is full "
            f"attention: use at least {shapes.attention_interval}."
        )
    return replace(shapes, layers=layers)
