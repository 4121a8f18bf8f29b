"""The rules by which the GIL changes hands."""

from itertools import pairwise

import pytest

from graphgain.gil_policy import (
    Span,
    launcher_and_computing_thread,
    two_computing_threads,
    wait_ms,
)


def held(spans: list[Span]) -> list[Span]:
    """When the lock is held, in order of time."""
    return sorted((span for span in spans if span.state == "runs"), key=lambda span: span.start_ms)


def test_a_holder_that_computes_is_asked_after_one_interval() -> None:
    assert wait_ms(5, None, 0.1) == pytest.approx(5.1)


def test_a_voluntary_release_wakes_the_sleeper_at_once() -> None:
    assert wait_ms(5, 2, 0.1) == 2


def test_a_late_release_is_forestalled_by_the_request() -> None:
    assert wait_ms(5, 8, 0.1) == pytest.approx(5.1)


@pytest.mark.parametrize(
    "spans", [two_computing_threads(5), launcher_and_computing_thread(5)], ids=["compute", "launch"]
)
def test_one_thread_at_a_time_holds_the_lock(spans: list[Span]) -> None:
    for earlier, later in pairwise(held(spans)):
        assert earlier.end_ms <= later.start_ms + 1e-12
    for span in spans:
        assert span.end_ms > span.start_ms


def test_launches_are_a_switch_interval_apart() -> None:
    spans = launcher_and_computing_thread(5, launches=4)
    launches = [span.start_ms for span in spans if span.state == "launches"]
    assert len(launches) == 4
    assert all(right - left > 5 for left, right in pairwise(launches))
    # The other thread is given the lock at the very moment of each launch.
    taken = [span.start_ms for span in spans if span.thread == "B" and span.state == "runs"]
    assert taken == launches[:-1]
