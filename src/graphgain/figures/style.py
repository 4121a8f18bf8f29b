"""One style for all figures, in a light and a dark theme; colours readable on both."""

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import seaborn as sns
from matplotlib.colors import to_hex, to_rgb

mpl.use("agg")

# Okabe and Ito's colour-blind safe set, moved towards middle lightness so that each keeps a
# contrast of 3:1 on the white and on the dark page, which is enough for lines; for words see
# `text_color`.
BLUE = "#1f7fc4"
ORANGE = "#d9730d"
GREEN = "#0f9d76"
PURPLE = "#b567a4"
GREY = "#7d8590"

MACHINE_COLORS = (BLUE, GREY, ORANGE, GREEN, PURPLE)
"""The first machine is blue everywhere, the second grey, and so on, in the configured order."""

_INK = {"light": "#1c2128", "dark": "#e6edf3"}
PAGES = {"light": "#ffffff", "dark": "#14171c"}
"""What lies behind a figure: `--paper` of report/styles/site.css."""
_FAINT = {"light": "#d7dce2", "dark": "#3b434d"}


@contextmanager
def theme(name: str) -> Iterator[None]:
    """Settings of one theme: transparent ground, so that the page's own colour shows."""
    ink, faint = _INK[name], _FAINT[name]
    settings = {
        **sns.axes_style("ticks"),
        "figure.figsize": (7.6, 4.0),
        "figure.dpi": 100,
        "figure.facecolor": "none",
        "figure.constrained_layout.use": True,
        "savefig.facecolor": "none",
        "savefig.dpi": 120,
        "axes.facecolor": "none",
        "axes.edgecolor": faint,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "axes.titlelocation": "left",
        "axes.titlesize": 11.5,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": faint,
        "grid.linewidth": 0.6,
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "xtick.direction": "out",
        "font.family": ["DejaVu Sans"],
        "font.size": 10,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 4,
        "svg.hashsalt": "graphgain",
        "svg.fonttype": "path",
    }
    with mpl.rc_context(settings):
        yield


def ink() -> str:
    """The text colour of the active theme."""
    return str(mpl.rcParams["text.color"])


def faint() -> str:
    """The line colour of the active theme, for rules and guides."""
    return str(mpl.rcParams["grid.color"])


def text_color(color: str) -> str:
    """A colour for words: the first mixture with the active theme's text colour, in steps of 5 %,
    that has a contrast of 4.5:1 (WCAG 2, level AA) on that theme's page."""
    target = ink()
    page = max(PAGES.values(), key=lambda each: contrast(each, target))
    mixtures = (_mixed(color, target, step / 20) for step in range(20))
    return next((each for each in mixtures if contrast(each, page) >= 4.5), target)


def _mixed(color: str, target: str, share: float) -> str:
    red, green, blue = (
        (1 - share) * a + share * b for a, b in zip(to_rgb(color), to_rgb(target), strict=True)
    )
    return to_hex((red, green, blue))


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours after WCAG 2."""
    bright, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in to_rgb(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
