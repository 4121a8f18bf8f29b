"""Bars: host cost of a call by integration path, and what a decode step of them costs."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, faint, ink

LEVEL_COLORS = {"cpp": GREEN, "python": BLUE, "graph": PURPLE}
STEP_COLORS = (GREY, ORANGE, PURPLE)


def draw(calls: pd.DataFrame, steps: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One row of two panels a machine: µs a call at the left, ms a step at the right.

    `calls` has the columns machine, label, level (cpp, python or graph), host_us, low_us, high_us
    and text. `steps` has machine, label, launches, issue_ms and budget_ms: the time to issue a step
    of that many launches, beside that in which the GPU executes the machine's own (NaN: unknown).
    """
    if calls.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(calls["machine"]))
    counts = [int((calls["machine"] == machine).sum()) for machine in present]
    heights = [1.3 + 0.48 * count for count in counts]
    figure = Figure(figsize=(7.6, 0.2 + sum(heights)))
    grid = figure.subplots(
        len(present),
        2,
        squeeze=False,
        sharey="row",
        sharex="col",
        gridspec_kw={"height_ratios": heights, "width_ratios": (1, 1)},
    )
    for (left, right), machine in zip(grid, present, strict=True):
        own = calls[calls["machine"] == machine]
        _draw_calls(left, own)
        _draw_steps(right, steps[steps["machine"] == machine], list(own["label"]))
        left.set_title(f"{machine}\nhost time per call", fontsize=11)
        right.set_title("host time per decode step", fontsize=11)
        left.set_ylim(len(own) - 0.5, -1.35)
        for axes in (left, right):
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0, labelsize=10)
    left, right = grid[-1]
    left.set_xlabel("time (µs)")
    right.set_xlabel("time (ms)")
    left.set_xlim(0, 1.4 * calls[["host_us", "high_us"]].max().max())
    if not steps.empty:
        right.set_xlim(0, 1.15 * float(steps[["issue_ms", "budget_ms"]].max().max()))
    note_absent(figure, present, machines)
    return figure


def _draw_calls(axes: Axes, rows: pd.DataFrame) -> None:
    for place, row in enumerate(rows.to_dict("records")):
        axes.barh(place, row["host_us"], 0.66, color=LEVEL_COLORS[row["level"]], linewidth=0)
        if row["low_us"] < row["high_us"]:
            axes.hlines(place, row["low_us"], row["high_us"], color=ink(), linewidth=1.4)
        axes.annotate(
            row["text"],
            (max(row["host_us"], row["high_us"] if row["high_us"] > 0 else 0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
    axes.set_yticks(range(len(rows)), list(rows["label"]))


def _draw_steps(axes: Axes, rows: pd.DataFrame, labels: list[str]) -> None:
    if rows.empty:
        axes.text(0.5, 0.5, "no decode step measured", transform=axes.transAxes, ha="center")
        return
    budget = float(rows["budget_ms"].iloc[0])
    if not math.isnan(budget):
        axes.axvspan(0, budget, color=faint(), alpha=0.55, linewidth=0, zorder=0)
    needs = "GPU time\n not measured" if math.isnan(budget) else f"GPU needs\n {budget:.2f} ms"
    axes.annotate(f" {needs}", (0, -0.98), va="center", fontsize=9.5)
    counts = sorted(set(rows["launches"]))
    height = 0.76 / len(counts)
    for index, launches in enumerate(counts):
        color = STEP_COLORS[index % len(STEP_COLORS)]
        own = rows[rows["launches"] == launches]
        offset = (index - (len(counts) - 1) / 2) * height
        places = [labels.index(label) + offset for label in own["label"]]
        axes.barh(
            places,
            own["issue_ms"],
            height * 0.92,
            color=color,
            linewidth=0,
            label=f"{launches:,} launches",
        )
        for place, issue_ms in zip(places, own["issue_ms"], strict=True):
            axes.annotate(
                f"{issue_ms:.1f}",
                (issue_ms, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
            )
    axes.legend(
        loc="upper right", fontsize=9.5, handlelength=0.9, borderaxespad=0, labelspacing=0.25
    )
