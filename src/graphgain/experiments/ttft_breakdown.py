"""`ttft_breakdown`: what the time to first token consists of, from the engines' own profilers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphgain.engines.model_folder import NAME
from graphgain.engines.modes import PUBLISHED, Model
from graphgain.engines.session import Measured, measure_engines
from graphgain.errors import MeasureError
from graphgain.experiments import Context
from graphgain.experiments.ttft import weights_note


def measure(context: Context) -> dict[str, Any]:
    """Profile what is missing of the chosen modes; the parts of the document."""
    measured, model, notes = measure_engines(
        context.parameters, Path(context.build), finished_stays=True
    )
    return body(measured, model, notes)


def body(measured: Sequence[Measured], model: Model, notes: Sequence[str]) -> dict[str, Any]:
    """The document of what was profiled; raises MeasureError where nothing was."""
    profiled = sorted(
        (one for one in measured if one.profiled), key=lambda one: name(one) != PUBLISHED
    )
    if not profiled:
        raise MeasureError(
            "No engine was profiled: none of the chosen ones has a profiler in config/engines, or "
            "profile_lengths is [0]."
        )
    own, *others = profiled
    return {
        "parameters": {
            "model": model.served if not model.random else NAME,
            "engine": name(own)[0],
            "mode": name(own)[1],
        },
        "rows": own.breakdown(),
        "beside": [
            {"engine": name(one)[0], "mode": name(one)[1], "rows": one.breakdown()}
            for one in others
        ],
        "engines": [one.run for one in profiled],
        "notes": [*notes, *weights_note(model)],
    }


def name(one: Measured) -> tuple[str, str]:
    """Engine and mode."""
    return one.chosen.engine.engine, one.chosen.mode_name
