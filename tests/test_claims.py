"""The claims: their verdicts on the published data, and that other data would change them."""

import json
from typing import Any

import pytest

from graphgain.claims import CLAIMS, Evidence, Finding, half_digit, same, statements_of, verdict
from graphgain.results import MODELS
from graphgain.results.article import Statement
from graphgain.results.document import Document
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
