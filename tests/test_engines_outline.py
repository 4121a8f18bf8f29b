"""The lines that `graphgain ttft` ends with."""

from pathlib import Path
from statistics import median

from graphgain.engines.outline import breakdown_lines, ttft_lines
from graphgain.results.serving import Ttft, TtftBreakdown
from graphgain.results.store import read_document

PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "gb300-published"


def test_the_articles_engines_in_a_few_lines() -> None:
    document = read_document(PUBLISHED / "ttft.json")
    assert isinstance(document, Ttft)
    lines = list(ttft_lines(document))
    assert len(lines) == 10
    assert lines[0] == (
        "kern:default: 15.3 ms at 128, 42.2 ms at 1,024, 152.4 ms at 4,096, 626.3 ms at 16,384 "
        "tokens"
    )
    held = next(line for line in lines if line.startswith("  ") and "103.8" in line)
    assert "up to about 2,350, the host's; then 47.2 ms for every 1,024 tokens" in held
    # A curve that climbs in steps is fitted badly, and says so.
    assert [line for line in lines if "off by" in line] == [lines[3], lines[5]]


def test_a_captured_size_parts_a_mode() -> None:
    raw = read_document(PUBLISHED / "ttft.json").model_dump(mode="json")
    raw["rows"] = [row for row in raw["rows"] if row["mode"] == "piecewise"]
    raw["engines"] = [
        {
            **{"engine": "vllm", "mode": "piecewise", "label": "vLLM", "mode_label": "piecewise"},
            **{"version": "1", "command": None, "start_s": None},
            **dict.fromkeys(("started_at", "ended_at"), "2026-12-01T00:00:00Z"),
            "settings": {"cudagraph_mode": "PIECEWISE", "capture_sizes": [1, 768]},
        }
    ]
    level = median(row["ttft_ms"]["median"] for row in raw["rows"] if row["isl_tokens"] <= 768)
    lines = list(ttft_lines(Ttft.model_validate(raw)))
    assert lines[1].startswith(f"  128–768 tokens, captured: {level:.1f} ms")
    assert lines[2].startswith("  896–16,384 tokens: ")


def test_no_line_is_called_the_gpus_where_the_times_are_flat() -> None:
    raw = read_document(PUBLISHED / "ttft.json").model_dump(mode="json")
    raw["rows"] = [row for row in raw["rows"] if row["mode"] == "breakable"][:8]
    lines = list(ttft_lines(Ttft.model_validate(raw)))
    assert lines[1:] == ["  128–1,024 tokens: 62.2 ms, flat over the whole range"]


def test_what_the_article_says_of_a_requests_time() -> None:
    document = read_document(PUBLISHED / "ttft_breakdown.json")
    assert isinstance(document, TtftBreakdown)
    lines = list(breakdown_lines(document))
    assert lines[0] == "sglang:no-prefill-graph, traced:"
    assert lines[1] == "  128 tokens: GPU busy 26.7 of 142.0 ms; 1827 launches"
