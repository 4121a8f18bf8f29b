"""Histograms: how much later each kernel ends under C++ launches than in the graph."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain import text
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, ORANGE, ink, text_color

COLORS = {True: BLUE, False: ORANGE}
NAMES = {True: "with PDL", False: "without PDL"}
LOW_US, HIGH_US, WIDTH_US = -4.0, 8.0, 0.25


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One panel a machine and forward, with launches counted by how much later they end.

    `data` has the columns machine, forward, pdl and later_us, one row a launch. What is beyond the
    axis is counted in its last bin.
    """
    if data.empty:
        return draw_absent(machines)
    panels = list(data.groupby(["machine", "forward"], sort=False))
    figure = Figure(figsize=(7.6, 0.5 + 2.5 * len(panels)))
    stack = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, ((machine, forward), rows) in zip(stack, panels, strict=True):
        _draw_counts(axes, rows)
        axes.set_title(f"{machine}: {forward}")
        axes.set_ylabel("launches")
        axes.axvline(0, color=ink(), linewidth=0.8)
        axes.grid(axis="x", visible=False)
    stack[-1].set_xlabel("later end of a launch than in the graph (µs, from predecessor's end)")
    stack[-1].set_xlim(LOW_US, HIGH_US)
    note_absent(figure, data["machine"], machines)
    return figure


def _draw_counts(axes: Axes, rows: pd.DataFrame) -> None:
    edges = np.arange(LOW_US, HIGH_US + WIDTH_US / 2, WIDTH_US).tolist()
    for line, pdl in enumerate((True, False)):
        own = rows.loc[rows["pdl"] == pdl, "later_us"]
        if own.empty:
            continue
        inside = own.clip(LOW_US, HIGH_US - WIDTH_US / 2)
        axes.hist(inside, edges, color=COLORS[pdl], alpha=0.55, linewidth=0)
        axes.hist(inside, edges, histtype="step", color=COLORS[pdl], linewidth=1.2)
        axes.annotate(
            f"{len(own):,} {NAMES[pdl]}: median {text.number(own.median(), 2)} µs",
            (0.985, 0.93 - 0.13 * line),
            xycoords="axes fraction",
            ha="right",
            va="top",
            color=text_color(COLORS[pdl]),
            weight="bold",
            fontsize=9.5,
        )
