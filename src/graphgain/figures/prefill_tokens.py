"""Tokens to prefill per request: the points of the distribution that are known, and no curve."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from graphgain.figures.machines import draw_absent, machine_color, note_absent
from graphgain.figures.style import faint


def draw(hits: pd.DataFrame, points: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Above, how much of the input is cached; below, what is known of the distribution.

    `hits` has the columns machine and percent (share of input tokens found in the cache);
    `points` has machine, tokens, percent (share of requests with at most so many tokens to
    prefill) and text. Between two points a distribution can only pass through the box that they
    span, because it never falls: the boxes are shaded.
    """
    if hits.empty:
        return draw_absent(machines)
    bar_in = 0.42 * len(hits) + 0.75
    figure = Figure(figsize=(7.6, bar_in + 3.5))
    above, below = figure.subplots(2, 1, height_ratios=[bar_in, 3.5])
    _draw_hits(above, hits, machines)
    _draw_points(below, points, machines)
    note_absent(figure, hits["machine"], machines)
    return figure


def _draw_hits(axes: Axes, hits: pd.DataFrame, machines: Sequence[str]) -> None:
    for place, row in enumerate(hits.to_dict("records")):
        color = machine_color(row["machine"], machines)
        axes.barh(place, row["percent"], 0.7, color=color, alpha=0.3, linewidth=0)
        axes.barh(place, 100 - row["percent"], 0.7, left=row["percent"], color=color, linewidth=0)
        axes.text(2, place, f"{row['percent']:g} % found in the prefix cache", va="center")
        axes.annotate(
            f"{100 - row['percent']:.3g} %\nto prefill",
            (100, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=color,
            weight="bold",
            annotation_clip=False,
        )
    axes.set(xlim=(0, 100), xticks=[], ylim=(len(hits) - 0.5, -0.5))
    axes.set_yticks(range(len(hits)), hits["machine"])
    axes.tick_params(axis="y", length=0)
    axes.set_title("All input tokens of the trace")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_points(axes: Axes, points: pd.DataFrame, machines: Sequence[str]) -> None:
    wide = points["tokens"].max() > 16_384  # measured tails are long: then a decade is one step
    left = 32 if wide else 0
    right = points["tokens"].max() * (2 if wide else 1.7)
    for machine in dict.fromkeys(points["machine"]):
        color = machine_color(machine, machines)
        own = points[points["machine"] == machine].sort_values("tokens")
        x = np.concatenate([[left], own["tokens"], [right]])
        y = np.concatenate([[0], own["percent"], [100]])
        for index in range(len(x) - 1):
            axes.fill_between(
                x[index : index + 2], y[index], y[index + 1], color=color, alpha=0.16, linewidth=0
            )
        axes.plot(own["tokens"], own["percent"], "o", color=color, markersize=8, label=machine)
        for row in own.to_dict("records"):
            axes.vlines(row["tokens"], 0, row["percent"], color=color, linewidth=1)
            axes.annotate(
                row["text"],
                (row["tokens"], row["percent"]),
                xytext=(9, -5),
                textcoords="offset points",
                va="top",
                weight="bold",
            )
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    else:
        axes.xaxis.set_major_locator(MultipleLocator(1000))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
    axes.set(xlim=(left, right), ylim=(0, 100))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("tokens that a request still has to prefill")
    axes.set_title("Requests with at most so many tokens to prefill")
    axes.axhline(100, color=faint(), linewidth=0.8)
    axes.text(
        0.98,
        0.08,
        "shaded: where the rest\nof the curve can run",
        transform=axes.transAxes,
        ha="right",
        style="italic",
    )
    if points["machine"].nunique() > 1:
        axes.legend(loc="lower right")
