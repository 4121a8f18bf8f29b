"""The stopping criterion and the JSON writer of the native programs, without CUDA or timing."""

import itertools
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "native"))
from toolchain import PROBES, compile_plain


@pytest.fixture(scope="module")
def stopping_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("native") / "stopping_probe"
    return compile_plain(PROBES / "stopping_probe.cpp", target)


def stop(
    probe: Path,
    samples: list[float],
    *,
    fewest: int = 180,
    most: int = 540,
    noise: float = 0.005,
    limit_s: float = 1e9,
) -> tuple[str, int, float]:
    """Verdict, number of samples and noise; a sample takes one simulated second."""
    result = subprocess.run(
        [str(probe), str(fewest), str(most), str(noise), str(limit_s)],
        input="\n".join(repr(sample) for sample in samples),
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, count, final = result.stdout.split()
    return verdict, int(count), float(final)


def relative_deviation(samples: list[float]) -> float:
    return statistics.stdev(samples) / statistics.fmean(samples)


def noisy(seed: int, spread: float, count: int) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(3.0, 3.0 * spread) for _ in range(count)]


def test_quiet_samples_converge_at_the_minimum_and_not_before(stopping_probe: Path) -> None:
    assert stop(stopping_probe, noisy(1, 0.001, 600))[:2] == ("converged", 180)
    assert stop(stopping_probe, noisy(1, 0.001, 179))[:2] == ("undecided", 179)


def test_noise_is_the_relative_standard_deviation(stopping_probe: Path) -> None:
    samples = noisy(2, 0.001, 180)
    assert stop(stopping_probe, samples)[2] == pytest.approx(relative_deviation(samples), rel=1e-9)


def test_converges_when_an_early_outlier_has_been_diluted(stopping_probe: Path) -> None:
    samples = [3.3, *itertools.repeat(3.0, 599)]
    expected = next(n for n in range(180, 600) if relative_deviation(samples[:n]) < 0.005)
    assert expected > 180
    assert stop(stopping_probe, samples, most=600)[:2] == ("converged", expected)


def test_a_steady_noise_is_finished_as_stably_noisy(stopping_probe: Path) -> None:
    # Alternating samples have nearly the same deviation from the first few on.
    samples = [2.0, 4.0] * 300
    history = [relative_deviation(samples[:n]) for n in range(5, 601)]
    expected = next(
        n
        for n in range(192, 600, 16)
        if statistics.stdev(history[: n - 4]) < 0.05 * statistics.fmean(history[: n - 4])
    )
    assert stop(stopping_probe, samples)[:2] == ("stably_noisy", expected)


def test_stable_noise_needs_more_than_64_noise_values(stopping_probe: Path) -> None:
    # At 64 samples there are 60 noise values, so the first look that counts is at 80.
    assert stop(stopping_probe, [2.0, 4.0] * 100, fewest=5)[:2] == ("stably_noisy", 80)


def test_the_history_forgets_all_but_the_last_512_noise_values(stopping_probe: Path) -> None:
    # A jump after 30 equal samples unsettles the history until the quiet start has left it.
    samples = [3.0] * 30 + [2.0, 4.0] * 600
    history = [relative_deviation(samples[:n]) for n in range(5, len(samples) + 1)]

    def stable(values: list[float]) -> bool:
        return statistics.stdev(values) < 0.05 * statistics.fmean(values)

    looks = range(192, len(samples), 16)
    windowed = next(n for n in looks if stable(history[: n - 4][-512:]))
    unlimited = next((n for n in looks if stable(history[: n - 4])), None)
    assert windowed != unlimited
    assert stop(stopping_probe, samples, most=5000)[:2] == ("stably_noisy", windowed)


def test_a_growing_noise_runs_into_the_round_limit(stopping_probe: Path) -> None:
    samples = [3.0 + (-1) ** n * 1e-4 * n * n for n in range(600)]
    assert stop(stopping_probe, samples)[:2] == ("round_limit", 540)


def test_the_time_limit_ends_a_series_before_its_minimum(stopping_probe: Path) -> None:
    assert stop(stopping_probe, noisy(3, 0.2, 600), limit_s=40)[:2] == ("time_limit", 40)


def test_no_series_is_shorter_than_five_samples(stopping_probe: Path) -> None:
    verdict, count, noise = stop(stopping_probe, noisy(4, 0.2, 600), limit_s=1)
    assert (verdict, count) == ("time_limit", 5)
    assert noise > 0


def test_zero_mean_never_counts_as_quiet(stopping_probe: Path) -> None:
    assert stop(stopping_probe, [0.0] * 600)[:2] == ("round_limit", 540)


@pytest.fixture(scope="module")
def json_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("native") / "json_probe"
    return compile_plain(PROBES / "json_probe.cpp", target)


def test_json_is_read_back_as_it_was_meant(json_probe: Path) -> None:
    printed = subprocess.run([str(json_probe)], capture_output=True, check=True).stdout
    assert json.loads(printed) == {
        "text": 'void k<"a\\b">\n\t\x01(µs)',
        "number": 1.23457e06,
        "small": 0.333333,
        "integer": 9007199254740993,
        "truth": True,
        "empty": [],
        "list": ["a", "b"],
        "nested": {},
    }


def test_a_number_that_json_cannot_hold_is_an_error(json_probe: Path) -> None:
    result = subprocess.run([str(json_probe), "nan"], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert result.stdout == ""
    assert "not a finite number" in result.stderr
