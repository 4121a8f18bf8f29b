"""What a drawn figure shows: where its texts are, and whether they get in each other's way."""

from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK_PX = 1.0  # boxes have a margin of about a pixel around the glyphs


def text_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every visible text of a figure with its box in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts: list[Text] = []
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes._right_title, *axes.texts]
        if axes.axison:
            texts += [axes.xaxis.label, axes.yaxis.label]
            texts += [*_visible_ticks(axes.xaxis), *_visible_ticks(axes.yaxis)]
        if axes.get_legend():
            texts += axes.get_legend().get_texts()
    texts += [text for text in (figure._supxlabel, *figure.texts) if text is not None]
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in dict.fromkeys(texts)
        if text.get_visible() and text.get_text().strip()
    ]


def colliding_texts(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes overlap."""
    found = []
    for (name, box), (other_name, other) in combinations(text_boxes(figure), 2):
        width = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        if width > SLACK_PX and height > SLACK_PX:
            found.append((name, other_name))
    return found


def clipped_texts(figure: Figure) -> list[str]:
    """Texts that do not lie within the figure."""
    width, height = figure.bbox.width, figure.bbox.height
    return [
        name
        for name, box in text_boxes(figure)
        if min(box.x0, box.y0) < -SLACK_PX
        or box.x1 > width + SLACK_PX
        or box.y1 > height + SLACK_PX
    ]


def bar_widths(figure: Figure) -> list[float]:
    """Lengths of all horizontal bars, in the order in which they were drawn."""
    return [
        float(bar.get_width())
        for axes in figure.axes
        for group in axes.containers
        for bar in group.patches
    ]


def _visible_ticks(axis: Axis) -> list[Text]:
    # The ticks that matplotlib itself draws; get_ticklabels has those beyond the limits, too.
    return [tick.label1 for tick in axis._update_ticks()]
