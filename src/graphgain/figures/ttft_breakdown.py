"""What a request's time is made of: GPU busy and idle, and the interval between launches."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.engines import color as engine_color
from graphgain.figures.engines import label
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import faint, ink, text_color
from graphgain.figures.ttft import curves


def draw(
    data: pd.DataFrame, reference: tuple[str, float] | None, machines: Sequence[str]
) -> Figure:
    """Two panels for each mode of a machine that share their rows, one row a prompt length.

    Left, the traced TTFT as GPU busy plus idle, with the untraced TTFT as a diamond; right, the
    mean interval between two launches. `data` has the columns machine, engine, mode, isl_tokens,
    busy_ms, idle_ms, busy_percent, traced_ms, untraced_ms (NaN where unknown) and interval_us;
    `reference` is Kern's name and interval (µs), drawn as a line.
    """
    if data.empty:
        return draw_absent(machines)
    panels = [
        (f"{machine}: {label(engine, mode)}", rows.reset_index(drop=True))
        for machine in machines
        for engine, mode, rows in curves(data[data["machine"] == machine])
    ]
    heights = [1.0 + 0.47 * len(rows) for _, rows in panels]
    figure = Figure(figsize=(7.6, 0.5 + sum(heights)))
    grid = figure.subplots(
        len(panels), 2, squeeze=False, sharey="row", width_ratios=[2.5, 1], height_ratios=heights
    )
    for (left, right), (title, rows) in zip(grid, panels, strict=True):
        _draw_times(left, rows)
        _draw_intervals(right, rows, reference)
        left.set_yticks(range(len(rows)), [f"{isl:,}" for isl in rows["isl_tokens"]])
        left.set_ylim(len(rows) - 0.45, -0.55)
        left.set_ylabel("prompt length (tokens)")
        for axes in (left, right):
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
        if len(panels) > 1:
            left.set_title(title)
    grid[0, 0].legend(loc="upper right")
    note_absent(figure, data["machine"], machines)
    return figure


def _draw_times(axes: Axes, rows: pd.DataFrame) -> None:
    color = engine_color(rows["engine"].iloc[0])
    axes.barh(rows.index, rows["busy_ms"], 0.62, color=color, linewidth=0, label="GPU busy")
    axes.barh(
        rows.index,
        rows["idle_ms"],
        0.62,
        left=rows["busy_ms"],
        facecolor="none",
        edgecolor=color,
        hatch="////",
        linewidth=0.8,
        label="GPU idle",
    )
    axes.plot(
        rows["untraced_ms"],
        rows.index,
        "D",
        color=ink(),
        markersize=5.5,
        markeredgecolor=faint(),
        linestyle="none",
        label="whole TTFT when nothing is traced",
    )
    for index, row in rows.iterrows():
        axes.annotate(
            f"{row['busy_percent']:.0f} % busy",
            (max(row["traced_ms"], row["untraced_ms"]), float(str(index))),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
    axes.set_xlim(0, 1.24 * rows["traced_ms"].max())
    axes.set_xlabel("TTFT, traced (ms)")


def _draw_intervals(axes: Axes, rows: pd.DataFrame, reference: tuple[str, float] | None) -> None:
    color = engine_color(rows["engine"].iloc[0])
    axes.plot(rows["interval_us"], rows.index, "o-", color=color, markersize=6)
    for index, value in rows["interval_us"].items():
        axes.annotate(
            f"{value:.1f}",
            (value, float(str(index))),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
    if reference:
        name, interval_us = reference
        axes.axvline(interval_us, color=engine_color("kern"), linewidth=2)
        axes.annotate(
            f"{name}: {interval_us:g}",
            (interval_us, len(rows) - 1),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=text_color(engine_color("kern")),
            weight="bold",
        )
    axes.set_xscale("log")
    low = min(rows["interval_us"].min(), reference[1] if reference else 1e9)
    axes.set_xlim(low / 1.6, rows["interval_us"].max() * 4.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("µs between launches")
