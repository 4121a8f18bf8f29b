"""The interval of a median: known ranks, and that it covers as often as it says."""

import random

import pytest

from graphgain.median import CONFIDENCE, FEWEST, median_interval


@pytest.mark.parametrize(
    ("n", "low", "high"),
    # Ranks as in printed tables of the sign test at 95 %.
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (15, 4, 12), (20, 6, 15), (30, 10, 21)],
)
def test_the_ranks_are_those_of_the_sign_test(n: int, low: int, high: int) -> None:
    values = list(range(1, n + 1))
    random.Random(1).shuffle(values)
    assert median_interval(values) == (low, high)


def test_few_values_say_nothing() -> None:
    assert median_interval(range(FEWEST - 1)) is None
    assert median_interval([]) is None


def test_it_covers_the_median_of_a_skewed_distribution() -> None:
    source = random.Random(7)
    covered = 0
    for _ in range(2000):
        low, high = median_interval([source.expovariate(1.0) for _ in range(25)])  # type: ignore[misc]
        covered += low <= 0.6931 <= high
    assert covered / 2000 >= CONFIDENCE - 0.01
