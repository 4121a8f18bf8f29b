"""Tokens to prefill per request: traces as curves; of a published summary the points it gives."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from graphgain.figures.machines import draw_absent, machine_color, note_absent
from graphgain.figures.style import faint, ink, text_color

MARKS_PERCENT = (50, 85)
"""Where the article reads the distribution."""

_ROOM_PERCENT = 55  # a shorter bar has no room for a sentence


def draw(
    hits: pd.DataFrame,
    points: pd.DataFrame,
    machines: Sequence[str],
    curves: pd.DataFrame | None = None,
) -> Figure:
    """Above, how much of the input is cached; below, what is known of the distribution.

    `hits` has the columns machine and percent (share of input tokens found in the cache); `points`
    has machine, tokens, percent (share of requests with at most so many tokens to prefill), text
    and, beside curves, name. Between two points a distribution can only pass through the box that
    they span, because it never falls: the boxes are shaded. `curves` has machine, tokens, percent
    and name (for the legend) of traces whose every request is known. A trace stands in the column
    machine as well.
    """
    if hits.empty:
        return draw_absent(machines)
    bar_in = 0.42 * len(hits) + 0.75
    figure = Figure(figsize=(7.6, bar_in + (3.5 if curves is None else 4.9)))
    above, below = figure.subplots(2, 1, height_ratios=[bar_in, 3.5])
    _draw_hits(above, hits, machines)
    if curves is not None and not curves.empty:
        _draw_curves(below, curves, machines)
    _draw_points(below, points, machines, alone=curves is None or curves.empty)
    if curves is None:
        note_absent(figure, hits["machine"], machines)
    return figure


def _draw_curves(axes: Axes, curves: pd.DataFrame, machines: Sequence[str]) -> None:
    for machine, own in curves.groupby("machine", sort=False):
        color = machine_color(str(machine), machines)
        axes.plot(own["tokens"], own["percent"], color=color, label=own["name"].iloc[0])
    for percent in MARKS_PERCENT:
        axes.axhline(percent, color=ink(), linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{percent} %",
            (0.008, percent),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 3),
            textcoords="offset points",
            weight="bold",
        )


def _draw_hits(axes: Axes, hits: pd.DataFrame, machines: Sequence[str]) -> None:
    for place, row in enumerate(hits.to_dict("records")):
        color = machine_color(row["machine"], machines)
        axes.barh(place, row["percent"], 0.7, color=color, alpha=0.3, linewidth=0)
        axes.barh(place, 100 - row["percent"], 0.7, left=row["percent"], color=color, linewidth=0)
        said = f"{round(row['percent'], 1):g} %"
        if row["percent"] > _ROOM_PERCENT:
            said += " found in the prefix cache"
        axes.text(2, place, said, va="center")
        axes.annotate(
            f"{round(100 - row['percent'], 1):g} %\nto prefill",
            (100, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=text_color(color),
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


def _draw_points(axes: Axes, points: pd.DataFrame, machines: Sequence[str], *, alone: bool) -> None:
    # Measured tails are long: then a decade is one step.
    wide = not alone or points["tokens"].max() > 16_384
    left = 32 if wide else 0
    right = points["tokens"].max() * (2 if wide else 1.7) if alone else 2**20
    for machine in dict.fromkeys(points["machine"]):
        color = machine_color(machine, machines)
        own = points[points["machine"] == machine].sort_values("tokens")
        x = np.concatenate([[left], own["tokens"], [right]])
        y = np.concatenate([[0], own["percent"], [100]])
        for index in range(len(x) - 1):
            axes.fill_between(
                x[index : index + 2], y[index], y[index + 1], color=color, alpha=0.16, linewidth=0
            )
        name = machine if alone else own["name"].iloc[0]
        axes.plot(own["tokens"], own["percent"], "o", color=color, markersize=8, label=name)
        if not alone:
            continue  # the legend has the numbers: texts would cover the curves
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
    if not alone:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            fontsize=9.5,
            title="tokens that suffice half / 85 % of the requests",
        )
        return
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
