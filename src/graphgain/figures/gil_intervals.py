"""How long the intervals between a launcher's calls are, by kind and number of other threads."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, ink

KINDS = {"compute": "computing", "poll": "polling a queue", "io": "short I/O"}
RED = "#c0504d"
COLORS = (GREY, BLUE, GREEN, PURPLE, ORANGE, RED)
SHORTEST_US, LONGEST_US = 2.0, 1e6
LEAST_PERCENT = 0.005
TICKS = {10: "10 µs", 1e3: "1 ms", 1e5: "100 ms"}


def draw(curves: pd.DataFrame, switch_ms: dict[str, float], machines: Sequence[str]) -> Figure:
    """A row of panels a machine, a panel a kind of thread, a line a number of threads.

    `curves` has the columns machine, background, threads, us and longer_percent: the share of the
    intervals that are longer. It is the complement of the empirical distribution function, which
    would show nothing of the upper percent. `switch_ms` has each machine's switch interval.
    """
    if curves.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(curves["machine"]))
    figure = Figure(figsize=(7.6, 0.9 + 2.75 * len(present)))
    grid = figure.subplots(len(present), len(KINDS), squeeze=False, sharex=True, sharey=True)
    counts = sorted(set(curves["threads"]))
    colors = {count: COLORS[index % len(COLORS)] for index, count in enumerate(counts)}
    for place, (row, machine) in enumerate(zip(grid, present, strict=True)):
        own = curves[curves["machine"] == machine]
        for axes, kind in zip(row, KINDS, strict=True):
            _draw_panel(axes, own[own["background"].isin(["none", kind])], colors)
            axes.axvline(1000 * switch_ms[machine], color=ink(), linewidth=0.9, linestyle=":")
            if place == 0:
                axes.set_title(KINDS[kind], fontsize=10.5)
        row[0].set_ylabel(f"{machine}\nlonger intervals (%)", fontsize=10)
    grid[-1][1].set_xlabel("interval between two calls; dotted: the switch interval")
    figure.legend(
        handles=[Line2D([], [], color=colors[count], label=str(count)) for count in counts],
        title="threads beside the launcher",
        loc="outside upper left",
        ncols=len(counts),
        fontsize=10,
        alignment="left",
    )
    note_absent(figure, present, machines)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame, colors: dict[int, str]) -> None:
    for count, line in rows.groupby("threads"):
        shown = line[line["longer_percent"] > 0]
        axes.plot(
            shown["us"], shown["longer_percent"], color=colors[int(str(count))], linewidth=1.6
        )
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(SHORTEST_US, LONGEST_US)
    axes.set_ylim(LEAST_PERCENT, 130)
    axes.set_xticks(list(TICKS), list(TICKS.values()), fontsize=9.5)
    axes.set_yticks([100, 10, 1, 0.1, 0.01], ["100", "10", "1", "0.1", "0.01"])
    axes.minorticks_off()
