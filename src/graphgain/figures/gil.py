"""The GIL changing hands: two timelines of the rule."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphgain.figures.machines import draw_absent
from graphgain.figures.style import BLUE, PURPLE, ink, text_color
from graphgain.gil_policy import Span

LANES = {"A": 0.0, "B": 1.0}
FILL = {"runs": PURPLE, "launches": BLUE}


def draw(computing: Sequence[Span], launching: Sequence[Span], switch_ms: float) -> Figure:
    """Two timelines, one below the other.

    `computing` is a thread that computes until it is asked to stop, `launching` one that releases
    the lock at each launch; `switch_ms` is the switch interval.
    """
    figure = Figure(figsize=(7.6, 4.7))
    panels = figure.subplots(2, 1)
    end = max(span.end_ms for span in [*computing, *launching])
    for axes, spans, title in (
        (panels[0], computing, "A computes: B gets the lock after one switch interval"),
        (panels[1], launching, "A launches: B cuts in at every release"),
    ):
        _draw_spans(axes, spans)
        axes.set_title(title)
        axes.set(xlim=(0, 1.02 * end), ylim=(2.25, -0.62))
        axes.set_yticks([0, 1], ["thread A", "thread B"])
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
    _explain_request(panels[0], computing, switch_ms)
    _explain_interval(panels[1], launching)
    panels[1].set_xlabel(f"time (ms); only the switch interval of {switch_ms:g} ms is to scale")
    return figure


def draw_nothing(machines: Sequence[str]) -> Figure:
    """The figure where no machine says how its Python passes the GIL on."""
    return draw_absent(machines)


def _draw_spans(axes: Axes, spans: Sequence[Span]) -> None:
    for span in spans:
        lane, width = LANES[span.thread], span.end_ms - span.start_ms
        if span.state == "waits":
            axes.hlines(lane, span.start_ms, span.end_ms, color=ink(), linestyle=":", linewidth=1.6)
        else:
            axes.barh(lane, width, 0.56, left=span.start_ms, color=FILL[span.state], linewidth=0)
    wide = 0.2 * max(span.end_ms for span in spans)
    for span in spans:
        if span.end_ms - span.start_ms < wide:
            continue
        text = {"runs": "holds the GIL", "waits": "sleeps", "launches": ""}[span.state]
        axes.text(
            (span.start_ms + span.end_ms) / 2,
            LANES[span.thread] - (0.14 if span.state == "waits" else 0),
            text,
            ha="center",
            va="center" if span.state == "runs" else "bottom",
            color="white" if span.state == "runs" else ink(),
            weight="bold" if span.state == "runs" else "normal",
        )


def _explain_request(axes: Axes, spans: Sequence[Span], switch_ms: float) -> None:
    waiting = next(span for span in spans if span.state == "waits")
    asked = waiting.start_ms + switch_ms
    for x, text, side in (
        (waiting.start_ms, "wants the lock", "center"),
        (asked, "drop request: A hands over\nat its next checkpoint", "right"),
    ):
        axes.plot(x, 1, "o", color=ink(), markersize=5, zorder=4)
        axes.annotate(
            text,
            (x, 1),
            xytext=(5 if side == "right" else 0, -9),
            textcoords="offset points",
            ha=side,
            va="top",
        )


def _explain_interval(axes: Axes, spans: Sequence[Span]) -> None:
    launches = [span.start_ms for span in spans if span.state == "launches"]
    for x in launches:
        axes.annotate(
            "launch",
            (x, -0.3),
            xytext=(0, 1),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=text_color(BLUE),
            weight="bold",
            fontsize=9.5,
        )
    for left, right in pairwise(launches):
        axes.annotate(
            "",
            (left, 1.5),
            (right, 1.5),
            arrowprops={"arrowstyle": "<->", "color": ink(), "shrinkA": 0, "shrinkB": 0},
        )
        axes.text(
            (left + right) / 2,
            1.58,
            "a whole switch interval\nbetween two launches",
            ha="center",
            va="top",
        )
