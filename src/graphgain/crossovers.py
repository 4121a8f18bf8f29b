"""Where two curves that are known at the same points change places."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Crossover:
    """One change of places: between `left` and `right`, at `at` by linear interpolation.

    `value` is the height of both curves there. `first_below` is true where the first curve is the
    lower one from then on.
    """

    left: float
    right: float
    at: float
    value: float
    first_below: bool


def crossovers(
    x: Sequence[float], first: Sequence[float], second: Sequence[float]
) -> list[Crossover]:
    """All crossovers of two curves over rising `x`, in order.

    Curves that touch in a point and part again on the same sides do not cross. ValueError where
    the lengths differ or `x` does not rise.
    """
    if not len(x) == len(first) == len(second):
        raise ValueError("x and both curves need the same number of points")
    if any(a >= b for a, b in pairwise(x)):
        raise ValueError("x has to rise")
    found = []
    before: int | None = None  # the last point at which the curves differ
    for here in range(len(x)):
        gap = first[here] - second[here]
        if gap == 0:
            continue
        if before is not None:
            old = first[before] - second[before]
            if (old > 0) != (gap > 0):
                found.append(_between(x, first, second, before, here))
        before = here
    return found


def _between(
    x: Sequence[float], first: Sequence[float], second: Sequence[float], left: int, right: int
) -> Crossover:
    # Points between the two, if there are any, are points at which the curves are equal.
    if right - left > 1:
        middle = left + 1
        at, value = x[middle], first[middle]
    else:
        old, new = first[left] - second[left], first[right] - second[right]
        part = old / (old - new)
        at = x[left] + part * (x[right] - x[left])
        value = first[left] + part * (first[right] - first[left])
    return Crossover(x[left], x[right], at, value, first[right] < second[right])
