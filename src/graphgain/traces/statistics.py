"""What is said about the tokens to prefill: percentiles, shares, a histogram, other rules."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from graphgain.traces.corpus import Corpus
from graphgain.traces.counting import CacheCurve, Counted, count
from graphgain.traces.matching import Ints
from graphgain.traces.rules import DEFAULT, EXPLAINED, Rules

PERCENTILES = (10, 25, 50, 75, 85, 90, 95, 99)
SHORT_TOKENS = (1024, 2048, 4096, 8192, 16384)
BINS_PER_OCTAVE = 8
CACHE_SIZES_PER_OCTAVE = 2
_SMALLEST_CACHE_TOKENS = 1024


@dataclass(frozen=True)
class Bin:
    """Requests with at most so many tokens to prefill, and more than the bin before."""

    at_most_tokens: int
    requests: int
    prefill_tokens: int


def percentile(prefill_tokens: Ints, percent: float) -> float:
    """A percentile, by linear interpolation between two requests."""
    return round(float(np.percentile(prefill_tokens, percent)), 3)


def share(prefill_tokens: Ints, bound: int) -> tuple[float, float]:
    """Percent of the requests with at most `bound` tokens, and of all tokens that they have."""
    short = prefill_tokens <= bound
    total = int(prefill_tokens.sum())
    tokens = 100 * int(prefill_tokens[short].sum()) / total if total else 100.0
    return 100 * float(np.mean(short)), tokens


def histogram(prefill_tokens: Ints) -> list[Bin]:
    """Bins whose upper bounds are 0, 1 and then eight an octave, without the empty ones."""
    top = max(int(prefill_tokens.max(initial=1)), 1)
    steps = np.arange(int(np.ceil(np.log2(top) * BINS_PER_OCTAVE)) + 2)
    bounds = np.unique(np.concatenate([[0], np.round(2 ** (steps / BINS_PER_OCTAVE))]))
    places = np.searchsorted(bounds, prefill_tokens, side="left")
    requests = np.bincount(places, minlength=len(bounds))
    tokens = np.zeros(len(bounds), np.int64)
    np.add.at(tokens, places, prefill_tokens)
    return [
        Bin(int(bounds[place]), int(requests[place]), int(tokens[place]))
        for place in np.flatnonzero(requests)
    ]


def cache_points(curve: CacheCurve) -> list[tuple[int, float]]:
    """The curve at two sizes an octave, from 1,024 tokens to the first that has all there is."""
    points = []
    step = 0
    while curve.hit_percent:
        size = round(_SMALLEST_CACHE_TOKENS * 2 ** (step / CACHE_SIZES_PER_OCTAVE))
        points.append((size, curve.at(size)))
        if size >= curve.tokens[-1]:
            break
        step += 1
    return points


def variants(corpus: Corpus, rules: Rules = DEFAULT) -> Iterator[tuple[Rules, Counted]]:
    """The corpus under the rules, and with each one rule changed that it was matched for.

    A rule that makes no difference by construction is left out: that about subagents where there
    are none, that about responses where a file does not know a prompt's predecessor.
    """
    yield rules, count(corpus, rules)
    for field in fields(Rules):
        for value in EXPLAINED[field.name]:
            if value != getattr(rules, field.name) and _tells(corpus, field.name, value):
                change: dict[str, Any] = {field.name: value}
                changed = replace(rules, **change)
                yield changed, count(corpus, changed)


def _tells(corpus: Corpus, rule: str, value: str) -> bool:
    if rule == "seen":
        return False  # the trees are others: this needs another match
    if rule == "subagents":
        return bool(corpus.stream.any()) and value in corpus.lead
    if rule == "outputs":
        return "mooncake" not in corpus.formats
    if rule == "first_requests":
        return bool((corpus.first == 0).any())
    return True
