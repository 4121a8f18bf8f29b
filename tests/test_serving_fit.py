"""The fit of a level and a line, on data of which both are known."""

import numpy as np
import pytest

from graphgain.serving_fit import captured_tokens, fit, parted

LENGTHS = [*range(128, 4097, 128), 8192]


def model(level: float, intercept: float, slope: float, tokens: float) -> float:
    return max(level, intercept + slope * tokens / 1024)


@pytest.mark.parametrize(("level", "slope"), [(75.0, 87.0), (100.0, 40.0), (40.0, 87.0)])
def test_known_parameters_are_found_through_noise(level: float, slope: float) -> None:
    noise = np.random.default_rng(1).normal(1, 0.01, len(LENGTHS))
    times = [model(level, 8, slope, isl) * each for isl, each in zip(LENGTHS, noise, strict=True)]
    found = fit(LENGTHS, times)
    assert found is not None and found.level_ms is not None and found.knee_tokens is not None
    assert found.level_ms == pytest.approx(level, rel=0.02)
    assert found.slope_ms_per_1k == pytest.approx(slope, rel=0.02)
    assert found.knee_tokens == pytest.approx(1024 * (level - 8) / slope, rel=0.05)
    assert found.residual_percent < 2
    assert found.at(64) == found.level_ms
    assert found.at(8192) == pytest.approx(8 + 8 * slope, rel=0.03)


def test_a_mode_that_the_host_never_binds_has_no_level() -> None:
    found = fit(LENGTHS, [10 + 0.09 * isl for isl in LENGTHS])
    assert found is not None and found.level_ms is None and found.knee_tokens is None
    assert found.intercept_ms == pytest.approx(10) and found.residual_percent < 1e-6


@pytest.mark.parametrize("rise", [0.0, -0.2, 0.005])
def test_flat_times_have_a_level_and_no_line(rise: float) -> None:
    noise = np.random.default_rng(3).normal(1, 0.04, (20, len(LENGTHS)))
    for scatter in noise:
        times = 50 * scatter * (1 + rise * np.array(LENGTHS) / max(LENGTHS))
        (whole,) = parted(LENGTHS, list(times))
        assert whole.flat and whole.model is None
        assert whole.level_ms == pytest.approx(np.median(times))
        assert whole.residual_percent is not None and 1 < whole.residual_percent < 10


def test_the_order_of_the_lengths_does_not_matter() -> None:
    times = [model(75, 8, 87, isl) for isl in LENGTHS]
    assert fit(LENGTHS[::-1], times[::-1]) == fit(LENGTHS, times)


def test_too_few_lengths_give_no_fit_and_bad_ones_are_refused() -> None:
    assert fit([128, 256], [1, 2]) is None
    with pytest.raises(ValueError, match="as many"):
        fit([128], [1, 2])
    with pytest.raises(ValueError, match="positive"):
        fit([1, 2, 3], [1, 0, 2])


def test_captured_lengths_are_a_part_of_their_own() -> None:
    captured = [isl for isl in LENGTHS if isl <= 512]
    times = [80.0 if isl <= 512 else model(130, 8, 87, isl) for isl in LENGTHS]
    below, above = parted(LENGTHS[::-1], times[::-1], 512)
    assert (below.which, below.lengths, below.level_ms) == ("captured", captured, 80.0)
    assert below.model is None and below.residual_percent == 0 and not below.flat
    assert above.which == "above" and above.lengths == LENGTHS[len(captured) :]
    assert above.model == fit(LENGTHS[len(captured) :], times[len(captured) :])
    assert above.level_ms == pytest.approx(130)
    (whole,) = parted(LENGTHS, times)
    assert whole.which == "all" and whole.lengths == LENGTHS


def test_a_limit_above_or_below_every_length_leaves_one_part() -> None:
    assert [part.which for part in parted([128, 256], [1.0, 2.0], 4096)] == ["captured"]
    (above,) = parted([1024, 2048], [1.0, 3.0], 512)
    assert (above.which, above.level_ms, above.model) == ("above", 2.0, None)
    assert parted([], []) == []


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({"cudagraph_mode": "FULL_AND_PIECEWISE", "capture_sizes": [1, 512, 64]}, 512),
        ({"cudagraph_mode": "FULL_DECODE_ONLY", "capture_sizes": [1, 64]}, None),
        ({"cudagraph_mode": "PIECEWISE", "capture_sizes": []}, None),
        ({"prefill_graph": "breakable", "capture_sizes": [4, 8192]}, None),
        ({}, None),
    ],
)
def test_the_captured_limit_is_of_piecewise_graphs(
    settings: dict[str, object], tokens: int | None
) -> None:
    assert captured_tokens(settings) == tokens
