"""The TTFT that a distribution of requests has, from a curve of TTFT over prompt lengths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Expected:
    """The mean over the requests that the curve reaches, and how many of all those are."""

    mean_ms: float
    reached_percent: float


def ttft_at(lengths: Sequence[float], ttft_ms: Sequence[float], tokens: float) -> float:
    """TTFT at a length, linear between two lengths of the curve.

    Below the shortest length it is that of the shortest: the host's time does not depend on the
    length there. ValueError beyond the longest, where nothing is known.
    """
    if tokens > lengths[-1]:
        raise ValueError(f"{tokens} tokens lie beyond the curve, which ends at {lengths[-1]}")
    return float(np.interp(tokens, lengths, ttft_ms))


def expected_ttft(
    lengths: Sequence[float],
    ttft_ms: Sequence[float],
    tokens: Sequence[float],
    requests: Sequence[int],
) -> Expected | None:
    """The mean TTFT of `requests[i]` requests of (on average) `tokens[i]` tokens to prefill.

    Requests beyond the longest length of the curve are left out, not extrapolated; None where all
    are. The lengths have to rise.
    """
    weights = np.asarray(requests, dtype=float)
    reached = np.asarray(tokens, dtype=float) <= lengths[-1]
    if not weights[reached].sum():
        return None
    times = np.interp(np.asarray(tokens, dtype=float)[reached], lengths, ttft_ms)
    mean = float(np.average(times, weights=weights[reached]))
    return Expected(mean, float(100 * weights[reached].sum() / weights.sum()))
