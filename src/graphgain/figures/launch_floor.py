"""Bars: host cost of launching an empty kernel, by way of launching and machine."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, machine_color, note_absent
from graphgain.figures.style import ink, text_color

BAR_IN = 0.36  # inches a bar takes
GAP = 0.55  # between two groups, in bars


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One group of bars a launch path, one bar a machine, each named at its end.

    `data` has the columns path, machine, host_us, low_us, high_us (NaN without an interval) and
    text; `machines` is the configured order.
    """
    if data.empty:
        return draw_absent(machines)
    paths = list(dict.fromkeys(data["path"]))
    figure = Figure(figsize=(7.6, 0.9 + BAR_IN * (len(data) + GAP * (len(paths) - 1))))
    axes = figure.subplots()
    y, middles = 0.0, []
    for path in paths:
        rows = data[data["path"] == path].to_dict("records")
        middles.append(y + (len(rows) - 1) / 2)
        for row in rows:
            color = machine_color(row["machine"], machines)
            axes.barh(y, row["host_us"], 0.84, color=color, linewidth=0)
            if row["low_us"] < row["high_us"]:
                axes.hlines(y, row["low_us"], row["high_us"], color=ink(), linewidth=1.4)
            end = row["high_us"] if row["high_us"] > row["host_us"] else row["host_us"]
            value = axes.annotate(
                row["text"],
                (end, y),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                weight="bold",
                fontsize=10.5,
            )
            axes.annotate(
                row["machine"],
                (1, 0.5),
                xycoords=value,
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=text_color(color),
                fontsize=10,
            )
            y += 1
        y += GAP
    axes.set_yticks(middles, paths)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0, labelsize=10.5)
    axes.set_xlim(0, 1.55 * data[["host_us", "high_us"]].max().max())
    axes.set_xlabel("host time per launch (µs)")
    note_absent(figure, data["machine"], machines)
    return figure
