"""Lines: what a graph costs the host and the GPU, against the number of kernels in it."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from graphgain.figures.machines import draw_absent, machine_color, name_lines, note_absent
from graphgain.figures.style import faint

PANELS = {
    "graph_host_us": "host: one graph launch (µs)",
    "host_us": "host: the same per kernel (µs)",
    "instantiate_us": "host: instantiating it once (µs)",
    "gpu_us_per_node": "GPU: per kernel of the graph (µs)",
}
"""Quantities by their column; each has columns `low_` and `high_` of the same name beside it."""

WIDE = 100  # from this ratio of the largest to the smallest, the powers of ten are ticks enough


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Four panels over the number of kernels, both axes logarithmic, one line a machine.

    `data` has the columns machine, launches, past_queue, those of `PANELS` and the `low_` and
    `high_` ends of their intervals. Points past the depth of the launch queue are hollow.
    """
    if data.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(data["machine"]))
    figure = Figure(figsize=(7.6, 5.6))
    panels = figure.subplots(2, 2, sharex=True)
    for axes, (column, title) in zip(panels.flat, PANELS.items(), strict=True):
        for machine in present:
            own = data[data["machine"] == machine].sort_values("launches")
            _draw_line(axes, own, column, machine_color(machine, machines))
        axes.set_title(title, fontsize=10.5)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        if data[f"high_{column}"].max() < WIDE * data[f"low_{column}"].min():
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.yaxis.set_minor_formatter(lambda value, _: "")
    ticks = [length for length in sorted(set(data["launches"])) if length in (1, 8, 64, 512, 4096)]
    panels[0][0].set_xticks(ticks, [f"{length:,}" for length in ticks])
    panels[0][0].minorticks_off()
    for axes in panels[-1]:
        axes.set_xlabel("kernels in the graph   (○ past the launch queue)", fontsize=9.5)
    name_lines(figure, present, machines)
    note_absent(figure, present, machines)
    return figure


def _draw_line(axes: Axes, rows: pd.DataFrame, column: str, color: str) -> None:
    known = rows.dropna(subset=[column])
    axes.plot(known["launches"], known[column], color=color)
    axes.vlines(
        known["launches"], known[f"low_{column}"], known[f"high_{column}"], color=color, linewidth=1
    )
    for past, points in known.groupby("past_queue"):
        axes.plot(
            points["launches"],
            points[column],
            color=color,
            marker="o",
            markersize=5,
            linestyle="none",
            markerfacecolor=faint() if past else color,
            markeredgewidth=1.2 if past else 0,
        )
