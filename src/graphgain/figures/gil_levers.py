"""What changes how much a computing thread slows a launcher: one dot a setting."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, ORANGE, PURPLE

COLORS = (BLUE, PURPLE, GREEN, ORANGE)


def draw(levers: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One panel a machine side by side; a row a setting, in groups of one colour.

    `levers` has the columns machine, group, label, rate_percent, low_percent and high_percent: the
    launcher's calls a second beside one computing thread, in percent of those without any.
    """
    if levers.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(levers["machine"]))
    rows = levers[["group", "label"]].drop_duplicates().sort_values("group", kind="stable")
    groups = list(dict.fromkeys(levers["group"]))
    order = [(group, label) for group in groups for label in rows[rows["group"] == group]["label"]]
    figure = Figure(figsize=(7.6, 1.0 + 0.36 * len(order)))
    panels = figure.subplots(1, len(present), squeeze=False, sharey=True, sharex=True)[0]
    for axes, machine in zip(panels, present, strict=True):
        _draw_machine(axes, levers[levers["machine"] == machine], order, groups)
        axes.set_title(machine)
        axes.set_xlim(0.5 * float(levers["low_percent"].min()), 400)
    panels[0].set_yticks(range(len(order)), [label for _, label in order])
    panels[0].set_xlabel("calls per second (% of those alone)", loc="left")
    note_absent(figure, present, machines)
    return figure


def _draw_machine(
    axes: Axes, rows: pd.DataFrame, order: list[tuple[str, str]], groups: list[str]
) -> None:
    for row in rows.to_dict("records"):
        place = order.index((row["group"], row["label"]))
        color = COLORS[groups.index(row["group"]) % len(COLORS)]
        if row["low_percent"] < row["high_percent"]:
            axes.hlines(place, row["low_percent"], row["high_percent"], color=color, linewidth=1.6)
        axes.plot(row["rate_percent"], place, "o", color=color, markersize=7)
        axes.annotate(
            f"{row['rate_percent']:.2g}",
            (max(row["rate_percent"], row["high_percent"]), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            weight="bold",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(lambda percent, _: f"{percent:g}")
    axes.minorticks_off()
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
