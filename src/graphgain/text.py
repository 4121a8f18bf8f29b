"""How numbers are written for a reader."""

from graphgain.results.quantity import Quantity

THIN = "\u202f"  # narrow no-break space between a number and its unit


def number(value: float, digits: int = 0) -> str:
    """A number with `digits` decimals, thousands separated by commas, a real minus sign."""
    return f"{value:,.{digits}f}".replace("-", "−")


def with_unit(text: str, unit: str) -> str:
    """A number's text and its unit; a percent sign follows without a space."""
    if not unit:
        return text
    return f"{text}{unit}" if unit == "%" else f"{text}{THIN}{unit}"


def span(low: float, high: float, digits: int = 0) -> str:
    """A range, written with an en dash, or with "to" where it begins below zero; one number where
    both ends print the same.

    Decimals that are zero at both ends are left out: 2.700 and 2.830 are printed 2.70–2.83.
    """
    ends = number(low, digits), number(high, digits)
    while digits and all(end.endswith("0") for end in ends):
        digits -= 1
        ends = number(low, digits), number(high, digits)
    if ends[0] == ends[1]:
        return ends[0]
    return (" to " if low < 0 else "–").join(ends)


def quantity(measured: Quantity, digits: int = 0, unit: str = "") -> str:
    """A quantity as a cell or a fact shows it: its median, or the range where it has none."""
    if measured.median is None:
        assert measured.low is not None and measured.high is not None
        return with_unit(span(measured.low, measured.high, digits), unit)
    return with_unit(number(measured.median, digits), unit)


def quantity_with_interval(measured: Quantity, digits: int = 0, unit: str = "") -> str:
    """A quantity with its interval in brackets where it has both: `1.63 [1.62–1.64] µs`."""
    if measured.median is None or measured.low is None or measured.high is None:
        return quantity(measured, digits, unit)
    low, high = number(measured.low, digits), number(measured.high, digits)
    return with_unit(f"{number(measured.median, digits)} [{low}–{high}]", unit)
