"""A folder that engines take for Qwen3.8-27B: its shapes, no weights, and a made-up tokenizer.

Engines fill it with random weights (`random_weights_arguments`). How long a prefill takes does not
depend on the values of a dense model's weights.
"""

import json
from pathlib import Path

from graphgain.errors import ConfigError
from graphgain.files import write_atomically

SHAPES = Path("config/engines/models/qwen3.8-27b/config.json")
NAME = "Qwen3.8-27B"
SMALLEST_VOCABULARY = 16


def make_model_folder(folder: Path, shapes: Path = SHAPES) -> Path:
    """Write config.json, what lies beside it in `shapes`' folder (a model that could see images has
    to have the settings of their processors), tokenizer.json and tokenizer_config.json; returns the
    absolute folder. Raises ConfigError."""
    try:
        config = json.loads(shapes.read_text(encoding="utf-8"))
        vocabulary = int(config["text_config"]["vocab_size"])
    except FileNotFoundError:
        raise ConfigError(
            f"{shapes}: no such file; run graphgain in the project's folder."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{shapes}: not a model configuration ({error!r}).") from None
    folder.mkdir(parents=True, exist_ok=True)
    for path in shapes.parent.glob("*.json"):
        write_atomically(folder / path.name, path.read_text(encoding="utf-8"))
    write_atomically(folder / "tokenizer.json", tokenizer_text(vocabulary))
    write_atomically(folder / "tokenizer_config.json", _TOKENIZER_CONFIG)
    return folder.resolve()


def vocabulary_of(folder: Path) -> int:
    """The size of the vocabulary that a model's config.json states; raises ConfigError."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        size = int((config.get("text_config") or config)["vocab_size"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: states no vocab_size ({error!r}).") from None
    if size < SMALLEST_VOCABULARY:
        raise ConfigError(f"{path}: a vocab_size of {size} is too small for random prompts.")
    return size


def tokenizer_text(vocabulary: int) -> str:
    """A tokenizer that gives every id a word of its own: `t0`, `t1`, ... parted by spaces."""
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordLevel",
                "vocab": {f"t{index}": index for index in range(vocabulary)},
                "unk_token": "t0",
            },
        }
    )


_TOKENIZER_CONFIG = (
    json.dumps(
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "t1",
            "unk_token": "t0",
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1 << 20,
        },
        indent=1,
    )
    + "\n"
)
