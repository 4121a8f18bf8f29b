"""From the name of a model to its forwards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from graphgain.errors import ConfigError, MeasureError
from graphgain.models import reference
from graphgain.models.forward import Forward
from graphgain.models.lean import Cache, Lean
from graphgain.models.shapes import QWEN_27B, Shapes, with_layers
from graphgain.models.weights import checkpoint_shapes, load_weights, random_weights

LEAN, TRANSFORMERS = "lean", "transformers"
_SEED = 20260923

MakeForward = Callable[[int, int], Forward]
"""Makes a forward of so many tokens after so many cached ones."""


def build_models(
    names: list[str], layers: int, checkpoint: str, device: torch.device
) -> dict[str, MakeForward]:
    """By name, what makes forwards of a model.

    `lean` and `transformers` are the two implementations of Qwen3.8-27B and share their weights:
    random ones, or those of the folder `checkpoint`; `layers` other than 0 cuts them short. Any
    other name is a configuration for transformers, a folder or an id on its hub, and gets random
    weights. Raises MeasureError, MissingToolError, ConfigError.
    """
    made: dict[str, MakeForward] = {}
    if {LEAN, TRANSFORMERS} & set(names):
        shapes = model_shapes(checkpoint, layers)
        weights = random_weights(shapes, device, _SEED)
        if checkpoint:
            load_weights(weights, Path(checkpoint))

        def lean(tokens: int, cached: int) -> Forward:
            cache = Cache.random(shapes, cached + tokens, device)
            return Lean(weights, cache, tokens, cached).forward()

        made[LEAN] = lean
        if TRANSFORMERS in names:
            made[TRANSFORMERS] = _from_transformers(
                reference.build_model(weights), shapes.vocabulary, TRANSFORMERS, device
            )
    for name in names:
        if name not in (LEAN, TRANSFORMERS):
            model = _configured_model(name, layers, device)
            vocabulary = model.config.get_text_config().vocab_size
            made[name] = _from_transformers(model, vocabulary, name, device)
    return {name: made[name] for name in names}


def model_shapes(checkpoint: str, layers: int) -> Shapes:
    """The geometry of `lean` and `transformers`."""
    shapes = checkpoint_shapes(Path(checkpoint)) if checkpoint else QWEN_27B
    return with_layers(shapes, layers) if layers else shapes


def _from_transformers(model: Any, vocabulary: int, name: str, device: torch.device) -> MakeForward:
    def make(tokens: int, cached: int) -> Forward:
        generator = torch.Generator(device).manual_seed(2)
        ids = torch.randint(vocabulary, (1, tokens), generator=generator, device=device)
        return reference.forward(model, ids, cached, name)

    return make


def _configured_model(name: str, layers: int, device: torch.device) -> Any:
    """A causal LM with random weights from a configuration that transformers finds."""
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(name).get_text_config()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{name}: transformers finds no configuration of a model there "
            f"({str(error).strip().partition(chr(10))[0]})."
        ) from None
    if layers:
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:layers]
    torch.manual_seed(_SEED)
    try:
        with device:
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    except torch.OutOfMemoryError:
        raise MeasureError(
            f"{name}: the model's weights do not fit into the GPU's free memory: "
            "use a smaller model or fewer layers."
        ) from None
    except ValueError as error:
        raise MeasureError(
            f"{name}: is not a causal language model of transformers ({error})."
        ) from None
    return model.eval()
