"""Points: what a graph would save in a prefill, in ms and in percent, by length and by cache."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent, machine_color, name_lines, note_absent
from graphgain.figures.octaves import in_octaves
from graphgain.figures.style import ink

MEASURES = (("saved_ms", "saved (ms)", ".2f"), ("saved_percent", "saved (%)", ".1f"))


def draw(data: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """Saved ms above, saved percent below; left against tokens with an empty cache, right against
    the tokens that were cached before, for the one length that was run with a filled cache.

    `data` has the columns machine, tokens, cached_tokens, saved_ms, saved_percent.
    """
    if data.empty:
        return draw_absent(machines)
    cached = data[data["cached_tokens"] > 0]
    lengths = sorted(set(cached["tokens"]))
    columns = 1 + bool(lengths)
    figure = Figure(figsize=(7.6, 4.9))
    grid = figure.subplots(
        2, columns, sharex="col", sharey="row", squeeze=False, width_ratios=(5, 4)[:columns]
    )
    present = list(dict.fromkeys(data["machine"]))
    for (column, unit, shown), row in zip(MEASURES, grid, strict=True):
        # Numbers of several machines would cover each other; the table has them.
        labels = shown if len(present) == 1 else None
        for machine in present:
            own = data[data["machine"] == machine]
            color = machine_color(machine, machines)
            empty = own[own["cached_tokens"] == 0].sort_values("tokens")
            _draw_line(row[0], list(empty["tokens"]), list(empty[column]), color, "o", labels)
            if lengths:
                after = own[own["tokens"] == lengths[0]].sort_values("cached_tokens")
                places = [_place(cached, tokens) for tokens in after["cached_tokens"]]
                _draw_line(row[1], places, list(after[column]), color, "D", labels)
        row[0].set_ylabel(unit)
        row[0].set_ylim(min(0, 1.2 * data[column].min()), 1.25 * data[column].max())
        for axes in row if data[column].min() < 0 else ():
            axes.axhline(0, color=ink(), linewidth=0.9, zorder=1)
    _finish([list(row) for row in grid], cached, data, lengths)
    if len(present) > 1:
        name_lines(figure, present, machines)
    note_absent(figure, present, machines)
    return figure


def _place(cached: pd.DataFrame, tokens: int) -> int:
    """Where a number of cached tokens stands: evenly spaced, as the steps are powers of two."""
    return sorted({0, *cached["cached_tokens"]}).index(tokens)


def _draw_line(
    axes: Axes, x: list[int], y: list[float], color: str, marker: str, shown: str | None
) -> None:
    axes.plot(x, y, color=color, marker=marker, markersize=6, markeredgewidth=0, clip_on=False)
    for place, value in zip(x, y, strict=True) if shown else ():
        axes.annotate(
            f"{value:{shown}}",
            (place, value),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9.5,
            color=ink(),
        )


def _finish(
    grid: Sequence[Sequence[Axes]], cached: pd.DataFrame, data: pd.DataFrame, lengths: list[int]
) -> None:
    tokens = set(data.loc[data["cached_tokens"] == 0, "tokens"])
    grid[0][0].set_title("empty cache")
    grid[1][0].set_xlabel("tokens to prefill")
    in_octaves(grid[1][0], tokens)
    if lengths:
        steps = sorted({0, *cached["cached_tokens"]})
        names = [f"{step // 1024}k" if step else "0" for step in steps]
        grid[0][1].set_title(f"{lengths[0]} tokens after a filled cache")
        grid[1][1].set_xlabel("tokens cached before")
        grid[1][1].set_xticks(range(len(steps)), names, fontsize=9.5)
        grid[1][1].set_xlim(-0.4, len(steps) - 0.6)
