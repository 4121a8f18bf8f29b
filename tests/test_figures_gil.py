"""The GIL's figures, tables and facts, and what measured documents have to satisfy."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drawn import clipped_texts, colliding_texts
from graphgain.figures import gil_intervals, gil_levers, gil_lock_step
from graphgain.figures.style import theme
from graphgain.results.store import read_document
from graphgain.results.threads import Gil
from notebook_source import ROOT, run_cells

MEASURED = [
    path
    for path in sorted((ROOT / "results").glob("*/gil.json"))
    if not path.parent.name.endswith("-published")
]
MACHINES = ["gb300-published", "rtx5070ti-published", *(path.parent.name for path in MEASURED)]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("gil")
    return run_cells("gil", MACHINES, ROOT / "results", out), out


@pytest.fixture(params=MEASURED, ids=lambda path: path.parent.name)
def document(request: pytest.FixtureRequest) -> Gil:
    found = read_document(request.param)
    assert isinstance(found, Gil)
    return found


def test_the_loop_of_a_lone_launcher_is_a_bare_loop(document: Gil) -> None:
    alone = [row for row in document.rows if row.bare_loop_us and row.gil == "released"]
    assert {row.spin_us for row in alone} == {0.0, 1.0, 5.0, 20.0}
    for row in alone:
        assert row.above_bare_loop_percent is not None
        assert abs(row.above_bare_loop_percent.value) < 5, row.spin_us


def test_the_call_is_calibrated(document: Gil) -> None:
    for row in document.rows:
        in_c_us = row.call_us.value - row.empty_us.value
        assert in_c_us == pytest.approx(row.spin_us, abs=0.5), (row.spin_us, row.python)


def test_every_distribution_goes_as_far_as_its_intervals(document: Gil) -> None:
    whole = 0
    for row in (*document.rows, *document.gpu):
        assert row.interval_us.n is not None
        kept = dict(zip(document.probabilities, row.quantiles_us, strict=True))
        assert (row.p99_us is None) == (kept[0.99] is None) == (row.interval_us.n < 459)
        assert (row.p999_us is None) == (kept[0.999] is None) == (row.interval_us.n < 4603)
        known = [us for us in row.quantiles_us if us is not None]
        assert known == sorted(known)
        whole += row.interval_us.n >= 10_000
    assert whole > len(document.rows) / 2


def test_interruptions_last_a_switch_interval(document: Gil) -> None:
    """As the model predicts, whether the call releases the lock or keeps it.

    The operating system adds up to its own tick of some ms, which hides shorter switch intervals.
    """
    rows = [
        row
        for row in document.rows
        if (row.background, row.background_threads, row.holds_gil) == ("compute", 1, True)
        and row.switch_interval_ms >= 5
    ]
    assert {row.gil for row in rows} == {"released", "kept"}
    for row in rows:
        assert row.interruption_mode_us is not None
        modes = row.interruption_mode_us / (1000 * row.switch_interval_ms)
        assert 0.95 < modes < 2.2, (row.gil, row.spin_us, row.switch_interval_ms)


def test_a_group_is_never_faster_than_its_ranks(document: Gil) -> None:
    for kind in {(row.background, row.background_threads) for row in document.lock_step}:
        own = [
            row
            for row in document.lock_step
            if (row.background, row.background_threads) == kind and row.source == "resampled"
        ]
        medians = [row.p50_us for row in own if row.p50_us is not None]
        assert medians == sorted(medians)
        assert [row.ranks for row in own] == sorted(row.ranks for row in own)


def test_texts_keep_clear_of_each_other(executed: tuple[dict[str, Any], Path]) -> None:
    ns, _ = executed
    with theme("light"):
        for figure in (
            gil_intervals.draw(ns["curves"], ns["switches"], ns["shown"]),
            gil_levers.draw(ns["levers"], ns["shown"]),
            gil_lock_step.draw(ns["steps"], ns["shown"]),
        ):
            assert colliding_texts(figure) == [] and clipped_texts(figure) == []


def test_the_curves_are_the_documents_quantiles(executed: tuple[dict[str, Any], Path]) -> None:
    ns, _ = executed
    raw = json.loads(MEASURED[0].read_text(encoding="utf-8"))
    row = next(
        row
        for row in raw["rows"]
        if (row["background"], row["background_threads"], row["spin_us"]) == ("poll", 4, 5.0)
    )
    with theme("light"):
        figure = gil_intervals.draw(ns["curves"], ns["switches"], ns["shown"])
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes[:3]}
    assert list(panels) == ["computing", "polling a queue", "short I/O"]
    lines = panels["polling a queue"].lines
    kept = zip(raw["probabilities"], row["quantiles_us"], strict=True)
    wanted = [us for probability, us in kept if probability < 1 and us is not None]
    assert any(list(line.get_xdata()) == wanted for line in lines)


def test_facts_and_tables_are_the_documents(executed: tuple[dict[str, Any], Path]) -> None:
    ns, out = executed
    facts = json.loads((out / "facts" / "gil.json").read_text(encoding="utf-8"))
    found = {fact["name"]: fact["value"] for fact in facts}
    for path in MEASURED:
        raw = json.loads(path.read_text(encoding="utf-8"))
        key = f"gil.{path.parent.name.replace('-', '_')}"
        rows = {
            (row["background"], row["background_threads"]): row
            for row in raw["rows"]
            if row["spin_us"] == 5.0
            and row["gil"] == "released"
            and row["switch_interval_ms"] == 5.0
            and row["python"] == raw["parameters"]["python"]
        }
        alone, one = rows["none", 0], rows["compute", 1]
        rate = 100 * one["calls_per_s"]["median"] / alone["calls_per_s"]["median"]
        assert found[f"{key}.compute1_rate_percent"] == pytest.approx(rate)
        interrupted = found[f"{key}.compute1_interrupted_percent"]
        assert interrupted == one["share_interrupted_percent"]
        assert found[f"{key}.compute10_max_ms"] == rows["compute", 10]["max_us"] / 1000
    table = (out / "tables" / "gil_levers.md").read_text(encoding="utf-8")
    missing = [one for one in ns["not_found"]]
    assert table.count("not installed") == len(missing)


def test_without_a_measured_machine_the_figures_say_so(tmp_path: Path) -> None:
    run_cells("gil", ["rtx5070ti-published"], ROOT / "results", tmp_path)
    for name in ("gil_threads", "gil_intervals", "gil_levers", "gil_gpu"):
        table = (tmp_path / "tables" / f"{name}.md").read_text(encoding="utf-8")
        assert "not measured" in table
    assert json.loads((tmp_path / "facts" / "gil.json").read_text(encoding="utf-8")) == []


def test_levers_keep_their_groups_together() -> None:
    def one(group: str, label: str) -> dict[str, Any]:
        return {"machine": "A", "group": group, "label": label} | {
            "rate_percent": 10.0, "low_percent": 8.0, "high_percent": 12.0
        }  # fmt: skip

    levers = pd.DataFrame([one("x", "x1"), one("y", "y1"), one("x", "x2")])
    with theme("light"):
        figure = gil_levers.draw(levers, ["A"])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["x1", "x2", "y1"]
