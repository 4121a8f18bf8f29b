"""Where curves change places, and how labels are moved apart."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphgain.crossovers import crossovers
from graphgain.figures.labels import spread

heights = st.lists(st.floats(-1000, 1000), min_size=1, max_size=12)


def test_a_crossing_is_interpolated() -> None:
    (found,) = crossovers([0, 10], [0, 10], [6, 6])
    assert (found.left, found.right, found.at, found.value) == (0, 10, 6, 6)
    assert not found.first_below


def test_both_directions_are_found() -> None:
    found = crossovers([0, 1, 2], [0, 2, 0], [1, 1, 1])
    assert [cross.first_below for cross in found] == [False, True]


def test_touching_curves_do_not_cross() -> None:
    assert crossovers([0, 1, 2], [0, 1, 0], [1, 1, 1]) == []
    assert crossovers([0, 1], [1, 1], [1, 1]) == []


def test_equal_in_between_crosses_there() -> None:
    (found,) = crossovers([0, 1, 2, 3], [0, 1, 1, 2], [1, 1, 1, 1])
    assert (found.left, found.at, found.right, found.value) == (0, 1, 3, 1)


def test_lengths_and_order_are_checked() -> None:
    with pytest.raises(ValueError, match="same number"):
        crossovers([0, 1], [0], [1, 1])
    with pytest.raises(ValueError, match="rise"):
        crossovers([1, 1], [0, 1], [1, 0])


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=15))
def test_directions_alternate_and_swapping_turns_them(pairs: list[tuple[int, int]]) -> None:
    x = list(range(len(pairs)))
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = crossovers(x, first, second)
    directions = [cross.first_below for cross in found]
    assert all(a != b for a, b in pairwise(directions))
    swapped = crossovers(x, second, first)
    assert [cross.first_below for cross in swapped] == [not below for below in directions]
    assert all(cross.left < cross.at < cross.right for cross in found)


@given(heights, st.floats(0.1, 50))
def test_spread_keeps_order_and_distance(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    ranked = sorted(zip(wanted, placed, strict=True))
    values = sorted(placed)
    assert [place for _, place in ranked] == pytest.approx(values)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(values))


def test_spread_moves_only_what_is_too_close() -> None:
    assert spread([0.0, 100.0, 101.0], 10) == pytest.approx([0, 95.5, 105.5])
