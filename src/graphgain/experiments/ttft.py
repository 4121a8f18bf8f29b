"""`ttft`: the time to first token of serving engines, over prompt lengths."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphgain.engines.model_folder import NAME
from graphgain.engines.modes import Model
from graphgain.engines.null_server import client_cost
from graphgain.engines.prompts import WHAT
from graphgain.engines.session import Measured, measure_engines
from graphgain.experiments import Context
from graphgain.measuring.packages import package_version

NULL_LENGTHS = (128, 1024, 4096)
NULL_REQUESTS = 200


def measure(context: Context) -> dict[str, Any]:
    """Measure what is missing of the chosen modes; the parts of the document."""
    measured, model, notes = measure_engines(context.parameters, Path(context.build))
    for package in ("vllm", "sglang", "flashinfer-python", "aiohttp"):
        context.versions[package] = package_version(package)
    cost = client_cost(NULL_LENGTHS, NULL_REQUESTS, model.vocabulary)
    return {**body(context.parameters, measured, model, notes), "client_cost": cost}


def body(
    wanted: Any, measured: Sequence[Measured], model: Model, notes: Sequence[str]
) -> dict[str, Any]:
    """The document of what was measured, without the client's cost."""
    checks = [check for one in measured for check in one.checks]
    return {
        "parameters": {
            "model": model.served if not model.random else NAME,
            "requests_per_length": wanted["requests"],
            "warmup_requests": wanted["warmup_requests"],
            "concurrency": wanted["concurrency"],
            "output_tokens": 1,
            "weights": model.weights,
            "prompts": WHAT,
        },
        "rows": [
            {
                "engine": one.chosen.engine.engine,
                "mode": one.chosen.mode_name,
                "isl_tokens": point.isl_tokens,
                "ttft_ms": point.quantity(),
                "failed_requests": 0,
            }
            for one in measured
            for point in one.points
        ],
        "engines": [one.run for one in measured],
        **({"client_check": checks} if checks else {}),
        "notes": [*notes, *weights_note(model)],
    }


def weights_note(model: Model) -> list[str]:
    """What a reader has to know about random weights."""
    if not model.random:
        return []
    return [
        "Weights are random, in the shapes of the model: the time of a prefill of a dense model "
        "does not depend on their values."
    ]
