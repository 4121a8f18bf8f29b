"""TTFT over the whole sweep, and how the engines change places in it."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from graphgain.figures.engines import color, engine_name, label, look
from graphgain.figures.labels import label_ends
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import ink
from graphgain.figures.ttft import curves, draw_lines

CLOSE_PERCENT = (-8.0, 40.0)
"""What the lower panel shows: the differences at which engines change places."""


def draw(data: pd.DataFrame, crossings: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Two panels a machine: TTFT, and TTFT relative to the first engine's.

    `data` has the columns machine, engine, mode, isl_tokens, ttft_ms, percent_of_first (how much
    longer than the machine's first engine, in per cent); `crossings` has machine, first_engine,
    second_engine, at_tokens, ttft_ms, percent_of_first, first_below.
    """
    if data.empty:
        return draw_absent(machines)
    present = [machine for machine in machines if machine in set(data["machine"])]
    figure = Figure(figsize=(7.6, 0.4 + 6.6 * len(present)))
    panels = figure.subplots(2 * len(present), 1, height_ratios=[4, 3] * len(present))
    for place, machine in enumerate(present):
        above, below = panels[2 * place : 2 * place + 2]
        own, marks = data[data["machine"] == machine], crossings[crossings["machine"] == machine]
        reference = own["engine"].iloc[0]
        involved = (marks["first_engine"] == reference) | (marks["second_engine"] == reference)
        draw_lines(above, own)
        _mark(above, marks[~involved], "ttft_ms")
        _draw_relative(below, own, marks[involved], reference)
        for axes in (above, below):
            axes.xaxis.set_major_locator(MultipleLocator(2048))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        if len(present) > 1:
            above.set_title(machine)
    note_absent(figure, data["machine"], machines)
    return figure


def _draw_relative(axes: Axes, own: pd.DataFrame, marks: pd.DataFrame, reference: str) -> None:
    axes.set(xlim=(0, own["isl_tokens"].max()), ylim=CLOSE_PERCENT)
    ends = []
    for engine, mode, rows in curves(own):
        axes.plot(
            rows["isl_tokens"],
            rows["percent_of_first"],
            color=color(engine),
            dashes=look(engine, mode).dashes,
        )
        end = min(float(rows["percent_of_first"].iloc[-1]), CLOSE_PERCENT[1])
        ends.append((label(engine, mode), end, color(engine)))
    label_ends(axes, ends, 0.077 * (CLOSE_PERCENT[1] - CLOSE_PERCENT[0]), at=axes.get_xlim()[1])
    _mark(axes, marks, "percent_of_first")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %" if value else "0 %")
    axes.set_ylabel(f"TTFT against {engine_name(reference)}'s")
    axes.set_xlabel("prompt length (tokens), nothing cached")


def _mark(axes: Axes, marks: pd.DataFrame, column: str) -> None:
    """A filled dot where the pair's first engine is overtaken, an open one where it leads again."""
    names = "/".join(engine_name(engine) for engine in dict.fromkeys(marks["first_engine"]))
    for leads, meaning in ((False, f"{names} overtaken"), (True, f"{names} ahead again")):
        rows = marks[marks["first_below"] == leads]
        if not rows.empty:
            axes.plot(
                rows["at_tokens"],
                rows[column],
                "o",
                markersize=6,
                markeredgecolor=ink(),
                markeredgewidth=1.3,
                markerfacecolor="none" if leads else ink(),
                zorder=5,
                label=meaning,
            )
    if not marks.empty:
        axes.legend(loc="upper left", bbox_to_anchor=(0.2, 1.0), handletextpad=0.2)
