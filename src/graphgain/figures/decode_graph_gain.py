"""Bars: one decode step under each host, and where the graph's gain comes from."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, ink

TIME_COLORS = {"issue": ORANGE, "eager": GREY, "cpp_eager": GREY, "graph": GREEN}
GAIN_COLORS = {"idle": PURPLE, "handoff": BLUE, "no_pdl": ORANGE, "pdl": BLUE}


def draw(times: pd.DataFrame, gains: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Two panels a machine: durations in ms, and the gain in µs, added up in one or two ways.

    `times` has the columns machine, kind (issue, eager, cpp_eager, graph), label, ms and note.
    `gains` has machine, bar (its label), part (idle, handoff, no_pdl, pdl), label, low_us and
    high_us (the part ends somewhere between them; equal where it is one number).
    """
    if times.empty:
        return draw_absent(machines)
    panels: list[tuple[str, pd.DataFrame, bool]] = []
    for machine in dict.fromkeys(times["machine"]):
        panels.append((machine, times[times["machine"] == machine], False))
        own = gains[gains["machine"] == machine]
        if not own.empty:
            panels.append((machine, own, True))
    heights = [
        0.95 + (0.85 * rows["bar"].nunique() if is_gain else 0.38 * len(rows))
        for _, rows, is_gain in panels
    ]
    figure = Figure(figsize=(7.6, 0.2 + sum(heights)))
    stack = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[
        :, 0
    ]
    for axes, (machine, rows, is_gain) in zip(stack, panels, strict=True):
        if is_gain:
            _draw_gains(axes, rows)
            axes.set_title(f"{machine}: where the graph's gain comes from")
        else:
            _draw_times(axes, rows)
            axes.set_title(f"{machine}: one decode step")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0, labelsize=10)
    note_absent(figure, times["machine"], machines)
    return figure


def _draw_times(axes: Axes, rows: pd.DataFrame) -> None:
    for place, row in enumerate(rows.to_dict("records")):
        axes.barh(place, row["ms"], 0.72, color=TIME_COLORS[row["kind"]], linewidth=0)
        value = axes.annotate(
            f"{row['ms']:.2f}" if row["kind"] != "issue" else f"{row['ms']:.1f}",
            (row["ms"], place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
        if row["note"]:
            _beside(axes, value, row["note"])
    axes.set_yticks(range(len(rows)), list(rows["label"]))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.3 * rows["ms"].max())
    axes.set_xlabel("time (ms)")


def _draw_gains(axes: Axes, rows: pd.DataFrame) -> None:
    bars = list(dict.fromkeys(rows["bar"]))
    for place, bar in enumerate(bars):
        start = 0.0
        for row in rows[rows["bar"] == bar].to_dict("records"):
            low, high, color = row["low_us"], row["high_us"], GAIN_COLORS[row["part"]]
            axes.barh(place, low, 0.42, left=start, color=color, linewidth=0)
            if high > low:
                axes.barh(
                    place, high - low, 0.42, left=start + low, color=color, alpha=0.35, linewidth=0
                )
            if start:
                axes.vlines(start, place - 0.21, place + 0.21, color=ink(), linewidth=0.8)
            axes.annotate(
                row["label"],
                (start, place + 0.21 if start == 0 else place - 0.21),
                xytext=(1, -4 if start == 0 else 4),
                textcoords="offset points",
                ha="left",
                va="top" if start == 0 else "bottom",
                fontsize=9.5,
            )
            start += low
    axes.set_yticks(range(len(bars)), bars)
    axes.set_ylim(len(bars) - 0.4, -0.65)
    axes.set_xlim(0, 1.12 * _longest(rows))
    axes.set_xlabel("time per decode step (µs)")


def _longest(rows: pd.DataFrame) -> float:
    return float(rows.groupby("bar")["high_us"].sum().max())


def _beside(axes: Axes, value: Any, note: str) -> None:
    axes.annotate(
        note,
        (1, 0.5),
        xycoords=value,
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=9.5,
    )
