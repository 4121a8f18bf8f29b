"""Expected TTFT: agrees with the sum over requests, and leaves out what it does not know."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import bar_widths, clipped_texts, colliding_texts
from graphgain.expected import expected_ttft, ttft_at
from graphgain.figures import agent_ttft, cache_curve, prefill_tokens
from graphgain.figures.style import theme
from graphgain.figures.themes import THEMES
from graphgain.results.serving import AgentWorkload, Ttft
from graphgain.results.store import read_document
from graphgain.traces.corpus import Plan, match_corpus
from graphgain.traces.counting import count
from graphgain.traces.rules import DEFAULT
from graphgain.traces.sources import SourceFile
from notebook_source import ROOT, run_cells

RESULTS = ROOT / "results"
LENGTHS, TIMES = [128.0, 256.0, 1024.0], [10.0, 12.0, 40.0]


def test_ttft_is_interpolated_held_below_and_unknown_beyond() -> None:
    assert ttft_at(LENGTHS, TIMES, 192) == 11
    assert ttft_at(LENGTHS, TIMES, 1) == ttft_at(LENGTHS, TIMES, 128) == 10
    assert ttft_at(LENGTHS, TIMES, 1024) == 40
    with pytest.raises(ValueError, match="1025 tokens lie beyond the curve, which ends at 1024"):
        ttft_at(LENGTHS, TIMES, 1025)


@given(rows=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 9)), min_size=1, max_size=20))
def test_expected_ttft_is_the_mean_over_the_requests_within_reach(
    rows: list[tuple[int, int]],
) -> None:
    tokens, requests = zip(*rows, strict=True)
    found = expected_ttft(LENGTHS, TIMES, tokens, requests)
    each = [length for length, number in rows for _ in range(number)]
    known = [ttft_at(LENGTHS, TIMES, length) for length in each if length <= 1024]
    if not known:
        assert found is None
        return
    assert found is not None
    assert found.mean_ms == pytest.approx(np.mean(known))
    assert found.reached_percent == pytest.approx(100 * len(known) / len(each))


def test_no_request_has_no_expected_ttft() -> None:
    assert expected_ttft(LENGTHS, TIMES, [], []) is None


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("agent_ttft")
    return run_cells("agent_ttft", ["gb300-published", "rtx5070ti-published"], RESULTS, out)


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("agent_workload")
    return run_cells("agent_workload", ["gb300-published", "h200"], RESULTS, out)


def test_the_notebooks_means_are_those_of_the_requests_themselves(notebook: dict[str, Any]) -> None:
    source = ROOT / "data" / "traces" / "weka_subagents.jsonl.xz"
    counted = count(match_corpus([SourceFile(source, "s")], Plan()), DEFAULT)
    sweep = read_document(RESULTS / "gb300-published" / "ttft.json")
    assert isinstance(sweep, Ttft)
    waits = notebook["waits"]
    own = waits[waits["trace_slug"] == "trace-weka-subagents"].set_index(["engine", "mode"])
    assert len(own) == 5
    for (engine, mode), row in own.iterrows():
        curve = sorted(
            (one.isl_tokens, one.ttft_ms.value)
            for one in sweep.rows
            if (one.engine, one.mode) == (engine, mode)
        )
        lengths, times = map(list, zip(*curve, strict=True))
        tokens = counted.prefill_tokens
        tokens = tokens[tokens <= lengths[-1]]
        exact = np.mean(np.interp(tokens, lengths, times))
        # The document has bins; what they blur is far below the precision that is shown.
        assert row["mean_ms"] == pytest.approx(exact, rel=0.005)
        assert row["reached_percent"] == pytest.approx(100 * len(tokens) / 3775)


def test_of_a_summary_there_is_a_median_and_no_mean(notebook: dict[str, Any]) -> None:
    waits = notebook["waits"]
    own = waits[waits["trace_slug"] == "gb300-published"]
    assert own["mean_ms"].isna().all()
    kern = own[own["engine"] == "kern"].iloc[0]
    assert kern["p50_tokens"] == 1600
    assert 60 < kern["p50_ms"] < 70


def test_bars_are_the_means(notebook: dict[str, Any]) -> None:
    with theme("light"):
        figure = agent_ttft.draw(notebook["data"], notebook["shown"])
    means = notebook["waits"]["mean_ms"].dropna().tolist()
    assert bar_widths(figure) == pytest.approx(means)


@pytest.mark.parametrize("name", THEMES)
def test_texts_of_the_figures_keep_clear(
    name: str, notebook: dict[str, Any], workload: dict[str, Any]
) -> None:
    with theme(name):
        for figure in (
            agent_ttft.draw(notebook["data"], notebook["shown"]),
            cache_curve.draw(workload["sizes"], workload["shown"]),
            prefill_tokens.draw(
                workload["hits"], workload["labelled"], workload["shown"], workload["curves"]
            ),
        ):
            assert colliding_texts(figure) == []
            assert clipped_texts(figure) == []


def test_curves_are_the_distributions(workload: dict[str, Any]) -> None:
    with theme("light"):
        axes = prefill_tokens.draw(
            workload["hits"], workload["labelled"], workload["shown"], workload["curves"]
        ).axes[1]
    document = read_document(RESULTS / "trace-weka-subagents" / "agent_workload.json")
    assert isinstance(document, AgentWorkload) and document.distribution is not None
    line = next(one for one in axes.lines if str(one.get_label()).startswith("weka, with sub"))
    assert list(line.get_xdata()) == [one.at_most_tokens for one in document.distribution]
    assert list(line.get_ydata())[-1] == pytest.approx(100)
    at = dict(zip(*line.get_data(), strict=True))
    shares = {one.tokens: one.percent for one in document.shares}
    assert {bound: at[bound] for bound in shares} == pytest.approx(shares, abs=1e-3)


def test_without_a_sweep_there_is_no_wait(tmp_path: Path) -> None:
    found = run_cells("agent_ttft", ["rtx5070ti-published"], RESULTS, tmp_path)
    assert found["waits"].empty
    assert isinstance(found["data"], pd.DataFrame)
    text = (tmp_path / "tables" / "agent_ttft.md").read_text(encoding="utf-8")
    assert "not measured" in text
