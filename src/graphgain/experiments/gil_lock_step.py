"""Ranks that wait for each other at every step: what the group needs, from what one rank needs."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphgain.measuring.summary import SUMMARY_DIGITS, significant

PERCENTILES = (50, 90, 99)
DRAWS = 20_000
SEED = 5


def min_samples(percent: float) -> int:
    """Fewest samples of which a percentile may be claimed at 99 % confidence: p ** n < 0.01."""
    return int(np.ceil(np.log(0.01) / np.log(percent / 100)))


def supported(percent: float, samples: int, ranks: int = 1) -> bool:
    """Whether so many steps of one rank tell a percentile of the group.

    The slowest of `ranks` is below t when all are: the group's q is the single rank's q^(1/ranks).
    """
    return samples >= min_samples(100 * (percent / 100) ** (1 / ranks))


def slowest_of(
    steps_us: npt.NDArray[np.float64], ranks: int, draws: int = DRAWS, seed: int = SEED
) -> npt.NDArray[np.float64]:
    """`draws` steps of a group: each the slowest of `ranks` single steps, drawn with replacement.

    The ranks are independent of each other, and so are a rank's steps.
    """
    generator = np.random.default_rng(seed)
    slowest = generator.choice(steps_us, draws)
    for _ in range(ranks - 1):
        np.maximum(slowest, generator.choice(steps_us, draws), out=slowest)
    return slowest


def resampled(
    steps_us: npt.NDArray[np.float64], group_sizes: Iterable[int]
) -> list[dict[str, Any]]:
    """For each group size the percentiles of its step; null where the samples are too few."""
    return [
        {
            "ranks": ranks,
            "source": "resampled",
            "n": len(steps_us),
            **_percentiles(slowest_of(steps_us, ranks), len(steps_us), ranks),
        }
        for ranks in group_sizes
    ]


def measured(steps_us: npt.NDArray[np.float64], ranks: int) -> dict[str, Any]:
    """The percentiles of a real group's step."""
    return {
        "ranks": ranks,
        "source": "measured",
        "n": len(steps_us),
        **_percentiles(steps_us, len(steps_us), 1),
    }


def _percentiles(values: npt.NDArray[np.float64], n: int, ranks: int) -> dict[str, float | None]:
    return {
        f"p{percent}_us": significant(float(np.percentile(values, percent)), SUMMARY_DIGITS)
        if supported(percent, n, ranks)
        else None
        for percent in PERCENTILES
    }
