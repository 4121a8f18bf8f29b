"""What was measured of engines, in a few lines for a terminal."""

from collections.abc import Iterator

from graphgain import text
from graphgain.results.serving import BreakdownRow, Ttft, TtftBreakdown
from graphgain.serving_fit import Part, captured_tokens, parted

_SHOWN_TOKENS = (1024, 4096)
_WELL_FITTED_PERCENT = 3.0


def ttft_lines(document: Ttft) -> Iterator[str]:
    """For each mode its TTFT at some lengths, and what sets it."""
    settings = {(run.engine, run.mode): run.settings for run in document.engines or []}
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for row in document.rows:
        curves.setdefault((row.engine, row.mode), {})[row.isl_tokens] = row.ttft_ms.value
    for (engine, mode), curve in curves.items():
        lengths = sorted({min(curve), *(set(_SHOWN_TOKENS) & set(curve)), max(curve)})
        times = ", ".join(f"{curve[isl]:.1f} ms at {text.number(isl)}" for isl in lengths)
        yield f"{engine}:{mode}: {times} tokens"
        limit = captured_tokens(settings.get((engine, mode), {}))
        for part in parted(list(curve), list(curve.values()), limit):
            yield from _part_lines(part)


def _part_lines(part: Part) -> Iterator[str]:
    which = text.span(part.lengths[0], part.lengths[-1])
    off = part.residual_percent or 0.0
    doubt = f" (off by {off:.1f}%, median)" if off > _WELL_FITTED_PERCENT else ""
    level = part.level_ms
    if part.which == "captured":
        yield f"  {which} tokens, captured: {level:.1f} ms{doubt}"
    elif part.flat:
        yield f"  {which} tokens: {level:.1f} ms, flat over the whole range{doubt}"
    elif part.model is not None:
        line = f"{part.model.slope_ms_per_1k:.1f} ms for every 1,024 tokens, the GPU's"
        knee = part.model.knee_tokens
        if level is not None and knee is not None:
            upto = text.number(round(knee, -1))
            line = f"{level:.1f} ms up to about {upto}, the host's; then {line}"
        yield f"  {which} tokens: {line}{doubt}"


def breakdown_lines(document: TtftBreakdown) -> Iterator[str]:
    """For each mode and length what its traced requests consist of."""
    own = document.parameters
    yield from _rows(own.engine, own.mode, document.rows)
    for other in document.beside or []:
        yield from _rows(other.engine, other.mode, other.rows)


def _rows(engine: str, mode: str, rows: list[BreakdownRow]) -> Iterator[str]:
    yield f"{engine}:{mode}, traced:"
    for row in rows:
        graphs = row.graph_launches_per_request
        parts = [
            f"GPU busy {row.gpu_busy_ms.value:.1f} of {row.ttft_traced_ms.value:.1f} ms",
            f"{row.launches_per_request} launches" + (f", {graphs} of graphs" if graphs else ""),
        ]
        if row.waiting_for_host_ms and row.between_kernels_ms:
            parts.append(
                f"idle for the host {row.waiting_for_host_ms.value:.1f} ms, between kernels "
                f"{row.between_kernels_ms.value:.1f} ms"
            )
        yield f"  {text.number(row.isl_tokens)} tokens: {'; '.join(parts)}"
