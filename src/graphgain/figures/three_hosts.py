"""Bars: one forward with the same kernels under Python, a C++ loop and a graph, split by what the
time goes to."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, ORANGE

PARTS = {
    "graph": ("the graph's time", GREEN),
    "handoff": ("more when kernels are launched one by one by a fast host", BLUE),
    "host": ("more when Python launches them", ORANGE),
}


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One panel a machine and forward, one stacked bar a host.

    `data` has the columns machine, forward, host, part (one of PARTS), ms (its length), total_ms
    (of the bar) and note (written behind the bar, the same in all its rows).
    """
    if data.empty:
        return draw_absent(machines)
    panels = list(data.groupby(["machine", "forward"], sort=False))
    heights = [0.75 + 0.4 * rows["host"].nunique() for _, rows in panels]
    figure = Figure(figsize=(7.6, 0.5 + sum(heights)))
    stack = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, ((machine, forward), rows) in zip(stack[:, 0], panels, strict=True):
        _draw_bars(axes, rows)
        axes.set_title(f"{machine}: {forward}")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0, labelsize=10)
    stack[-1, 0].set_xlabel("time of one forward (ms)")
    shown = [part for part in PARTS if part in set(data["part"])]
    figure.legend(
        handles=[Patch(color=PARTS[part][1], label=PARTS[part][0]) for part in shown],
        loc="outside upper left",
        ncols=1,
        fontsize=10,
    )
    note_absent(figure, data["machine"], machines)
    return figure


def _draw_bars(axes: Axes, rows: pd.DataFrame) -> None:
    hosts = list(dict.fromkeys(rows["host"]))
    for place, host in enumerate(hosts):
        start = 0.0
        own = rows[rows["host"] == host]
        for part, ms in zip(own["part"], own["ms"], strict=True):
            axes.barh(place, ms, 0.66, left=start, color=PARTS[part][1], linewidth=0)
            start += ms
        total, note = own["total_ms"].iloc[0], own["note"].iloc[0]
        axes.annotate(
            f"{total:.2f}" + (f"  {note}" if note else ""),
            (total, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
        )
    axes.set_yticks(range(len(hosts)), hosts)
    axes.set_ylim(len(hosts) - 0.5, -0.5)
    axes.set_xlim(0, 1.38 * rows["total_ms"].max())
