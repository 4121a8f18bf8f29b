"""Prompts that no cache knows: random token ids."""

import numpy as np

FIRST_TOKEN = 1000
"""Below are special tokens in most vocabularies, which engines may treat differently."""

WHAT = "random token ids; seed: the prompt's length, its place among them and a number of the run"


def token_ids(length: int, index: int, vocabulary: int, run: int) -> list[int]:
    """`length` ids of request number `index` of that length.

    `run` is another number for each start of a server's sweep, so that a prompt that was sent
    before an interruption is not sent again: a cache could know it.
    """
    generator = np.random.default_rng([length, index, run])
    first = FIRST_TOKEN if vocabulary > 2 * FIRST_TOKEN else vocabulary // 2
    return [int(token) for token in generator.integers(first, vocabulary, length)]
