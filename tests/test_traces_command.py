"""The command: what it prints and writes, the kept result, and the documents in the repository."""

import csv
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgain.__main__ import main
from graphgain.freshness import check_document
from graphgain.results.serving import AgentWorkload
from graphgain.results.store import list_traces, load_traces, read_document
from graphgain.traces import corpus as corpus_module
from graphgain.traces import kept
from graphgain.traces.corpus import Plan, match_corpus
from graphgain.traces.counting import CacheCurve, Counted, count
from graphgain.traces.rules import DEFAULT, EXPLAINED, Rules
from graphgain.traces.sources import SourceFile
from graphgain.traces.statistics import cache_points, histogram, share
from graphgain.traces.workload import sweep

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data" / "traces"
TINY = DATA / "weka_tiny.jsonl.xz"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results are kept in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphgain" / "traces"


def trace(*arguments: object) -> int:
    return main(["trace", *map(str, arguments)])


def counted_tiny(rules: Rules = DEFAULT) -> Counted:
    corpus = match_corpus([SourceFile(TINY, TINY.name)], Plan(modes=(rules.subagents,)))
    return count(corpus, rules)


# Printing


def test_the_summary_says_numbers_rules_and_clock(capsys: pytest.CaptureFixture[str]) -> None:
    assert trace(TINY) == 0
    printed = capsys.readouterr().out
    assert "3 conversations, 88 requests (56 of subagents), weka, blocks of 64 tokens" in printed
    assert "seen conversation, subagents shared, outputs uncached, last_block hashed" in printed
    assert "subagents' clock: relative, found" in printed
    assert "cached 4,293,440 (88.26 %), to prefill 570,828" in printed
    assert "4k 63.6 %" in printed


def test_every_rule_is_an_option_that_changes_the_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = {}
    for rule, value in [
        ("subagents", "isolated"),
        ("outputs", "cached"),
        ("last-block", "dropped"),
        ("first-requests", "out"),
    ]:
        assert trace(TINY, f"--{rule}", value) == 0
        printed[rule] = capsys.readouterr().out.splitlines()[2]
    assert "to prefill 612,428" in printed["subagents"]
    assert len(set(printed.values())) == 4


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SystemExit):
        trace(TINY, "--subagents", "none")


def test_help_explains_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        trace("--help")
    said = " ".join(capsys.readouterr().out.split())
    for values in EXPLAINED.values():
        for value, text in values.items():
            assert f"{value}: {' '.join(text.split())}"[:40] in said
    assert "(default: shared)" in said


def test_an_error_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(lzma.decompress(TINY.read_bytes())[:-50])
    out = tmp_path / "trace-bad"
    rows = tmp_path / "rows.csv"
    arguments = (bad, "--out", out, "--title", "t", "--url", "u", "--requests", rows)
    assert trace(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"graphgain: error: {bad}, line 3: not valid JSON")
    assert error.count("\n") == 1
    assert not out.exists() and not rows.exists()


def test_what_was_skipped_is_printed_and_kept_with_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(lzma.decompress(TINY.read_bytes()) + b"{}\n")
    out = tmp_path / "trace-bad"
    assert trace(bad, "--skip-bad", "--out", out, "--title", "t", "--url", "u") == 0
    assert "skipped: " in capsys.readouterr().out
    document = read_document(out / "agent_workload.json")
    assert isinstance(document, AgentWorkload) and document.skipped is not None
    assert len(document.skipped) == 1 and "line 4" in document.skipped[0]


def test_files_that_are_no_data_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.jsonl").write_bytes(lzma.decompress(TINY.read_bytes()))
    (tmp_path / "README.md").write_text("hello")
    assert trace(tmp_path) == 0
    assert f"ignored, no data by its name: {tmp_path / 'README.md'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--out", "elsewhere", "--title", "t", "--url", "u"), "a folder named trace-NAME"),
        (("--out", "trace-x", "--url", "u"), "and a --title"),
        (("--out", "trace-x", "--title", "t"), "--out needs --url"),
        (("--jobs", "0"), "at least one process"),
        (("--points", "0"), "at least 1"),
        (("--seen", "global", "--subagents", "isolated"), "only one seen-set"),
        (("--seen", "global"), "its hash ids are local"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trace(TINY, *arguments) == 1
    assert reason in capsys.readouterr().err


# The kept result


def test_a_kept_result_is_used_until_something_changes(
    tmp_path: Path,
    own_cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(lzma.decompress(TINY.read_bytes()))
    assert trace(path) == 0
    first = capsys.readouterr().out
    assert len(list(own_cache.glob("*.npz"))) == 1

    def refuse(*_: Any) -> Any:
        raise AssertionError("counted again")

    with monkeypatch.context() as patch:
        patch.setattr(corpus_module, "match_corpus", refuse)
        assert trace(path) == 0
        assert capsys.readouterr().out == first
        for changed in (
            ["--no-cache"],
            ["--subagents", "snapshot"],
            ["--subagent-clock", "absolute"],
        ):
            with pytest.raises(AssertionError, match="counted again"):
                trace(path, *changed)
        path.write_bytes(path.read_bytes() + b"\n")
        with pytest.raises(AssertionError, match="counted again"):
            trace(path)


def test_a_broken_kept_result_is_counted_again(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trace(TINY) == 0
    first = capsys.readouterr().out
    (file,) = own_cache.glob("*.npz")
    whole = file.read_bytes()
    for broken in (b"", b"rubbish", whole[: len(whole) // 2]):
        file.write_bytes(broken)
        assert trace(TINY) == 0
        assert capsys.readouterr().out == first
    assert file.read_bytes() == whole


def test_a_kept_result_is_the_result(tmp_path: Path) -> None:
    corpus = match_corpus([SourceFile(TINY, "t")], Plan(modes=("shared", "snapshot", "isolated")))
    kept.save(corpus, tmp_path / "one.npz")
    again = kept.load(tmp_path / "one.npz")
    assert again is not None
    for name, value in vars(corpus).items():
        loaded = getattr(again, name)
        if name == "lead":
            assert {mode: own.tolist() for mode, own in loaded.items()} == {
                mode: own.tolist() for mode, own in value.items()
            }
        else:
            assert (
                np.array_equal(loaded, value) if isinstance(value, np.ndarray) else loaded == value
            )


# Writing


def test_requests_are_written_one_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert trace(TINY, "--requests", path) == 0
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 88
    assert sum(int(row["prefill_tokens"]) for row in rows) == 570_828
    assert sum(bool(row["agent"]) for row in rows) == 56
    for row in rows:
        cached, prefill = int(row["cached_tokens"]), int(row["prefill_tokens"])
        assert cached + prefill == int(row["input_tokens"])


def test_the_workload_stands_for_all_requests(tmp_path: Path) -> None:
    path = tmp_path / "workload.json"
    assert trace(TINY, "--to-workload", path, "--points", "12", "--title", "tiny") == 0
    workload = json.loads(path.read_text(encoding="utf-8"))
    assert workload["dataset"] == "tiny" and workload["requests"] == 88
    assert workload["rules"]["subagents"] == "shared"
    points = workload["points"]
    assert len(points) == 12
    assert sum(point["weight"] for point in points) == pytest.approx(1)
    total = 88 * sum(point["weight"] * point["new_tokens"] for point in points)
    assert total == pytest.approx(workload["prefill_tokens"], abs=88 / 2)


@settings(deadline=None)
@given(
    tokens=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=60
    ),
    points=st.integers(1, 40),
)
def test_a_sweep_keeps_the_sums(tokens: list[tuple[int, int]], points: int) -> None:
    new, cached = np.array(tokens, np.int64).T
    counted = Counted(np.arange(len(tokens)), new + cached, cached)
    found = sweep(counted, points)
    assert 1 <= len(found) <= points
    assert len(found) == min(points, len(set(tokens)))
    assert sum(point.weight for point in found) == pytest.approx(1)
    for name, own in (("new_tokens", new), ("cached_tokens", cached)):
        mean = sum(point.weight * getattr(point, name) for point in found)
        assert mean == pytest.approx(own.mean(), abs=0.5)


# Statistics


@settings(deadline=None)
@given(tokens=st.lists(st.integers(0, 10**7), min_size=1, max_size=80))
def test_a_histogram_loses_nothing(tokens: list[int]) -> None:
    bins = histogram(np.array(tokens, np.int64))
    assert sum(one.requests for one in bins) == len(tokens)
    assert sum(one.prefill_tokens for one in bins) == sum(tokens)
    for one in bins:
        up_to = sum(other.requests for other in bins if other.at_most_tokens <= one.at_most_tokens)
        assert up_to == sum(token <= one.at_most_tokens for token in tokens)


def test_a_share_is_of_requests_and_of_tokens() -> None:
    assert share(np.array([1, 2, 3, 94]), 3) == (75.0, 6.0)
    assert share(np.array([0, 0]), 10) == (100.0, 100.0)


def test_cache_sizes_go_on_until_all_is_held() -> None:
    curve = CacheCurve(np.array([64, 5000]), [10.0, 90.0])
    points = cache_points(curve)
    assert points[0] == (1024, 10.0)
    assert points[-1] == (5793, 90.0)
    assert [curve.at(size) for size in (0, 63, 64, 4999, 5000)] == [0, 0, 10, 10, 90]
    assert cache_points(CacheCurve(np.array([], np.int64), [])) == []


# The documents in the repository


KEPT = {
    "trace-weka-subagents": "weka_subagents",
    "trace-weka-systematic": "weka_systematic",
    "trace-mooncake-conversation": "mooncake_conversation",
}


def test_the_traces_of_the_repository_are_listed() -> None:
    assert list_traces(ROOT / "results") == sorted(KEPT)
    hits = [one.cache_hit_percent for one in load_traces(ROOT / "results").values()]
    assert hits == sorted(hits, reverse=True)


@pytest.mark.parametrize("slug", KEPT)
def test_a_kept_document_is_what_counting_gives_now(slug: str, tmp_path: Path) -> None:
    path = ROOT / "results" / slug / "agent_workload.json"
    old = json.loads(path.read_text(encoding="utf-8"))
    parameters = old["parameters"]
    arguments = ["--title", parameters["dataset"], "--url", parameters["dataset_url"]]
    arguments += ["--licence", parameters["licence"]]
    for note in old["notes"]:
        arguments += ["--note", note]
    source = DATA / f"{KEPT[slug]}.jsonl.xz"
    assert trace(source, "--out", tmp_path / slug, *arguments) == 0
    new = json.loads((tmp_path / slug / "agent_workload.json").read_text(encoding="utf-8"))
    del old["provenance"], new["provenance"]
    assert new == old


def test_a_trace_is_stale_when_the_counting_code_changed(tmp_path: Path) -> None:
    path = tmp_path / "trace-tiny" / "agent_workload.json"
    assert trace(TINY, "--out", path.parent, "--title", "t", "--url", "u") == 0
    assert check_document(path).state == "fresh"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["provenance"]["source_hash"] = "0" * 64
    path.write_text(json.dumps(document), encoding="utf-8")
    assert check_document(path).state == "stale"
    assert check_document(path).changed == ("source",)
    del document["provenance"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert check_document(path).state == "broken"


def test_status_lists_the_traces_with_their_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--results", str(ROOT / "results")]) == 0
    printed = capsys.readouterr().out
    for slug in KEPT:
        assert f"{slug}\n  agent_workload  fresh\n" in f"{printed}\n"


def test_variants_are_the_counts_under_their_rules() -> None:
    path = ROOT / "results" / "trace-weka-subagents" / "agent_workload.json"
    document = read_document(path)
    assert isinstance(document, AgentWorkload) and document.variants is not None
    found = {
        tuple(variant.rules.model_dump().values()): variant.cache_hit_percent
        for variant in document.variants
    }
    source = DATA / "weka_subagents.jsonl.xz"
    corpus = match_corpus([SourceFile(source, "s")], Plan(modes=("shared", "snapshot", "isolated")))
    assert len(found) == 8
    for values, percent in found.items():
        rules = Rules(*values)  # type: ignore[arg-type]
        assert count(corpus, rules).hit_percent == pytest.approx(percent, abs=1e-4)
