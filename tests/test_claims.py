"""The claims: their verdicts on the published data, and that other data would change them."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from graphgain.claims import CLAIMS, Evidence, Finding, half_digit, same, statements_of, verdict
from graphgain.results import MODELS
from graphgain.results.article import Statement
from graphgain.results.document import Document
from graphgain.results.serving import TtftBreakdown
from graphgain.results.threads import Gil
from notebook_source import ROOT

FOLDER = ROOT / "results" / "gb300-published"


def raw(experiment: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{experiment}.json").read_text(encoding="utf-8"))


def published(**changed: dict[str, Any]) -> Evidence:
    """All published documents, some of them replaced."""
    documents: list[Document] = [
        MODELS[name].model_validate(changed.get(name) or raw(name))
        for name in MODELS
        if (FOLDER / f"{name}.json").exists()
    ]
    return Evidence(tuple(documents))


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {claim.name: verdict(claim.recompute(evidence)) for claim in CLAIMS}


def test_claims_name_statements_that_exist() -> None:
    known = {row["name"] for row in raw("statements")["rows"]}
    assert statements_of(CLAIMS) <= known
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def test_contradictions_of_the_article_are_found() -> None:
    found = verdicts(published())
    differing = {name for name, value in found.items() if value == "differs"}
    assert differing == {
        "gemm_one_kernel",  # "about 4" against 4.50 to 4.66
        "interval_summary",  # 74 against 77.5 to 83.5
        "interval_text",  # 70
        "interval_kern",  # 3.4 and 3.3
        "tracing",  # 142.0 and 101.94
    }


def test_what_was_not_published_is_not_checkable() -> None:
    found = verdicts(published())
    assert {name for name, value in found.items() if value == "not checkable"} == {
        "cache_hits",
        "prefill_median",
        "decode_launches",
        "ffi_tensors",
        "gemm_pdl",
        "gil_cut_in",
    }


def test_other_step_times_would_refute_the_saving() -> None:
    document = raw("decode_graph_gain")
    document["rows"][0]["step_ms"]["median"] = 9.85
    assert verdicts(published(decode_graph_gain=document))["graph_saves"] == "differs"


def test_a_slow_host_would_refute_that_it_is_ahead() -> None:
    document = raw("decode_graph_gain")
    document["host_issue_ms"]["median"] = 12.0
    found = verdicts(published(decode_graph_gain=document))
    assert found["host_ahead_decode"] == found["issue_per_kernel"] == "differs"


def test_one_lost_length_would_refute_that_kern_is_first() -> None:
    document = raw("ttft")
    row = next(r for r in document["rows"] if r["engine"] == "kern" and r["isl_tokens"] == 1024)
    row["ttft_ms"]["median"] = 62.0
    claim = next(claim for claim in CLAIMS if claim.name == "kern_first")
    found = claim.recompute(published(ttft=document))
    assert found == Finding("first at 31 of 32 lengths", False)


def test_a_wrong_column_would_be_found() -> None:
    document = raw("prefill_graph_gain")
    document["rows"][3]["per_call_us_printed"] = 0.7
    assert verdicts(published(prefill_graph_gain=document))["prefill_columns"] == "differs"


def h200(experiment: str) -> dict[str, Any]:
    path = FOLDER.parent / "h200" / f"{experiment}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_machine_whose_loop_is_in_cpp_is_judged_by_it_and_not_by_python() -> None:
    changed = {name: h200(name) for name in ("decode_graph_gain", "prefill_graph_gain")}
    before = {c.name: c.recompute(published(**changed)) for c in CLAIMS}
    for row in changed["prefill_graph_gain"]["rows"]:
        row["eager_ms"]["median"] *= 10
    for row in changed["decode_graph_gain"]["rows"]:
        if row["host"] == "eager":
            row["step_ms"]["median"] *= 10
    assert {c.name: c.recompute(published(**changed)) for c in CLAIMS} == before


def finding_elsewhere(name: str, document: dict[str, Any] | Document) -> Finding | None:
    """What the test of a claim on another machine finds in a document of that machine."""
    claim = next(claim for claim in CLAIMS if claim.name == name)
    assert claim.elsewhere
    if not isinstance(document, Document):
        document = MODELS[document["experiment"]].model_validate(document)
    return claim.elsewhere(published(), Evidence((document,)))


def test_the_h200_bears_out_all_but_one_of_what_can_be_tested_there() -> None:
    found = {
        name: verdict(finding_elsewhere(name, h200(experiment)))
        for name, experiment in {
            "launch_floor": "launch_floor",
            "gemm_pdl": "gemm_host_cost",
            "handoff_each": "handoff",
            "queue_depth": "launch_floor",
        }.items()
    }
    assert {name for name, value in found.items() if value == "differs"} == {"gemm_pdl"}
    assert {name for name, value in found.items() if value == "agrees"} == found.keys() - {
        "gemm_pdl"
    }
    assert {claim.name for claim in CLAIMS if claim.elsewhere} == {*found, "gil_cut_in"}


def test_pdl_on_every_kernel_would_bear_out_cublas() -> None:
    document = h200("gemm_host_cost")
    for row in document["rows"]:
        for kernel in row["kernels"]:
            kernel["pdl"] = True
    assert finding_elsewhere("gemm_pdl", document) == Finding(
        "7 of 7 calls' first kernels, 2 of 2 others", True
    )


def test_a_shallow_queue_would_refute_the_ceiling() -> None:
    document = h200("launch_floor")
    document["outstanding_launches"] |= {"median": 512.0, "low": 512.0, "high": 512.0}
    assert verdict(finding_elsewhere("queue_depth", document)) == "differs"


def test_a_graph_that_loses_would_refute_the_handover() -> None:
    document = h200("handoff")
    row = next(row for row in document["rows"] if row["kernel_us"] > 0)
    row["saved_us"] |= {"median": -0.2, "low": -0.3, "high": -0.1}
    assert verdict(finding_elsewhere("handoff_each", document)) == "differs"


@pytest.mark.parametrize(
    ("interrupted_percent", "mode_us", "agrees"),
    [(91.8, 5070.0, True), (91.8, 4100.0, False), (12.0, 5070.0, False), (0.0, None, False)],
)
def test_a_thread_that_is_cut_in_on_waits_a_switch_interval(
    interrupted_percent: float, mode_us: float | None, agrees: bool
) -> None:
    def row(background: str, threads: int, gil: str, percent: float) -> SimpleNamespace:
        return SimpleNamespace(
            background=background,
            background_threads=threads,
            gil=gil,
            share_interrupted_percent=percent,
            interruption_mode_us=mode_us,
        )

    harmless = [row("poll", 1, "released", 0.0), row("compute", 1, "kept", 0.0)]
    counted = row("compute", 1, "released", interrupted_percent)
    parameters = SimpleNamespace(switch_interval_ms=5.0)

    def found(*rows: SimpleNamespace) -> Finding | None:
        document = Gil.model_construct(parameters=parameters, rows=list(rows))
        return finding_elsewhere("gil_cut_in", document)

    finding = found(*harmless, counted)
    assert finding is not None and finding.agrees is agrees
    assert f"{interrupted_percent:.0f}% of the intervals" in finding.text
    assert found(*harmless) is None


def test_claims_about_sglang_are_not_judged_by_another_engines_composition() -> None:
    document = h200("ttft_breakdown")
    other = document | {"parameters": document["parameters"] | {"engine": "vllm"}}
    for name in ("busy_below", "interval_summary", "interval_text"):
        claim = next(claim for claim in CLAIMS if claim.name == name)
        for content, is_found in ((document, True), (other, False)):
            evidence = Evidence((TtftBreakdown.model_validate(content),))
            assert (claim.recompute(evidence) is not None) == is_found


def test_a_slow_launch_would_refute_the_floor() -> None:
    document = h200("launch_floor")
    document["rows"][0]["host_us"] |= {"median": 11.0, "low": 11.0, "high": 11.0}
    assert verdict(finding_elsewhere("launch_floor", document)) == "differs"


def test_a_machine_without_documents_is_not_judged() -> None:
    assert all(
        claim.elsewhere is None or claim.elsewhere(published(), Evidence(())) is None
        for claim in CLAIMS
    )


def test_a_machine_without_documents_has_no_findings() -> None:
    assert all(claim.recompute(Evidence(())) is None for claim in CLAIMS)


@pytest.mark.parametrize(
    ("printed", "half"), [("2.5", 0.05), ("74", 0.5), ("1.6k", 50), ("4k", 500), ("0.003", 0.0005)]
)
def test_half_of_the_last_digit(printed: str, half: float) -> None:
    assert half_digit(printed) == pytest.approx(half)


@pytest.mark.parametrize(
    ("low", "high", "fits"), [(19, 63, True), (18.6, 63.4, True), (18, 63, False), (19, 70, False)]
)
def test_a_printed_range_has_to_hold_both_ends(low: float, high: float, fits: bool) -> None:
    statement = Statement.model_validate(
        next(row for row in raw("statements")["rows"] if row["name"] == "tldr_gpu_busy_percent")
    )
    assert same(statement, low, high) is fits
