"""Exhibits: the figures and tables that a notebook writes for the article."""

import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from graphgain.figures.style import theme
from graphgain.figures.themes import THEMES
from graphgain.files import write_atomically
from graphgain.tables import ABSENT, NOT_MEASURED

Draw = Callable[[], Figure]


class FigureDisplay:
    """What a notebook shows for a figure: both themes on a page, the PNG anywhere else."""

    def __init__(self, name: str, png: bytes) -> None:
        self.name, self.png = name, png

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        images = "".join(
            f'<img class="only-{theme_name}" alt="Figure {self.name}" '
            f'src="../figures/{self.name}.{theme_name}.svg">'
            for theme_name in THEMES
        )
        return {
            "text/html": f"<div>{images}</div>",
            "image/png": b64encode(self.png).decode(),
            "text/plain": f"figure {self.name}",
        }


def save_figure(name: str, draw: Draw, data: pd.DataFrame, out: str | Path) -> FigureDisplay:
    """Draw a figure once a theme and write it with the data that it shows.

    Writes `figures/NAME.{light,dark}.{svg,png}` and `figures/NAME.csv` below `out`. `draw` takes
    no arguments, returns a matplotlib figure, and is called with each theme's settings active.
    """
    folder = Path(out) / "figures"
    png = b""
    for theme_name in THEMES:
        with theme(theme_name):
            figure = _laid_out(draw())
            write_atomically(folder / f"{name}.{theme_name}.svg", _render(figure, "svg"))
            image = _render(figure, "png")
            write_atomically(folder / f"{name}.{theme_name}.png", image)
            png = png or image
    write_atomically(folder / f"{name}.csv", data.to_csv(index=False, lineterminator="\n"))
    return FigureDisplay(name, png)


def save_table(name: str, data: pd.DataFrame, shown: pd.DataFrame, out: str | Path) -> pd.DataFrame:
    """Write a table twice: `tables/NAME.csv` with `data`, `tables/NAME.md` with the text `shown`.

    Columns of `shown` in which whatever was measured begins like a number are set flush right.
    """
    folder = Path(out) / "tables"
    write_atomically(folder / f"{name}.csv", data.to_csv(index=False, lineterminator="\n"))
    write_atomically(folder / f"{name}.md", pipe_table(shown))
    return shown


def pipe_table(shown: pd.DataFrame) -> str:
    """A frame of texts as a Markdown pipe table."""
    cells = [
        [str(value).replace("|", "\\|") for value in row] for row in shown.itertuples(index=False)
    ]
    rule = ["---:" if _is_numeric(column) else ":---" for column in zip(*cells, strict=True)]
    lines = [[str(name) for name in shown.columns], rule, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _is_numeric(column: Sequence[str]) -> bool:
    told = [text for text in column if text not in ("", ABSENT, NOT_MEASURED)]
    return bool(told) and all(text[0].isdigit() or text[0] in "−~+" for text in told)


def _laid_out(figure: Figure) -> Figure:
    """Place everything once; left to itself, the layout engine does it again for every file."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    return figure


def _render(figure: Figure, kind: str) -> bytes:
    # No date and no program version in the file: the same figure is the same bytes.
    stream = io.BytesIO()
    if kind == "svg":
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    else:
        fast = {"compress_level": 3}
        figure.savefig(stream, format="png", metadata={"Software": None}, pil_kwargs=fast)
    return stream.getvalue()
