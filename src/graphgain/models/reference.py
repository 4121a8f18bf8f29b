"""The forward of transformers, as it comes: a Python engine that does not fuse."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from graphgain.models.forward import Forward
from graphgain.models.weights import Weights


def build_model(weights: Weights, attention: str = "sdpa") -> Any:
    """A `Qwen3_5ForCausalLM` whose parameters are views of `weights`.

    It is made on the meta device, so that nothing is initialised twice.
    """
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextRotaryEmbedding

    config = Qwen3_5TextConfig(
        **weights.shapes.transformers_config(), dtype="bfloat16", attn_implementation=attention
    )
    with torch.device("meta"):
        model = Qwen3_5ForCausalLM(config)
    model.load_state_dict(weights.named(), assign=True, strict=True)
    # Not part of the state: computed from the configuration.
    model.model.rotary_emb = Qwen3_5TextRotaryEmbedding(config).to(weights.embedding.device)
    return model.eval()


def forward(model: Any, ids: Tensor, cached: int, name: str = "transformers") -> Forward:
    """A forward of any transformers causal LM over `ids` [1, tokens], after `cached` tokens.

    The cache is a `StaticCache` that has seen noise: work does not depend on the values. The result
    are the last token's logits [1, vocabulary].
    """
    from transformers import StaticCache

    cache = StaticCache(config=model.config, max_cache_len=cached + ids.shape[1])

    def run() -> Tensor:
        with torch.no_grad():
            logits: Tensor = model(
                input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1
            ).logits
        return logits[:, -1]

    run()  # allocates what the cache holds
    state = tuple(_fill(cache.layers, cached))

    def before() -> None:
        for layer in cache.layers:
            if hasattr(layer, "has_previous_state"):
                for index in layer.has_previous_state:
                    layer.has_previous_state[index] = cached > 0

    return Forward(name, run, state, before)


def _fill(layers: Iterable[Any], cached: int) -> Iterable[Tensor]:
    """Fill a cache with noise up to `cached` tokens, and list what a forward changes in it.

    Keys and values are not listed: a forward that is repeated writes the same ones again.
    """
    for layer in layers:
        if hasattr(layer, "cumulative_length"):
            layer.cumulative_length.fill_(cached)
            layer.keys.normal_(0.0, 0.1)
            layer.values.normal_(0.0, 0.1)
            yield layer.cumulative_length
        if hasattr(layer, "recurrent_states"):
            for states in (layer.conv_states, layer.recurrent_states):
                for tensor in states.values():
                    if tensor is not None:
                        tensor.normal_(0.0, 0.1) if cached else tensor.zero_()
                        yield tensor
