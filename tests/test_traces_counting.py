"""Counting agrees with sets and lists request by request, and with the published integers."""

import hashlib
import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgain.errors import TraceError
from graphgain.traces.corpus import Corpus, Plan, match_corpus
from graphgain.traces.counting import cache_curve, count
from graphgain.traces.rules import EXPLAINED, Rules
from graphgain.traces.sources import SourceFile
from trace_reference import cached_tokens, leads, lru_leads, read_lines, replies, weka_turns
from trace_strategies import BLOCK, traces

DATA = Path(__file__).parents[1] / "data" / "traces"
MODES = ("shared", "snapshot", "isolated")


def matched(path: Path, **plan: Any) -> Corpus:
    return match_corpus([SourceFile(path, path.name)], Plan(**{"modes": MODES, **plan}))


@cache
def sample(name: str) -> Corpus:
    return matched(DATA / f"{name}.jsonl.xz")


@cache
def sample_lines(name: str) -> list[dict[str, Any]]:
    return read_lines(lzma.decompress((DATA / f"{name}.jsonl.xz").read_bytes()).decode())


def match_traces(folder: Path, found: list[dict[str, Any]], **plan: Any) -> Corpus:
    path = folder / "traces.jsonl"
    path.write_text("".join(json.dumps(trace) + "\n" for trace in found), encoding="utf-8")
    return matched(path, **plan)


def in_corpus_order(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests as a corpus has them: the parent's, then each subagent's."""
    inner = [entry["requests"] for entry in trace["requests"] if entry["type"] == "subagent"]
    own = [entry for entry in trace["requests"] if entry["type"] != "subagent"]
    return [request for part in [own, *inner] for request in part]


def reference(trace: dict[str, Any], mode: str, relative: bool) -> list[int]:
    """Leads by the plain reference, in the order of a corpus."""
    turns = weka_turns(trace, mode, relative)
    by_request = {
        id(request): lead for (_, request), lead in zip(turns, leads(turns, mode), strict=True)
    }
    return [by_request[id(request)] for request in in_corpus_order(trace)]


# The kept samples


def blob_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_every_sample_is_byte_for_byte_what_its_source_has() -> None:
    lines = (DATA / "MANIFEST.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) == 117
    texts: dict[str, list[bytes]] = {}
    for row in lines:
        name, place, _, expected, *_ = row.split(",")
        if name not in texts:
            texts[name] = lzma.decompress((DATA / name).read_bytes()).split(b"\n")
        whole = place.startswith("1-")
        content = b"\n".join(texts[name]) if whole else texts[name][int(place) - 1]
        assert blob_hash(content) == expected, (name, place)


EXACT = [
    ("weka_tiny", "shared", 67_085, 570_828, 2_826.5, 56),
    ("weka_tiny", "snapshot", 66_435, 612_428, 3_263, 53),
    ("weka_tiny", "isolated", 66_435, 612_428, 3_263, 53),
    ("weka_subagents", "shared", 5_210_137, 16_932_924, 1_019, 3_131),
    ("weka_subagents", "snapshot", 5_202_989, 17_390_396, 1_062, 3_089),
    ("weka_subagents", "isolated", 5_202_989, 17_390_396, 1_062, 3_089),
    ("weka_systematic", "shared", 10_732_741, 25_674_975, 716, 5_317),
    ("weka_systematic", "isolated", 10_732_741, 25_674_975, 716, 5_317),
]


@pytest.mark.parametrize(("name", "mode", "blocks", "prefill", "median", "short"), EXACT)
def test_samples_give_the_known_integers(
    name: str, mode: Any, blocks: int, prefill: int, median: float, short: int
) -> None:
    counted = count(sample(name), Rules(subagents=mode))
    assert int(sample(name).lead[mode].sum()) == blocks
    assert int(counted.cached_tokens.sum()) == 64 * blocks
    assert int(counted.prefill_tokens.sum()) == prefill
    assert float(np.median(counted.prefill_tokens)) == median
    assert int((counted.prefill_tokens <= 4096).sum()) == short


@pytest.mark.parametrize(("last", "cached"), [("hashed", 54_098_411), ("full", 54_063_104)])
def test_mooncake_gives_the_known_integers(last: Any, cached: int) -> None:
    counted = count(sample("mooncake_conversation"), Rules(last_block=last))
    assert int(counted.cached_tokens.sum()) == cached
    assert int(counted.input_tokens.sum()) == 144_793_823
    assert float(np.median(counted.prefill_tokens)) == 2_470
    assert int((counted.prefill_tokens <= 4096).sum()) == 6_900


@pytest.mark.parametrize("name", ["weka_tiny", "weka_subagents"])
@pytest.mark.parametrize("mode", MODES)
def test_samples_agree_with_sets_request_by_request(name: str, mode: Any) -> None:
    expected = [
        lead for trace in sample_lines(name) for lead in reference(trace, mode, relative=True)
    ]
    assert sample(name).lead[mode].tolist() == expected
    assert sample(name).clock == "relative, found"


def test_mooncake_agrees_with_a_set_request_by_request() -> None:
    turns = [(0, row) for row in sample_lines("mooncake_conversation")]
    assert sample("mooncake_conversation").lead["shared"].tolist() == leads(turns, "shared")


@pytest.mark.parametrize("blocks", [1, 300, 1_000, 4_000])
def test_the_curve_of_a_sample_is_that_of_a_simulated_cache(blocks: int) -> None:
    hits = 0
    for trace in sample_lines("weka_tiny"):
        turns = weka_turns(trace, "shared", relative=True)
        hits += sum(lru_leads(turns, blocks))
    curve = cache_curve(sample("weka_tiny"), Rules())
    total = int(sample("weka_tiny").input_tokens.sum())
    assert curve.at(64 * blocks) == pytest.approx(100 * 64 * hits / total, abs=1e-12)
    assert curve.at(64 * blocks + 63) == curve.at(64 * blocks)


@pytest.mark.parametrize("name", ["weka_tiny", "weka_subagents", "mooncake_conversation"])
@pytest.mark.parametrize("last", EXPLAINED["last_block"])
@pytest.mark.parametrize("first", EXPLAINED["first_requests"])
def test_a_cache_without_an_end_hits_what_the_rules_say(name: str, last: Any, first: Any) -> None:
    rules = Rules(last_block=last, first_requests=first)
    curve = cache_curve(sample(name), rules)
    assert curve.hit_percent[-1] == pytest.approx(count(sample(name), rules).hit_percent, abs=1e-9)
    assert curve.hit_percent == sorted(curve.hit_percent)


@pytest.mark.parametrize("name", ["weka_subagents", "weka_systematic"])
def test_long_prefills_are_mostly_of_prompts_that_do_not_extend_the_one_before(name: str) -> None:
    """What the article's text says of requests above 4,096 tokens, by their tokens."""
    prefill = count(sample(name), Rules()).prefill_tokens
    tokens = [0, 0]
    for trace_place, request in enumerate(sample(name).reply):
        if prefill[trace_place] > 4096:
            tokens[bool(request)] += int(prefill[trace_place])
    assert tokens[0] > tokens[1]


# Properties


@settings(deadline=None, max_examples=150)
@given(trace=traces(), relative=st.booleans())
def test_leads_agree_with_sets_under_every_rule(
    tmp_path_factory: pytest.TempPathFactory, trace: dict[str, Any], relative: bool
) -> None:
    corpus = match_traces(
        tmp_path_factory.mktemp("t"), [trace], clock="relative" if relative else "absolute"
    )
    for mode in MODES:
        assert corpus.lead[mode].tolist() == reference(trace, mode, relative)


@settings(deadline=None, max_examples=150)
@given(
    trace=traces(),
    last=st.sampled_from(list(EXPLAINED["last_block"])),
    outputs=st.sampled_from(["uncached", "cached"]),
    first=st.sampled_from(["in", "out"]),
)
def test_tokens_agree_with_the_plain_count(
    tmp_path_factory: pytest.TempPathFactory,
    trace: dict[str, Any],
    last: Any,
    outputs: Any,
    first: Any,
) -> None:
    corpus = match_traces(tmp_path_factory.mktemp("t"), [trace], clock="absolute")
    turns = weka_turns(trace, "shared", relative=False)
    expected = {}
    for (_, request), lead, reply in zip(
        turns, leads(turns, "shared"), replies(turns), strict=True
    ):
        tokens, cached = cached_tokens(request, lead, BLOCK, last)
        if outputs == "cached":
            cached = min(tokens, cached + reply)
        expected[id(request)] = tokens, cached
    if first == "out":
        del expected[id(turns[0][1])]
    rules = Rules(last_block=last, outputs=outputs, first_requests=first)
    if not expected:
        with pytest.raises(TraceError, match="no request is left"):
            count(corpus, rules)
        return
    counted = count(corpus, rules)
    found = list(zip(counted.input_tokens.tolist(), counted.cached_tokens.tolist(), strict=True))
    requests = in_corpus_order(trace)
    assert found == [expected[id(request)] for request in requests if id(request) in expected]


@settings(deadline=None, max_examples=150)
@given(trace=traces(), last=st.sampled_from(list(EXPLAINED["last_block"])))
def test_the_curve_agrees_with_a_simulated_cache_of_every_size(
    tmp_path_factory: pytest.TempPathFactory, trace: dict[str, Any], last: Any
) -> None:
    corpus = match_traces(tmp_path_factory.mktemp("t"), [trace], clock="absolute")
    rules = Rules(last_block=last)
    curve = cache_curve(corpus, rules)
    turns = weka_turns(trace, "shared", relative=False)
    ids = {block for _, request in turns for block in request["hash_ids"]}
    for blocks in range(len(ids) + 2):
        hits = [
            cached_tokens(request, lead, BLOCK, last)
            for (_, request), lead in zip(turns, lru_leads(turns, blocks), strict=True)
        ]
        total = sum(tokens for tokens, _ in hits)
        percent = 100 * sum(cached for _, cached in hits) / total if total else 0.0
        assert curve.at(BLOCK * blocks) == pytest.approx(percent, abs=1e-9), blocks


@settings(deadline=None, max_examples=60)
@given(one=traces("one"), two=traces("two"))
def test_conversations_share_nothing_unless_told_to(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, Any], two: dict[str, Any]
) -> None:
    both = match_traces(tmp_path_factory.mktemp("t"), [one, two], clock="absolute")
    expected = reference(one, "shared", False) + reference(two, "shared", False)
    assert both.lead["shared"].tolist() == expected


@settings(deadline=None, max_examples=60)
@given(trace=traces("one"))
def test_globally_a_repeated_conversation_is_wholly_cached(
    tmp_path_factory: pytest.TempPathFactory, trace: dict[str, Any]
) -> None:
    first = trace | {"hash_id_scope": "global"}
    again = first | {"id": "again"}
    corpus = match_traces(
        tmp_path_factory.mktemp("t"),
        [first, again],
        clock="absolute",
        seen="global",
        modes=("shared",),
    )
    half = len(corpus.t_s) // 2
    assert corpus.lead["shared"][half:].tolist() == corpus.blocks[half:].tolist()
    turns = weka_turns(trace, "shared", relative=False)
    assert sorted(corpus.lead["shared"][:half]) == sorted(leads(turns, "shared"))


# The subagents' clock


def agent(t: float, *inner: float) -> dict[str, Any]:
    requests = [
        {"type": "n", "t": at, "in": 4, "out": 1, "hash_ids": [100 + place]}
        for place, at in enumerate(inner)
    ]
    return {"type": "subagent", "t": t, "agent_id": f"a{t}", "requests": requests}


def parent(t: float, *ids: int) -> dict[str, Any]:
    return {"type": "n", "t": t, "in": 4 * len(ids), "out": 1, "hash_ids": list(ids)}


def conversation(name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "block_size": 4, "hash_id_scope": "local", "requests": list(entries)}


def test_one_conversation_decides_the_clock_of_all(tmp_path: Path) -> None:
    # Of the second alone nobody could tell: its subagent asks 3 s after the start of something.
    telling = conversation("telling", parent(0, 1), agent(10, 2), parent(20, 1))
    silent = conversation("silent", parent(0, 1), agent(2, 3), parent(4, 100))
    alone = match_traces(tmp_path, [silent])
    assert alone.clock == "absolute, found"
    assert alone.lead["shared"].tolist() == [0, 1, 0]  # the subagent is first, at 3 s
    both = match_traces(tmp_path, [telling, silent])
    assert both.clock == "relative, found"
    assert both.lead["shared"][3:].tolist() == [0, 0, 1]  # the parent is first, at 4 s
    given_ = match_traces(tmp_path, [silent], clock="relative")
    assert given_.clock == "relative, given"
    assert given_.lead["shared"].tolist() == [0, 0, 1]


def test_without_subagents_there_is_no_clock_to_find(tmp_path: Path) -> None:
    assert match_traces(tmp_path, [conversation("one", parent(0, 1))]).clock == "none"


# What cannot be counted


def test_rules_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    corpus = match_traces(tmp_path, [conversation("one", parent(0, 1))], modes=("shared",))
    with pytest.raises(TraceError, match="not matched with subagents isolated"):
        count(corpus, Rules(subagents="isolated"))
    with pytest.raises(TraceError, match="finite size is counted with subagents shared"):
        cache_curve(corpus, Rules(outputs="cached"))
    with pytest.raises(TraceError, match="only its first one"):
        count(corpus, Rules(first_requests="out"))
    with pytest.raises(TraceError, match="which request is the turn before"):
        count(sample("mooncake_conversation"), Rules(outputs="cached"))


def test_local_ids_are_not_compared_across_conversations(tmp_path: Path) -> None:
    found = [conversation("one", parent(0, 1)), conversation("two", parent(0, 1))]
    with pytest.raises(TraceError, match="local"):
        match_traces(tmp_path, found, seen="global", modes=("shared",))
