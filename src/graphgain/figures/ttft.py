"""TTFT of short prompts: one line an engine and mode, named at its end."""

from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from graphgain.figures.engines import ENGINE_COLORS, label, look
from graphgain.figures.labels import label_ends
from graphgain.figures.machines import draw_absent, note_absent


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One panel a machine, below each other, on one scale of prompt lengths.

    `data` has the columns machine, engine, mode, isl_tokens and ttft_ms.
    """
    if data.empty:
        return draw_absent(machines)
    present = [machine for machine in machines if machine in set(data["machine"])]
    figure = Figure(figsize=(7.6, 0.4 + 4.4 * len(present)))
    panels = figure.subplots(len(present), 1, squeeze=False)[:, 0]
    for axes, machine in zip(panels, present, strict=True):
        draw_lines(axes, data[data["machine"] == machine])
        axes.xaxis.set_major_locator(MultipleLocator(1024))
        axes.set_xlabel("prompt length (tokens), nothing cached")
        if len(present) > 1:
            axes.set_title(machine)
    note_absent(figure, data["machine"], machines)
    return figure


def curves(data: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Engine, mode and rows of each line of one machine, in the order of the data."""
    for engine, mode in data[["engine", "mode"]].drop_duplicates().itertuples(index=False):
        rows = data[(data["engine"] == engine) & (data["mode"] == mode)]
        yield engine, mode, rows.sort_values("isl_tokens")


def draw_lines(axes: Axes, data: pd.DataFrame) -> None:
    """The lines of one machine, with their names beside the axes."""
    top = 1.12 * data["ttft_ms"].max()
    right = data["isl_tokens"].max()
    axes.set(xlim=(0, right), ylim=(0, top))
    ends = []
    for engine, mode, rows in curves(data):
        style = look(engine, mode)
        axes.plot(
            rows["isl_tokens"],
            rows["ttft_ms"],
            color=ENGINE_COLORS[engine],
            dashes=style.dashes,
            linewidth=2.6 if engine == "kern" else 1.9,
            zorder=3 if engine == "kern" else 2,
        )
        end = float(rows["ttft_ms"].iloc[-1])
        ends.append((label(engine, mode), end, ENGINE_COLORS[engine]))
    label_ends(axes, ends, 0.054 * top, at=right)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel("TTFT, p50 (ms)")
