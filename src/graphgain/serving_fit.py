"""TTFT as the slower of host and GPU: a level that the host sets, then a line that the GPU sets.

The model is TTFT(L) = fixed + max(host, gpu(L)) with gpu(L) linear in the prompt's length L. A
sweep alone tells fixed + host (the level) and fixed + gpu (the line), not their parts, and only the
shape: what sets a level, a trace has to tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

MIN_ON_LINE, MIN_ON_LEVEL = 3, 2
"""Fewest lengths of a line and of a level: fewer would fit anything."""
_CLEARLY = 1.02
"""A longer level has to lessen the error by more than this factor."""
_EXPLAINED = 0.75
"""What share of the squared relative errors of a level alone a level and a line have to explain."""


@dataclass(frozen=True)
class HostOrGpu:
    """The fit of one mode. `level_ms` is None where no length is bound by the host; the line is
    `intercept_ms` + `slope_ms_per_1k` × L / 1024. `knee_tokens` is where both meet.

    `residual_percent` is the median of the absolute differences in percent of the data.
    """

    level_ms: float | None
    level_lengths: int
    intercept_ms: float
    slope_ms_per_1k: float
    knee_tokens: float | None
    residual_percent: float

    def at(self, tokens: float) -> float:
        """TTFT in ms by the model."""
        line = self.intercept_ms + self.slope_ms_per_1k * tokens / 1024
        return line if self.level_ms is None else max(self.level_ms, line)


@dataclass(frozen=True)
class Part:
    """The lengths of a mode that one model describes: all of them, or those up to the largest size
    that a piecewise graph was captured for, or those above.

    Captured lengths have a level only, the median of their times: no GPU's line is looked for.
    Where lengths that could have a line have no `model`, they are flat.
    """

    which: Literal["all", "captured", "above"]
    lengths: list[int]
    level_ms: float | None
    model: HostOrGpu | None
    residual_percent: float | None
    """Median of the absolute differences in percent; None for a single length."""

    @property
    def flat(self) -> bool:
        """Whether a line was looked for, and the times do not rise."""
        return self.which != "captured" and self.model is None and len(self.lengths) >= MIN_ON_LINE


def captured_tokens(settings: Mapping[str, Any]) -> int | None:
    """The longest prompt that a server replays a piecewise graph for, by its own settings; longer
    ones run without it. None where there is no such limit, or it was not told."""
    sizes = settings.get("capture_sizes")
    piecewise = "PIECEWISE" in str(settings.get("cudagraph_mode", ""))
    return max(sizes) if piecewise and sizes else None


def parted(
    lengths: Sequence[int], ttft_ms: Sequence[float], captured: int | None = None
) -> list[Part]:
    """The fits of a mode, parted at its largest captured size: prompts above it run without a
    graph, as if in another mode. Raises ValueError as `fit` does."""
    points = sorted(zip(lengths, ttft_ms, strict=True))
    inside = [point for point in points if captured is not None and point[0] <= captured]
    rest = points[len(inside) :]
    found: list[Part] = []
    if inside:
        isl, ms = map(list, zip(*inside, strict=True))
        found.append(Part("captured", isl, float(np.median(ms)), None, _scatter_percent(ms)))
    if rest:
        isl, ms = map(list, zip(*rest, strict=True))
        model = fit(isl, ms)
        # Too few lengths for a model have a middle all the same.
        level_ms = model.level_ms if model else float(np.median(ms))
        off = model.residual_percent if model else _scatter_percent(ms)
        found.append(Part("all" if captured is None else "above", isl, level_ms, model, off))
    return found


def _scatter_percent(ttft_ms: Sequence[float]) -> float | None:
    """The median difference from the median in percent; None for a single time."""
    times = np.asarray(ttft_ms, dtype=float)
    if len(times) < MIN_ON_LEVEL:
        return None
    return float(np.median(np.abs(np.median(times) / times - 1)) * 100)


def fit(lengths: Sequence[float], ttft_ms: Sequence[float]) -> HostOrGpu | None:
    """The best fit over all ways to part the lengths into a level and a line.

    The level is the median of the shorter lengths, the line least squares of the relative errors
    over the longer ones; the parting with the least sum of squared relative errors of the whole
    model wins, the shortest level among those that are as good. None for fewer than `MIN_ON_LINE`
    lengths, and for flat times, of which a rising line explains little. Raises ValueError for
    unequal numbers of values and for times that are not positive.
    """
    if len(lengths) != len(ttft_ms):
        raise ValueError("as many lengths as times are needed")
    x, y = np.asarray(lengths, dtype=float), np.asarray(ttft_ms, dtype=float)
    if (y <= 0).any():
        raise ValueError("times have to be positive")
    order = np.argsort(x)
    x, y = x[order], y[order]
    found: list[tuple[float, HostOrGpu]] = []
    for count in [0, *range(MIN_ON_LEVEL, len(x) - MIN_ON_LINE + 1)]:
        if len(x) - count < MIN_ON_LINE:
            break
        slope, intercept = map(float, np.polyfit(x[count:] / 1024, y[count:], 1, w=1 / y[count:]))
        if slope <= 0:
            continue  # more tokens are no less work
        level = float(np.median(y[:count])) if count else None
        knee = 1024 * (level - intercept) / slope if level is not None else None
        one = HostOrGpu(level, count, intercept, slope, knee, residual_percent=0)
        errors = np.array([one.at(tokens) for tokens in x]) / y - 1
        residual = float(np.median(np.abs(errors)) * 100)
        found.append((float((errors**2).sum()), replace(one, residual_percent=residual)))
    if not found:
        return None
    bound = _CLEARLY * min(error for error, _ in found) + 1e-12
    error, best = next((error, one) for error, one in found if error <= bound)
    flat_error = float(((np.median(y) / y - 1) ** 2).sum())
    return best if error < (1 - _EXPLAINED) * flat_error else None
