"""What the figures about one forward under three hosts draw."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from graphgain.figures import kernel_handover, three_hosts
from graphgain.figures.style import BLUE, GREEN, ORANGE, theme

MACHINES = ["here", "there"]
BARS = pd.DataFrame(
    [
        ("here", "step", "Python", "graph", 4.0, 9.0, ""),
        ("here", "step", "Python", "handoff", 1.0, 9.0, ""),
        ("here", "step", "Python", "host", 4.0, 9.0, ""),
        ("here", "step", "graph", "graph", 4.0, 4.0, "note"),
    ],
    columns=["machine", "forward", "host", "part", "ms", "total_ms", "note"],
)
LATER = pd.DataFrame(
    {
        "machine": "here",
        "forward": "step",
        "pdl": [True, True, False, False, False],
        "later_us": [0.1, 0.2, 1.0, 1.1, 99.0],
    }
)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_bars_are_as_long_as_their_parts_and_stand_behind_each_other(name: str) -> None:
    with theme(name):
        (axes,) = three_hosts.draw(BARS, MACHINES).axes
    drawn = [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor())) for bar in axes.patches]
    assert drawn == [(0, 4, GREEN), (4, 1, BLUE), (5, 4, ORANGE), (0, 4, GREEN)]
    assert [text.get_text() for text in axes.texts] == ["9.00", "4.00  note"]
    assert axes.get_title(loc="left") == "here: step"
    assert axes.get_xlim()[1] > 9


def test_a_legend_names_only_what_is_drawn_and_an_absent_machine_is_named() -> None:
    with theme("light"):
        figure = three_hosts.draw(BARS[BARS["part"] != "handoff"], MACHINES)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        three_hosts.PARTS["graph"][0],
        three_hosts.PARTS["host"][0],
    ]
    assert figure.get_supxlabel() == "not measured: there"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_launch_is_counted_once_those_beyond_the_axis_in_its_last_bin(name: str) -> None:
    with theme(name):
        (axes,) = kernel_handover.draw(LATER, MACHINES).axes
    bars = [bar for bar in axes.patches if hasattr(bar, "get_height")]
    assert sum(bar.get_height() for bar in bars) == len(LATER)
    last = [
        bar for bar in bars if bar.get_x() == kernel_handover.HIGH_US - kernel_handover.WIDTH_US
    ]
    assert sorted(bar.get_height() for bar in last) == [0, 1]
    assert [text.get_text() for text in axes.texts] == [
        "2 with PDL: median 0.15 µs",
        "3 without PDL: median 1.10 µs",
    ]


@pytest.mark.parametrize("draw", [three_hosts.draw, kernel_handover.draw])
def test_without_data_the_figure_says_so(draw) -> None:  # type: ignore[no-untyped-def]
    with theme("light"):
        (axes,) = draw(BARS.head(0), MACHINES).axes
    assert "not measured on the machines shown" in axes.texts[0].get_text()
