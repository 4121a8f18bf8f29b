"""Hit rate against the size of the cache: one line a trace."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from graphgain.figures.labels import label_ends
from graphgain.figures.machines import draw_absent, machine_color


def draw(curves: pd.DataFrame, traces: Sequence[str]) -> Figure:
    """`curves` has the columns trace, cache_tokens and percent; `traces` fixes the colours."""
    if curves.empty:
        return draw_absent(traces)
    figure = Figure(figsize=(7.6, 3.6))
    axes = figure.subplots()
    right = float(curves["cache_tokens"].max())
    axes.set(xscale="log", xlim=(curves["cache_tokens"].min(), right), ylim=(0, 100))
    ends = []
    for trace, own in curves.groupby("trace", sort=False):
        color = machine_color(str(trace), traces)
        line = own.sort_values("cache_tokens")
        end = float(line["percent"].iloc[-1])
        x, y = [*line["cache_tokens"], right], [*line["percent"], end]
        axes.plot(x, y, color=color, linewidth=2.2)
        ends.append((str(trace), end, color))
    label_ends(axes, ends, 7.5, at=right)
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("size of the prefix cache (tokens)")
    axes.set_title("Input tokens found in the cache")
    return figure


def _short(tokens: float) -> str:
    if tokens >= 1e6:
        return f"{tokens / 1e6:g}M"
    return f"{tokens / 1e3:g}k" if tokens >= 1e3 else f"{tokens:g}"
