"""Medians, quartiles and intervals, against numpy and against what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphgain.errors import MeasureError
from graphgain.measuring.summary import (
    P99_MIN_SAMPLES,
    paired_difference,
    percentile,
    quantity,
    significant,
)
from graphgain.results.quantity import Quantity

# No measured time is below a nanosecond or above an hour, in µs.
times = st.floats(1e-3, 3.6e9)
runs = st.lists(st.lists(times, min_size=1, max_size=30), min_size=1, max_size=5)


@given(runs)
def test_pooled_statistics_are_numpys(samples: list[list[float]]) -> None:
    found = quantity(samples)
    pooled = np.concatenate(samples)
    q1, median, q3 = np.percentile(pooled, (25, 50, 75))
    assert found["median"] == pytest.approx(median, rel=1e-5)
    assert found["q1"] == pytest.approx(q1, rel=1e-5)
    assert found["q3"] == pytest.approx(q3, rel=1e-5)
    assert found["n"] == sum(map(len, samples))
    assert found["runs"] == pytest.approx([np.median(run) for run in samples], rel=1e-5)
    for kept, run in zip(found["samples"], samples, strict=True):
        assert kept == pytest.approx(run, rel=1e-4)
    Quantity.model_validate(found)


@given(runs)
def test_the_interval_is_the_spread_of_run_medians(samples: list[list[float]]) -> None:
    found = quantity(samples)
    if len(samples) == 1:
        assert "low" not in found and "interval" not in found
    else:
        medians = [float(np.median(run)) for run in samples]
        assert found["interval"] == "run medians"
        assert found["low"] == pytest.approx(min(medians), rel=1e-5)
        assert found["high"] == pytest.approx(max(medians), rel=1e-5)
        assert found["low"] <= found["median"] <= found["high"]


@given(runs, st.floats(0.1, 1000))
def test_a_constant_shift_is_found_exactly_by_pairing(
    samples: list[list[float]], shift: float
) -> None:
    shifted = [[value + shift for value in run] for run in samples]
    found = paired_difference(shifted, samples, name="shift")
    # As exactly as the sums themselves are represented.
    largest = max(max(run) for run in shifted)
    assert found["median"] == pytest.approx(shift, rel=1e-5, abs=largest * 1e-15 * 2)
    assert "samples" not in found


def test_pairing_removes_noise_that_both_sides_share() -> None:
    noise = [0.0, 100.0, 3.0, 50.0]
    found = paired_difference([[1 + x for x in noise]], [[x for x in noise]], name="x")
    assert (found["median"], found["q1"], found["q3"]) == (1.0, 1.0, 1.0)


def test_unpaired_sides_are_refused() -> None:
    with pytest.raises(MeasureError, match="handoff: the two sides"):
        paired_difference([[1.0, 2.0]], [[1.0]], name="handoff")


@pytest.mark.parametrize("bad", [[], [[]], [[1.0], []], [[float("nan")]], [[float("inf"), 1.0]]])
def test_nothing_and_not_a_number_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(MeasureError):
        quantity(bad)


@given(st.floats(1e-6, 1e12), st.integers(1, 12))
def test_significant_digits(value: float, digits: int) -> None:
    rounded = significant(value, digits)
    assert abs(rounded - value) <= value * 0.5 * 10 ** (1 - digits) * (1 + 1e-9)
    assert significant(rounded, digits) == rounded


def test_percentiles_pool_the_runs() -> None:
    assert percentile([[1.0, 2.0], [3.0, 4.0, 5.0]], 50) == 3.0
    assert percentile([[1.0, 2.0], [3.0, 4.0, 5.0]], 100) == 5.0


def test_the_p99_rule_is_the_binomial_one() -> None:
    assert 0.99**P99_MIN_SAMPLES < 0.01 <= 0.99 ** (P99_MIN_SAMPLES - 1)
