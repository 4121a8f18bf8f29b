"""Machines in a figure: their colours, and what is drawn for those that have no measurement."""

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphgain.figures.style import MACHINE_COLORS


def machine_color(machine: str, machines: Sequence[str]) -> str:
    """The colour of a machine, which follows from its place in the configured order."""
    return MACHINE_COLORS[list(machines).index(machine) % len(MACHINE_COLORS)]


def note_absent(figure: Figure, present: Iterable[str], machines: Sequence[str]) -> None:
    """Write below a figure which of the machines have no data in it; nothing where all have."""
    shown = set(present)
    absent = [machine for machine in machines if machine not in shown]
    if absent:
        figure.supxlabel(f"not measured: {', '.join(absent)}", x=0.99, ha="right", fontsize=9)


def name_lines(figure: Figure, present: Sequence[str], machines: Sequence[str]) -> None:
    """A legend above the figure that names the machines by the colours of their lines."""
    handles = [
        Line2D([], [], color=machine_color(machine, machines), label=machine) for machine in present
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=10)


def draw_absent(machines: Sequence[str]) -> Figure:
    """The figure of an experiment that none of the machines has: it says so."""
    figure = Figure(figsize=(7.6, 1.2))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(
        0.5,
        0.5,
        f"not measured on the machines shown:\n{', '.join(machines) or 'none'}",
        ha="center",
        va="center",
        fontsize=11,
        transform=axes.transAxes,
    )
    return figure
