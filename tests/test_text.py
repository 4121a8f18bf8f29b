"""Numbers as readers see them."""

import pytest

from graphgain import text
from graphgain.results.quantity import Quantity


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.62, 1.64, "1.63 [1.62–1.64]"),
        (1.6, 1.7, "1.63 [1.60–1.70]"),
        (1.63, 1.63, "1.63 [1.63–1.63]"),
    ],
)
def test_an_interval_has_two_ends_and_the_digits_of_its_number(
    low: float, high: float, shown: str
) -> None:
    measured = Quantity(median=1.63, low=low, high=high, interval="run medians")
    assert text.quantity_with_interval(measured, 2) == shown
    assert text.quantity_with_interval(measured, 2, "µs") == f"{shown}{text.THIN}µs"


def test_a_range_alone_has_no_brackets() -> None:
    printed = Quantity(low=2.7, high=2.83, interval="printed range")
    assert text.quantity_with_interval(printed, 3) == "2.70–2.83"


def test_a_range_that_begins_below_zero_has_no_dash_beside_its_minus() -> None:
    assert text.span(-52, 591) == "−52 to 591"
    assert text.span(-591, -52) == "−591 to −52"
