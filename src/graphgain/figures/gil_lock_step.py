"""Ranks in lock-step: how the step of a group grows with the number of its ranks."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, ORANGE, PURPLE, ink

LINES = {"p50": BLUE, "p90": PURPLE, "p99": ORANGE}


def draw(steps: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """A row of panels a machine, a panel a background; `steps` has the columns machine, background
    (a text), ranks, source (resampled or measured), percentile (p50, p90, p99) and us.
    """
    if steps.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(steps["machine"]))
    kinds = list(dict.fromkeys(steps["background"]))
    figure = Figure(figsize=(7.6, 0.9 + 2.9 * len(present)))
    grid = figure.subplots(len(present), len(kinds), squeeze=False, sharex=True, sharey=True)
    for place, (row, machine) in enumerate(zip(grid, present, strict=True)):
        for axes, kind in zip(row, kinds, strict=True):
            _draw_panel(axes, steps[(steps["machine"] == machine) & (steps["background"] == kind)])
            if place == 0:
                axes.set_title(kind, fontsize=10.5)
        row[0].set_ylabel(f"{machine}\nstep of the group")
    for axes in grid[-1]:
        axes.set_xlabel("ranks")
    figure.legend(
        handles=[
            *(Line2D([], [], color=color, label=name) for name, color in LINES.items()),
            Line2D([], [], color=ink(), marker="D", linestyle="", label="measured, two processes"),
        ],
        loc="outside upper left",
        ncols=4,
        fontsize=10,
    )
    note_absent(figure, present, machines)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
    for name, color in LINES.items():
        own = rows[rows["percentile"] == name].dropna(subset=["us"])
        line = own[own["source"] == "resampled"]
        axes.plot(line["ranks"], line["us"], color=color, marker="o")
        real = own[own["source"] == "measured"]
        axes.plot(
            real["ranks"], real["us"], "D", color=color, markeredgecolor=ink(), ms=7, zorder=5
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ranks = sorted(set(rows["ranks"])) or [1]
    axes.set_xticks(ranks, [str(rank) for rank in ranks])
    axes.yaxis.set_major_formatter(lambda us, _: f"{us:g} µs" if us < 1000 else f"{us / 1000:g} ms")
    axes.minorticks_off()
