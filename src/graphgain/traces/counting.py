"""From leading known blocks to tokens: cached tokens of each request, and of each cache size."""

from dataclasses import dataclass

import numpy as np

from graphgain.errors import TraceError
from graphgain.traces.corpus import Corpus
from graphgain.traces.matching import Ints
from graphgain.traces.rules import Rules


@dataclass(frozen=True)
class Counted:
    """Tokens of each request that the rules count; `request` is its place in the corpus."""

    request: Ints
    input_tokens: Ints
    cached_tokens: Ints

    @property
    def prefill_tokens(self) -> Ints:
        """What each request still has to prefill."""
        return self.input_tokens - self.cached_tokens

    @property
    def hit_percent(self) -> float:
        """Share of all input tokens that is cached."""
        total = int(self.input_tokens.sum())
        return 100 * int(self.cached_tokens.sum()) / total if total else 0.0


def count(corpus: Corpus, rules: Rules) -> Counted:
    """Count the cached tokens of every request under some rules.

    A request's cached tokens are those of its leading known blocks, but no more than it has. Raises
    TraceError where the corpus was not matched under the rule about subagents.
    """
    if rules.subagents not in corpus.lead:
        raise TraceError(f"the trace was not matched with subagents {rules.subagents}.")
    if rules.outputs == "cached" and "mooncake" in corpus.formats:
        raise TraceError(
            "outputs cached: a Mooncake file does not say which request is the turn before another."
        )
    tokens, size = _input_tokens(corpus, rules), corpus.block_tokens
    blocks = np.minimum(corpus.lead[rules.subagents], _cacheable(corpus, rules))
    cached = np.minimum(size * blocks, tokens)
    if rules.outputs == "cached":
        cached = cached + np.minimum(corpus.reply, tokens - cached)
    kept = np.flatnonzero(_counted(corpus, rules))
    if not len(kept):
        raise TraceError("no request is left to count: every conversation has only its first one.")
    return Counted(kept, tokens[kept], cached[kept])


@dataclass(frozen=True)
class CacheCurve:
    """Hit rate against the size of an LRU cache; `tokens[i]` is the size from which on it holds."""

    tokens: Ints
    hit_percent: list[float]

    def at(self, tokens: int) -> float:
        """The hit rate of a cache of so many tokens."""
        place = int(np.searchsorted(self.tokens, tokens, side="right")) - 1
        return self.hit_percent[place] if place >= 0 else 0.0


def cache_curve(corpus: Corpus, rules: Rules) -> CacheCurve:
    """The hit rate for every size of a cache that evicts the least recently used block.

    Each conversation (or with seen "global" the corpus) has one cache, which its subagents share.
    Raises TraceError for rules that a finite cache has no meaning under.
    """
    if rules.subagents != "shared" or rules.outputs != "uncached":
        raise TraceError(
            "a cache of finite size is counted with subagents shared and outputs uncached."
        )
    tokens, size = _input_tokens(corpus, rules), corpus.block_tokens
    request, depth, rank, length = corpus.ranks.T
    request = request.astype(np.int64)
    fits = np.clip(_cacheable(corpus, rules)[request] - depth, 0, length)
    fits = np.where(_counted(corpus, rules)[request], fits, 0)
    top = int((rank + length).max(initial=1))
    # Blocks by rank: one more from each run's first rank on, one less behind its last.
    any_fit = (fits > 0).astype(np.int64)
    blocks = np.cumsum(_histogram(rank, any_fit, top) - _histogram(rank + fits, any_fit, top))
    gained = size * blocks
    # A partial last block brings fewer tokens than a block has.
    missing = size * (depth + fits) - tokens[request]
    partial = (fits > 0) & (missing > 0)
    gained -= _histogram(rank + fits - 1, np.where(partial, missing, 0), top)
    total = int(tokens[_counted(corpus, rules)].sum())
    hits = np.cumsum(gained)
    steps = np.flatnonzero(gained)
    percent = [100 * int(hit) / total for hit in hits[steps]] if total else []
    return CacheCurve(size * steps.astype(np.int64), percent)


def _histogram(places: Ints, weights: Ints, top: int) -> Ints:
    histogram = np.zeros(top + 1, np.int64)
    np.add.at(histogram, places, weights)
    return histogram


def _input_tokens(corpus: Corpus, rules: Rules) -> Ints:
    if rules.last_block == "dropped":
        return corpus.input_tokens // corpus.block_tokens * corpus.block_tokens
    return corpus.input_tokens


def _cacheable(corpus: Corpus, rules: Rules) -> Ints:
    """How many leading blocks of each request may come from the cache."""
    full = corpus.input_tokens // corpus.block_tokens
    if rules.last_block == "hashed":
        return corpus.blocks
    if rules.last_block == "recomputed":
        return np.maximum(-(-corpus.input_tokens // corpus.block_tokens) - 1, 0)
    return full


def _counted(corpus: Corpus, rules: Rules) -> Ints:
    return corpus.first == 0 if rules.first_requests == "out" else np.ones_like(corpus.first, bool)
