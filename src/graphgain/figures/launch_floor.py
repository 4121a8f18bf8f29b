"""Bars: host cost of launching an empty kernel, by way of launching and machine."""

import pandas as pd
from matplotlib.figure import Figure

from graphgain.figures.style import MACHINE_COLORS, ink


def draw(data: pd.DataFrame) -> Figure:
    """One group of bars a launch path, one bar a machine.

    `data` has the columns path, machine, host_us, low_us, high_us (NaN without an interval).
    """
    paths = list(dict.fromkeys(data["path"]))
    machines = list(dict.fromkeys(data["machine"]))
    figure = Figure(figsize=(7.6, 0.9 + 0.34 * len(paths) * max(2, len(machines))))
    axes = figure.subplots()
    height = 0.8 / len(machines)
    for index, machine in enumerate(machines):
        rows = data[data["machine"] == machine].set_index("path")
        for place, path in enumerate(paths):
            if path not in rows.index:
                continue
            row = rows.loc[path]
            y = place + (index - (len(machines) - 1) / 2) * height
            axes.barh(
                y,
                row["host_us"],
                height * 0.88,
                color=MACHINE_COLORS[index % len(MACHINE_COLORS)],
                label=machine if place == 0 else None,
            )
            if row["low_us"] < row["high_us"]:
                axes.hlines(y, row["low_us"], row["high_us"], color=ink(), linewidth=1.2)
            axes.annotate(
                f"{row['host_us']:.3f}",
                (max(row["host_us"], row["high_us"] if row["high_us"] > 0 else 0), y),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
            )
    axes.set_yticks(range(len(paths)), paths)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("host time per launch (µs)")
    axes.legend(loc="lower right")
    return figure
