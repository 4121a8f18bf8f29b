"""How well a median is known from a sample, whatever the distribution."""

from collections.abc import Sequence
from math import comb

CONFIDENCE = 0.95
FEWEST = 6
"""Fewest values of which the lowest and the highest enclose the median with 95 % confidence."""


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The interval between two of the sorted values that encloses the median with at least 95 %
    confidence; None where there are fewer than six.

    How many values are below the median follows the binomial distribution with p = 1/2, so the
    k-th lowest and the k-th highest enclose it unless fewer than k values are on one side (Conover,
    Practical Nonparametric Statistics, 3.2).
    """
    n = len(values)
    if n < FEWEST:
        return None
    outside, k = 0.0, 0
    while (more := outside + 2 * comb(n, k) / 2**n) <= 1 - CONFIDENCE:
        outside, k = more, k + 1
    ordered = sorted(values)
    return ordered[k - 1], ordered[n - k]
