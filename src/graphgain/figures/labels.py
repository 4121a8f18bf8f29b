"""Labels at the ends of lines, moved apart so that none covers another."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from graphgain.figures.style import text_color


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions nearest to the wanted ones (least squares) that are at least `gap` apart.

    The order of the wanted positions is kept; equal ones keep the order in which they come.
    """
    order = np.argsort(np.asarray(wanted, dtype=float), kind="stable")
    # With y[i] - i*gap the condition is "does not fall": pool neighbours until it holds.
    pools: list[list[float]] = []
    for rank, index in enumerate(order):
        pools.append([wanted[index] - rank * gap])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = [float(np.mean(pool)) for pool in pools for _ in pool]
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = level[rank] + rank * gap
    return placed


def label_ends(
    axes: Axes, ends: Sequence[tuple[str, float, str]], gap: float, *, at: float
) -> None:
    """Write each (text, height, colour) beside the axes, a thin line from the curve's end at `at`.

    `gap` is the least distance of two labels in units of the vertical axis, whose limits have to be
    set before.
    """
    beside = axes.get_yaxis_transform()  # x in parts of the axes, y as data
    start = axes.transData.transform((at, 0))[0]
    start = axes.transAxes.inverted().transform((start, 0))[0]
    for (text, height, color), place in zip(
        ends, spread([end[1] for end in ends], gap), strict=True
    ):
        axes.plot(
            [start, 1.02, 1.035],
            [height, place, place],
            transform=beside,
            color=color,
            linewidth=0.8,
            marker="",
            clip_on=False,
        )
        ink = text_color(color)
        axes.text(1.045, place, text, transform=beside, va="center", color=ink, weight="bold")
