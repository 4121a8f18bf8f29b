"""Bars: host time of each decode GEMM beside an empty kernel, and what one call is made of."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, ink, text_color

KERNEL_COLORS = {1: BLUE, 2: ORANGE}
PART_COLORS = {
    "algorithm_choice": ORANGE,
    "driver_queries": PURPLE,
    "library_code": GREY,
    "remainder": GREY,
    "launch": BLUE,
}
PART_LABELS = {
    "algorithm_choice": "algorithm\nchoice",
    "driver_queries": "driver queries",
    "library_code": "other code\nin cuBLAS",
    "remainder": "the rest:\nqueries and other code",
    "launch": "the launch\nitself",
}
NARROW = 0.13  # a part of less than this share of the axis has no room for its name above it


def draw(
    shapes: pd.DataFrame, split: pd.DataFrame, empty_us: dict[str, float], machines: Sequence[str]
) -> Figure:
    """One panel of shapes a machine, below it the split of a one-kernel call where it is known.

    `shapes` has the columns machine, gemm, n, k, host_us, low_us, high_us, kernels and memsets
    (of a call); `split` has machine, part, host_us. `empty_us` gives the host time of an empty
    launch by machine.
    """
    if shapes.empty:
        return draw_absent(machines)
    panels: list[tuple[str, pd.DataFrame, bool]] = []
    for machine in dict.fromkeys(shapes["machine"]):
        panels.append((machine, shapes[shapes["machine"] == machine], False))
        own = split[split["machine"] == machine]
        if not own.empty:
            panels.append((machine, own, True))
    heights = [1.7 if is_split else 0.75 + 0.34 * len(rows) for _, rows, is_split in panels]
    figure = Figure(figsize=(7.6, 0.5 + sum(heights)))
    stack = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    room = 1.55 if shapes["memsets"].any() else 1.24
    longest_us = shapes[["host_us", "high_us"]].max().max()
    for axes, (machine, rows, is_split) in zip(stack[:, 0], panels, strict=True):
        if is_split:
            _draw_split(axes, rows)
            axes.set_title(f"{machine}: what a one-kernel call is made of")
        else:
            _draw_shapes(axes, rows, empty_us.get(machine))
            axes.set_xlim(0, room * longest_us)
            axes.set_title(f"{machine}: one cuBLAS call, by shape n × k")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0, labelsize=10)
    stack[-1, 0].set_xlabel("host time per call (µs)")
    note_absent(figure, shapes["machine"], machines)
    return figure


def _draw_shapes(axes: Axes, rows: pd.DataFrame, empty_us: float | None) -> None:
    for place, row in enumerate(rows.to_dict("records")):
        kernels, memsets = row["kernels"], row["memsets"]
        color = KERNEL_COLORS.get(kernels, GREEN)
        axes.barh(place, row["host_us"], 0.76, color=color, linewidth=0)
        if row["low_us"] < row["high_us"]:
            axes.hlines(place, row["low_us"], row["high_us"], color=ink(), linewidth=1.4)
        value = axes.annotate(
            f"{row['host_us']:.2f}",
            (max(row["host_us"], row["high_us"] if row["high_us"] > 0 else 0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
        axes.annotate(
            f"{kernels} kernel{'s' * (kernels > 1)}{' + memset' * (memsets > 0)}",
            (1, 0.5),
            xycoords=value,
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=text_color(color),
        )
    names = [f"{row['gemm']}  {row['n']}×{row['k']}" for row in rows.to_dict("records")]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -1.15)
    if empty_us is not None:
        axes.axvline(empty_us, color=ink(), linewidth=1.3, linestyle=(0, (4, 2)))
        axes.annotate(
            f"empty kernel {empty_us:.2f}",
            (empty_us, -0.78),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
        )


def _draw_split(axes: Axes, rows: pd.DataFrame) -> None:
    whole = float(rows["host_us"].sum())
    start, limit = 0.0, 1.3 * whole
    for row in rows.to_dict("records"):
        width, name = row["host_us"], PART_LABELS[row["part"]]
        axes.barh(0, width, 0.5, left=start, color=PART_COLORS[row["part"]], linewidth=0)
        if start:
            axes.vlines(start, -0.25, 0.25, color=ink(), linewidth=0.8)
        narrow = width < NARROW * limit
        axes.annotate(
            f"{width:.1f} {' '.join(name.split())}" if narrow else f"{width:.1f}\n{name}",
            (start, 0.25 if narrow else -0.25),
            xytext=(1, -4 if narrow else 4),
            textcoords="offset points",
            ha="left",
            va="top" if narrow else "bottom",
            fontsize=9.5,
        )
        start += width
    axes.annotate(
        f"{start:.1f} in all",
        (start, 0),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        weight="bold",
    )
    axes.set_yticks([0], ["its parts"])
    axes.set_ylim(0.7, -1.35)
    axes.set_xlim(0, limit)
