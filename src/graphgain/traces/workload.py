"""A trace as a sweep that an experiment can run: a few (new tokens, cached tokens) with weights."""

import json
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from graphgain.traces.counting import Counted
from graphgain.traces.rules import Rules

DEFAULT_POINTS = 32


@dataclass(frozen=True)
class Point:
    """Prompts with `new_tokens` to prefill behind `cached_tokens`; the weights add up to one."""

    new_tokens: int
    cached_tokens: int
    weight: float


def sweep(counted: Counted, points: int = DEFAULT_POINTS) -> list[Point]:
    """At most `points` points that stand for all requests, by rising new tokens.

    The requests are split again and again where they differ most, in the logarithms of both
    numbers. A point has the mean of its requests, so that sums over the sweep are those over the
    trace, up to rounding to whole tokens.
    """
    tokens = np.stack([counted.prefill_tokens, counted.cached_tokens], axis=1)
    logs = np.log2(1 + tokens)
    cells = [np.arange(len(tokens))]
    while len(cells) < points:
        spreads = [_spread(logs[cell]) for cell in cells]
        widest = int(np.argmax(spreads))
        if not spreads[widest]:
            break
        cells[widest : widest + 1] = _split(cells[widest], logs)
    found = []
    for cell in cells:
        new, cached = tokens[cell].mean(axis=0).tolist()
        found.append(Point(round(new), round(cached), len(cell) / len(tokens)))
    return sorted(found, key=lambda point: (point.new_tokens, point.cached_tokens))


def workload_text(counted: Counted, rules: Rules, dataset: str, points: int) -> str:
    """The sweep as JSON, with the rules that it was counted under."""
    rows = [asdict(point) for point in sweep(counted, points)]
    content = {
        "schema_version": 1,
        "kind": "workload",
        "dataset": dataset,
        "rules": asdict(rules),
        "requests": len(counted.request),
        "prefill_tokens": int(counted.prefill_tokens.sum()),
        "points": rows,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _spread(logs: npt.NDArray[np.float64]) -> float:
    """How far apart some requests are, in the direction in which they differ more."""
    return float(np.ptp(logs, axis=0).max()) * len(logs)


def _split(
    cell: npt.NDArray[np.int64], logs: npt.NDArray[np.float64]
) -> list[npt.NDArray[np.int64]]:
    own = logs[cell]
    axis = int(np.argmax(np.ptp(own, axis=0)))
    low = own[:, axis] <= (own[:, axis].min() + own[:, axis].max()) / 2
    return [cell[low], cell[~low]]
