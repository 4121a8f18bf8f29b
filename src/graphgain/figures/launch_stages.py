"""Stacked bars: which stages the host time of a launch from Python is made of."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from graphgain.figures.machines import draw_absent, note_absent
from graphgain.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, ink

STAGES = {
    "call": ("call into C and back", GREY),
    "arguments": ("converting arguments", ORANGE),
    "launch": ("launch", GREEN),
    "python_wrapper": ("Python wrapper, look-up", PURPLE),
    "dispatcher": ("dispatcher, back into Python", BLUE),
    "custom_op": ("torch.library.custom_op", "#c0504d"),
}
PATHS = {
    "tvm_ffi": "tvm-ffi",
    "jit_cached": "behind a wrapper",
    "jit_torch_op": "as a torch op,\nLibrary.impl",
    "jit_custom_op": "as a torch op,\ncustom_op",
    "aot_torch_library": "torch op in C++\n(AOT)",
}


def draw(stages: pd.DataFrame, machines: Sequence[str]) -> Figure:
    """One panel a machine, one bar a path; `stages` has the columns machine, path, stage, host_us.

    A stage that a noisy machine measured as less than nothing is drawn as nothing.
    """
    if stages.empty:
        return draw_absent(machines)
    present = list(dict.fromkeys(stages["machine"]))
    figure = Figure(figsize=(7.6, 0.9 + 2.9 * len(present)))
    for axes, machine in zip(
        figure.subplots(len(present), 1, squeeze=False)[:, 0], present, strict=True
    ):
        _draw_machine(axes, stages[stages["machine"] == machine])
        axes.set_title(machine)
    axes.set_xlabel("host time per call (µs)")
    used = set(stages["stage"])
    figure.legend(
        handles=[
            Patch(color=color, label=label)
            for stage, (label, color) in STAGES.items()
            if stage in used
        ],
        loc="outside upper left",
        ncols=3,
        fontsize=9.5,
        handlelength=1.0,
        columnspacing=1.2,
    )
    note_absent(figure, present, machines)
    return figure


def _draw_machine(axes: Axes, rows: pd.DataFrame) -> None:
    measured = rows.set_index(["path", "stage"])["host_us"].clip(lower=0)
    shown = [path for path in PATHS if path in measured.index.get_level_values("path")]
    widest = max(float(measured[path].sum()) for path in shown)
    for place, path in enumerate(shown):
        left = 0.0
        for stage, (_, color) in STAGES.items():
            if stage not in measured[path].index:
                continue
            us = float(measured[path][stage])
            axes.barh(place, us, 0.68, left=left, color=color, linewidth=0)
            if us > 0.055 * widest:
                axes.text(
                    left + us / 2, place, f"{us:.1f}",
                    ha="center", va="center", color="white", weight="bold", fontsize=9.5,
                )  # fmt: skip
            left += us
        axes.annotate(
            f"{left:.1f}",
            (left, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
            color=ink(),
        )
    axes.set_yticks(range(len(shown)), [PATHS[path] for path in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0, 1.1 * widest)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
