"""Tables of several machines, where a machine without a measurement says so."""

from collections.abc import Sequence

import pandas as pd

NOT_MEASURED = "not measured"
ABSENT = "—"
"""What a cell shows where there is nothing to tell."""


def side_by_side(rows: pd.DataFrame, index: Sequence[str], machines: Sequence[str]) -> pd.DataFrame:
    """One column a machine, one row for each combination of the `index` columns.

    `rows` has the `index` columns, `machine` and `text`. A cell without a row is "not measured";
    without any rows, the table is one line that says so for every machine.
    """
    keys = list(index)
    if rows.empty:
        return pd.DataFrame([dict.fromkeys(keys, ABSENT) | dict.fromkeys(machines, NOT_MEASURED)])
    shown = rows[keys].drop_duplicates()
    for machine in machines:
        own = rows.loc[rows["machine"] == machine, [*keys, "text"]]
        shown = shown.merge(own.rename(columns={"text": machine}), on=keys, how="left")
    return shown.fillna(NOT_MEASURED)


def stacked(rows: pd.DataFrame, columns: Sequence[str], machines: Sequence[str]) -> pd.DataFrame:
    """The rows of all machines below each other, `columns` after a first column "machine".

    `rows` holds texts. A machine is named in the first of its rows only; one without rows gets
    one, in which the first of the `columns` says so.
    """
    blocks = []
    for machine in machines:
        own = rows[rows["machine"] == machine] if not rows.empty else rows
        if own.empty:
            cells = {"machine": machine, columns[0]: NOT_MEASURED}
            own = pd.DataFrame([cells | dict.fromkeys(columns[1:], ABSENT)])
        names = [machine, *[""] * (len(own) - 1)]
        blocks.append(own[["machine", *columns]].assign(machine=names))
    return pd.concat(blocks, ignore_index=True)
