"""Points: how far ahead of the GPU the host ends, and what a full launch queue costs it."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, machine_color, name_lines, note_absent
from graphgain.figures.octaves import in_octaves
from graphgain.figures.style import ink


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Launches that still wait when the host is done, and host time to issue, against tokens.

    `data` has the columns machine, tokens, cached_tokens, host_issue_ms, waiting_launches,
    launches. Prefills after a filled cache are hollow diamonds without a label.
    """
    if data.empty:
        return draw_absent(machines)
    figure = Figure(figsize=(7.6, 4.8))
    above, below = figure.subplots(2, 1, sharex=True)
    present = list(dict.fromkeys(data["machine"]))
    for machine in present:
        own = data[data["machine"] == machine].sort_values("tokens")
        color = machine_color(machine, machines)
        _draw_points(above, own, "waiting_launches", ",.0f" if len(present) == 1 else None, color)
        _draw_points(below, own, "host_issue_ms", ".2f" if len(present) == 1 else None, color)
    totals = sorted(set(data["launches"]))
    for launches in totals:
        above.axhline(launches, color=ink(), linewidth=1.1, linestyle=(0, (4, 2)))
    above.annotate(
        f"all {'–'.join(f'{launches:,}' for launches in dict.fromkeys([totals[0], totals[-1]]))} "
        "launches of one prefill",
        (data["tokens"].max(), totals[-1]),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9.5,
    )
    tokens = set(data.loc[data["cached_tokens"] == 0, "tokens"]) or set(data["tokens"])
    above.set_ylim(0.7 * data["waiting_launches"].min(), 1.15 * data["launches"].max())
    below.set_ylim(0, 1.15 * data["host_issue_ms"].max())
    in_octaves(below, tokens)
    above.set_title("launches still waiting when the host is done")
    below.set_title("host time to issue all launches (ms)")
    below.set_xlabel("tokens to prefill   (● empty cache, ◇ behind cached tokens)")
    if len(present) > 1:
        name_lines(figure, present, machines)
    note_absent(figure, present, machines)
    return figure


def _draw_points(
    axes: Axes, rows: pd.DataFrame, column: str, shown: str | None, color: str
) -> None:
    empty, filled = rows[rows["cached_tokens"] == 0], rows[rows["cached_tokens"] > 0]
    axes.plot(
        empty["tokens"],
        empty[column],
        color=color,
        marker="o",
        markersize=6,
        markeredgewidth=0,
    )
    axes.plot(
        filled["tokens"],
        filled[column],
        color=color,
        marker="D",
        markersize=6,
        linestyle="none",
        markerfacecolor="none",
        markeredgewidth=1.4,
    )
    for row in empty.to_dict("records") if shown else ():
        axes.annotate(
            f"{row[column]:{shown}}",
            (row["tokens"], row[column]),
            xytext=(0, -7),
            textcoords="offset points",
            ha="center",
            va="top",
        )
