"""TTFT of short prompts: one line an engine and mode, named at its end."""

from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from graphgain.figures.engines import color, label, look
from graphgain.figures.labels import label_ends
from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.octaves import in_octaves
from graphgain.figures.style import faint, text_color

_FEW_LENGTHS = 24


def draw(
    data: pd.DataFrame,
    fits: pd.DataFrame,
    limits: pd.DataFrame,
    machines: Sequence[str],
    *,
    octaves: bool = False,
) -> Figure:
    """One panel a machine, below each other, on one scale of prompt lengths: linear, so that a line
    is a line, or in octaves, where many lines are to be told apart at short lengths.

    `data` has the columns machine, engine, mode, isl_tokens, ttft_ms, low_ms and high_ms (drawn as
    a band where they are known), `fits` the first five of fitted models, drawn dotted. `limits` has
    machine, engine, mode and tokens: the longest prompt of which a mode replays a graph. With a
    column node, lines of one panel that come from several nodes are named with theirs.
    """
    if data.empty:
        return draw_absent(machines)
    present = [machine for machine in machines if machine in set(data["machine"])]
    figure = Figure(figsize=(7.6, 0.4 + 4.4 * len(present)))
    panels = figure.subplots(len(present), 1, squeeze=False)[:, 0]
    for axes, machine in zip(panels, present, strict=True):
        draw_lines(axes, data[data["machine"] == machine])
        _draw_fits(axes, fits[fits["machine"] == machine])
        _mark_limits(axes, limits[limits["machine"] == machine])
        if octaves:
            in_octaves(axes, data["isl_tokens"])
            axes.set_xlim(right=data["isl_tokens"].max())  # where the names begin
        else:
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
    apart = "node" in data and data["node"].nunique() > 1
    for engine, mode, rows in curves(data):
        style = look(engine, mode)
        name = label(engine, mode)
        if apart and pd.notna(rows["node"].iloc[0]):
            name += f" (node {rows['node'].iloc[0]:.0f})"
        axes.plot(
            rows["isl_tokens"],
            rows["ttft_ms"],
            color=color(engine),
            dashes=style.dashes,
            linewidth=2.6 if engine == "kern" else 1.9,
            zorder=3 if engine == "kern" else 2,
            # Few lengths are shown as what they are; a dense sweep is a line.
            marker="o" if len(rows) <= _FEW_LENGTHS else None,
            markersize=4,
        )
        spread = rows[["low_ms", "high_ms"]].astype(float)
        axes.fill_between(
            rows["isl_tokens"],
            *(spread["low_ms"], spread["high_ms"]),
            color=color(engine),
            alpha=0.14,
            linewidth=0,
            zorder=1,
        )
        end = float(rows["ttft_ms"].iloc[-1])
        last = float(rows["isl_tokens"].iloc[-1])
        if last < 0.9 * right:
            axes.annotate(
                name,
                (last, end),
                xytext=(8, -4),
                textcoords="offset points",
                va="top",
                color=text_color(color(engine)),
                weight="bold",
            )
        else:
            ends.append((name, end, color(engine)))
    label_ends(axes, ends, 0.054 * top, at=right)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel("TTFT, p50 (ms)")


def _draw_fits(axes: Axes, fits: pd.DataFrame) -> None:
    for engine, _, rows in curves(fits):
        axes.plot(
            rows["isl_tokens"],
            rows["ttft_ms"],
            color=color(engine),
            linestyle=(0, (1, 2)),
            linewidth=1.1,
            zorder=1,
        )


def _mark_limits(axes: Axes, limits: pd.DataFrame) -> None:
    for row in limits.to_dict("records"):
        axes.axvline(row["tokens"], color=faint(), linewidth=1, zorder=0)
        axes.annotate(
            f"{label(row['engine'], row['mode'])}: captured up to here",
            (row["tokens"], axes.get_ylim()[1]),
            xytext=(4, -4),
            textcoords="offset points",
            va="top",
            fontsize="small",
            color=text_color(color(row["engine"])),
        )
