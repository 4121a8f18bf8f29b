"""From the samples of independent process runs to a quantity with its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphgain.errors import MeasureError

SAMPLE_DIGITS = 5
SUMMARY_DIGITS = 6
P99_MIN_SAMPLES = 459
"""Fewest samples of which a p99 may be claimed at 99 % confidence: 0.99 ** 459 < 0.01."""

Samples = Sequence[float] | npt.NDArray[np.float64]


def quantity(
    runs: Sequence[Samples], *, stop: Sequence[str] | None = None, keep_samples: bool = True
) -> dict[str, Any]:
    """The Quantity of one list of samples per process run, all in one unit.

    `median`, `q1` and `q3` are of the pooled samples; `low` and `high` the lowest and highest
    median of a run, as the spread between processes is the honest interval of a noisy machine
    (absent with a single run). Raises MeasureError for an empty run, NaN or infinity.
    """
    arrays = [_finite(samples) for samples in runs]
    if not arrays:
        raise MeasureError("There is nothing to summarise: no process run gave samples.")
    pooled = np.concatenate(arrays)
    medians = [_round(np.median(samples)) for samples in arrays]
    q1, median, q3 = np.percentile(pooled, (25, 50, 75))
    result: dict[str, Any] = {"median": _round(median)}
    if len(medians) > 1:
        result |= {"low": min(medians), "high": max(medians), "interval": "run medians"}
    result |= {"n": len(pooled), "q1": _round(q1), "q3": _round(q3), "runs": medians}
    if keep_samples:
        result["samples"] = [
            [significant(float(value), SAMPLE_DIGITS) for value in samples] for samples in arrays
        ]
    if stop is not None:
        result["stop"] = list(stop)
    return result


def paired_difference(
    minuend: Sequence[Samples], subtrahend: Sequence[Samples], *, name: str
) -> dict[str, Any]:
    """The Quantity of `minuend` − `subtrahend`, sample by sample as they were taken.

    Samples taken in one round share its noise, so their difference is steadier than the difference
    of two medians. Samples are not repeated in it. Raises MeasureError where they do not pair up.
    """
    if [len(run) for run in minuend] != [len(run) for run in subtrahend]:
        raise MeasureError(f"{name}: the two sides were not sampled in pairs.")
    differences = [_finite(a) - _finite(b) for a, b in zip(minuend, subtrahend, strict=True)]
    return quantity(differences, keep_samples=False)


def percentile(runs: Sequence[Samples], percent: float) -> float:
    """A percentile (linear interpolation) of the pooled samples."""
    return _round(np.percentile(np.concatenate([_finite(run) for run in runs]), percent))


def significant(value: float, digits: int) -> float:
    """`value` rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def _finite(samples: Samples) -> npt.NDArray[np.float64]:
    array = np.asarray(samples, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise MeasureError("A process run gave no samples.")
    if not np.isfinite(array).all():
        raise MeasureError("A process run gave a sample that is not a finite number.")
    return array


def _round(value: Any) -> float:
    return significant(float(value), SUMMARY_DIGITS)
