"""Lines: what a graph saves on the GPU from one kernel to the next, against the kernel's length."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain import text
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, ORANGE, faint, ink, text_color

COLORS = {False: ORANGE, True: BLUE}
NAMES = {False: "without PDL", True: "with PDL"}


def draw(
    data: pd.DataFrame, published_us: tuple[float, float] | None, machines: Sequence[str]
) -> Figure:
    """One row of panels a machine, one panel a grid, a line without and one with PDL.

    `data` has the columns machine, grid (its name), pdl, kernel_us, saved_us, low_us and high_us
    (the interval of the saving). `published_us` is shaded as a band where it is given.
    """
    if data.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(data["machine"]))
    grids = list(dict.fromkeys(data["grid"]))
    figure = Figure(figsize=(7.6, 0.6 + 3.5 * len(present)))
    panels = figure.subplots(len(present), len(grids), sharex=True, sharey=True, squeeze=False)
    lengths = sorted(set(data["kernel_us"]))
    for machine, line in zip(present, panels, strict=True):
        for grid, axes in zip(grids, line, strict=True):
            own = data[(data["machine"] == machine) & (data["grid"] == grid)]
            axes.set_title(f"{machine if axes is line[0] else ''}\n{grid}", fontsize=10.5)
            if published_us:
                axes.axhspan(*published_us, color=faint(), alpha=0.6, linewidth=0, zorder=0)
            for pdl, rows in own.groupby("pdl"):
                _draw_line(axes, rows.sort_values("kernel_us"), bool(pdl), lengths)
            axes.axhline(0, color=ink(), linewidth=0.8)
            axes.grid(axis="x", visible=False)
        line[0].set_ylabel("saved by the graph\n(µs per kernel)")
        if published_us:
            low_us, high_us = published_us
            line[0].annotate(
                f"published:\n{low_us:g}–{high_us:g} µs",
                (len(lengths) - 1, (low_us + high_us) / 2 - 0.12),
                ha="right",
                va="center",
                fontsize=9.5,
            )
    most = max(data["high_us"].max(), data["saved_us"].max(), *(published_us or ()))
    least = min(data["low_us"].min(), data["saved_us"].min(), 0)
    panels[0][0].set_ylim(least - 0.1, 1.18 * most)
    panels[0][0].set_xticks(range(len(lengths)), [f"{length:g}" for length in lengths])
    for axes in panels[-1]:
        axes.set_xlabel("length of a kernel (µs)", fontsize=9.5)
    note_absent(figure, present, machines)
    return figure


def _draw_line(axes: Axes, rows: pd.DataFrame, pdl: bool, lengths: list[float]) -> None:
    places = [lengths.index(length) for length in rows["kernel_us"]]
    color = COLORS[pdl]
    axes.plot(places, rows["saved_us"], color=color, marker="o", markersize=5, markeredgewidth=0)
    axes.vlines(places, rows["low_us"], rows["high_us"], color=color, linewidth=1.6)
    low, high = float(rows["saved_us"].min()), float(rows["saved_us"].max())
    extent = f"{text.number(low, 2)} to {text.number(high, 2)}" if low < 0 else ""
    # Above what is drawn where the label stands, over the shorter kernels.
    top = rows.head(max(1, len(rows) - 2))[["saved_us", "high_us"]].max().max()
    axes.annotate(
        f"{NAMES[pdl]}: {extent or text.span(low, high, 2)}",
        (-0.15, top),
        xytext=(0, 4),
        textcoords="offset points",
        va="bottom",
        color=text_color(color),
        weight="bold",
        fontsize=9.5,
    )
