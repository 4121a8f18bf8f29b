"""Numbers of the article's prose, as facts for ours."""

from graphgain.facts import Fact, fact
from graphgain.results.article import Statement, Statements
from graphgain.text import with_unit

_SHOWN_UNITS = {"us": "µs", "ms": "ms", "percent": "%"}


def by_name(document: Statements) -> dict[str, Statement]:
    """The statements of one document by their names."""
    return {row.name: row for row in document.rows}


def statement_fact(name: str, statement: Statement) -> Fact:
    """A statement as a fact, with as many decimals as are printed; a count has no unit."""
    digits = max(len(end.partition(".")[2]) for end in statement.printed.split("–"))
    if "k" in statement.printed:
        digits = 0  # 1.6k is 1,600
    return fact(name, statement.quantity, _SHOWN_UNITS.get(statement.unit, ""), digits)


def printed_fact(name: str, statement: Statement) -> Fact:
    """A statement as a fact in the very characters that are printed: 1.6k stays 1.6k."""
    unit = _SHOWN_UNITS.get(statement.unit, "")
    printed = statement.printed.replace("-", "–")
    return Fact(name, statement.quantity.value, unit, with_unit(printed, unit))
