"""What an agent waits for the first token: one panel a trace, one bar an engine and mode."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graphgain.figures.engines import color, label
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import ink


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Panels below each other, on one scale.

    `data` has the columns machine, trace, engine, mode, mean_ms (over the trace's requests that the
    sweep reaches; NaN where only a summary of the trace is known) and p50_ms (at the trace's median
    number of tokens to prefill).
    """
    if data.empty:
        return draw_absent(machines)
    several = data["machine"].nunique() > 1
    panels = list(data.groupby(["machine", "trace"], sort=False))
    heights = [len(rows) + 0.6 for _, rows in panels]
    figure = Figure(figsize=(7.6, 0.9 + 0.29 * sum(heights) + 0.3 * len(panels)))
    grid = figure.subplots(len(panels), 1, height_ratios=heights, sharex=True, squeeze=False)
    right = 1.2 * float(data[["mean_ms", "p50_ms"]].max().max())
    for axes, ((machine, trace), rows) in zip(grid[:, 0], panels, strict=True):
        _draw_bars(axes, rows)
        of_summary = ": only a summary is known" * bool(rows["mean_ms"].isna().all())
        axes.set_title(f"{f'{machine}: ' if several else ''}{trace}{of_summary}", fontsize="small")
        axes.set_xlim(0, right)
    grid[-1, 0].set_xlabel("TTFT (ms)")
    figure.legend(
        handles=[
            Patch(color=ink(), alpha=0.45, label="mean over the requests"),
            Line2D([], [], color=ink(), marker="D", linestyle="", label="the median request"),
        ],
        loc="outside upper left",
        ncols=2,
    )
    note_absent(figure, data["machine"], machines)
    return figure


def _draw_bars(axes: Axes, rows: pd.DataFrame) -> None:
    for place, row in enumerate(rows.to_dict("records")):
        shade = color(row["engine"])
        end = row["p50_ms"]
        if pd.notna(row["mean_ms"]):
            axes.barh(place, row["mean_ms"], 0.72, color=shade, alpha=0.45, linewidth=0)
            end = max(end, row["mean_ms"])
        axes.plot(row["p50_ms"], place, "D", color=shade, markersize=5)
        value = row["p50_ms"] if pd.isna(row["mean_ms"]) else row["mean_ms"]
        axes.annotate(
            f"{value:.0f} ms",
            (end, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
    names = [label(row["engine"], row["mode"]) for row in rows.to_dict("records")]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
