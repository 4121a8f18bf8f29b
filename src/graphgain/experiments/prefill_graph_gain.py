"""`prefill_graph_gain`: short prefills under Python, C++ and a graph, with identical kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphgain.experiments import Context
from graphgain.experiments.forward_runs import (
    Case,
    Raw,
    by_forward,
    identical,
    issue,
    parameters,
    run_processes,
    saved,
    timed,
    warnings,
)

HOSTS = ("eager", "cpp_eager", "graph")
_NOTES = [
    "Hosts took turns round by round; before each run the forward's state was put back and the GPU "
    "was idle.",
    "host_issue_ms is the C++ loop's, issued in parts of 512 launches with an empty queue before "
    "each; eager_issue_ms and cpp_issue_ms are those of the timed runs, which a full queue can "
    "hold back.",
    "Cached tokens are noise: what is computed does not depend on their values.",
]


def measure(context: Context) -> dict[str, Any]:
    """Run the models in independent processes; the parts of the document."""
    wanted = context.parameters
    runs = run_processes(context, cases(wanted), HOSTS, "prefill_graph_gain")
    return {"parameters": parameters(wanted, wanted["models"][0]), **body(runs)}


def cases(wanted: Mapping[str, Any]) -> dict[str, list[Case]]:
    """By model: every length with an empty cache, and one length after filled ones.

    Models after the first one have their own, shorter lists: unfused, they take ten times as long.
    """
    length = wanted["tokens_after_cached"]
    found: dict[str, list[Case]] = {}
    for model in wanted["models"]:
        which = "_beside" if found else ""
        empty = [(tokens, 0) for tokens in wanted[f"tokens{which}"]]
        filled = [(length, cached) for cached in wanted[f"cached_tokens{which}"]]
        found[model] = list(dict.fromkeys(empty + filled))
    return found


def body(runs: Sequence[Raw]) -> dict[str, Any]:
    """The document's own prefills, which are the first model's, and the others beside them."""
    found = by_forward(runs)
    rows: dict[str, list[dict[str, Any]]] = {}
    for (model, tokens, cached), forwards in found.items():
        rows.setdefault(model, []).append(_row(forwards, tokens, cached))
    (_, own), *others = rows.items()
    return {
        "calls_per_forward": own[0]["launches"],
        "rows": own,
        "beside": [{"engine": model, "rows": prefills} for model, prefills in others],
        "notes": [*_NOTES, *warnings(found)],
    }


def _row(forwards: Sequence[Raw], tokens: int, cached: int) -> dict[str, Any]:
    return {
        "tokens": tokens,
        "cached_tokens": cached,
        "graph_ms": timed(forwards, "wall_ms", "graph"),
        "eager_ms": timed(forwards, "wall_ms", "eager"),
        "cpp_eager_ms": timed(forwards, "wall_ms", "cpp_eager"),
        "host_issue_ms": issue(forwards),
        "eager_issue_ms": timed(forwards, "issue_ms", "eager"),
        "cpp_issue_ms": timed(forwards, "issue_ms", "cpp_eager"),
        "saved_ms": saved(forwards, "cpp_eager", 1),
        "python_saved_ms": saved(forwards, "eager", 1),
        "launches": forwards[0]["launches"],
        "pdl_launches": forwards[0]["pdl_launches"],
        "identical_outputs": identical(forwards),
    }
