"""Arithmetic on timelines of kernels."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from graphgain.errors import MeasureError
from graphgain.unroll.profile import Span, idle_ns, last_end, later_us, medians, second_run

TIMELINE = [Span("a", 1000, 3000), Span("b", 2500, 5000), Span("c", 7000, 8000)]


def test_idle_time_is_when_nothing_runs() -> None:
    assert idle_ns(TIMELINE) == 2000
    assert idle_ns(TIMELINE[:1]) == 0
    # A short kernel inside a long one does not end the long one.
    assert idle_ns([Span("a", 0, 10), Span("b", 2, 4), Span("c", 12, 13)]) == 2


def test_times_from_end_to_end_add_up_to_the_whole() -> None:
    assert later_us(TIMELINE) == [2.0, 2.0, 3.0]
    assert sum(later_us(TIMELINE)) == (last_end(TIMELINE) - TIMELINE[0].start_ns) / 1000


def test_medians_are_by_column() -> None:
    assert medians([[1.0, 5.0], [2.0, 4.0], [9.0, 3.0]]) == [2.0, 4.0]


def test_the_second_of_two_runs_is_taken() -> None:
    copy = Span("copy", 0, 1)
    assert second_run([*TIMELINE, copy, copy, *TIMELINE[::-1]], 2) == TIMELINE[::-1]
    for spans in ([*TIMELINE, copy, *TIMELINE], [copy, copy], []):
        with pytest.raises(MeasureError, match="not two equal runs with 2 copies"):
            second_run(spans, 2)
