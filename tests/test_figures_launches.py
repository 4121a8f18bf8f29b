"""The figures and notebooks of the launch half: what is drawn, what is said, what is absent."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from drawn import bar_widths, clipped_texts, colliding_texts, text_boxes
from graphgain import exhibits
from graphgain.figures import (
    decode_graph_gain,
    gemm_host_cost,
    graph_length,
    handoff,
    launch_floor,
    launch_paths,
    prefill_graph_gain,
    prefill_queue,
)
from graphgain.figures.machines import draw_absent, machine_color
from graphgain.figures.style import theme
from graphgain.figures.themes import THEMES
from graphgain.notebooks import read_notebook, run
from graphgain.tables import ABSENT, NOT_MEASURED, side_by_side, stacked
from notebook_source import ROOT, Executed, executed_once, run_cells

RESULTS = ROOT / "results"
PUBLISHED = ["gb300-published", "rtx5070ti-published"]
WITH_H200 = [*PUBLISHED, "h200"]
NOTEBOOKS = [
    "launch_floor",
    "gemm_host_cost",
    "decode_graph_gain",
    "handoff",
    "prefill_graph_gain",
    "launch_paths",
]


def document(experiment: str) -> dict[str, Any]:
    """One published document of the GB300, as it is written."""
    path = RESULTS / "gb300-published" / f"{experiment}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def facts(out: Path, notebook: str) -> dict[str, dict[str, Any]]:
    """The facts that a notebook wrote, by name without the notebook's."""
    rows = json.loads((out / "facts" / f"{notebook}.json").read_text(encoding="utf-8"))
    return {row["name"].partition(".")[2]: row for row in rows}


def widen(value: Any) -> Any:
    """Every quantity of a document with an interval around it, as measured ones have."""
    if isinstance(value, list):
        return [widen(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("median"), float) and "low" not in value:
        middle = value["median"]
        return value | {"low": 0.95 * middle, "high": 1.04 * middle, "interval": "run medians"}
    return {key: widen(item) for key, item in value.items()}


@pytest.fixture
def three_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    """The published machines and a copy of the GB300 that has intervals, under a long name."""
    # What is looked at is drawn by the test; the notebook need not render it four times as well.
    monkeypatch.setattr(exhibits, "_render", lambda figure, kind: b"")
    results = tmp_path / "results"
    shutil.copytree(RESULTS, results)
    other = results / "workstation-published"
    other.mkdir()
    for path in (RESULTS / "gb300-published").glob("*.json"):
        raw = widen(json.loads(path.read_text(encoding="utf-8")))
        raw["machine" if path.name != "machine.json" else "slug"] = other.name
        if path.name == "machine.json":
            raw["label"] = "RTX PRO 6000 Blackwell"
        (other / path.name).write_text(json.dumps(raw), encoding="utf-8")
    return results, [*PUBLISHED, other.name]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Notebooks on the published machines."""
    return executed_once(PUBLISHED, RESULTS, tmp_path_factory)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """The same with the measured H200 beside the published machines."""
    return executed_once(WITH_H200, RESULTS, tmp_path_factory)


def draw_all(notebook: str, ns: dict[str, Any]) -> dict[str, Figure]:
    """All figures of an executed notebook, in the active theme."""
    shown = ns["shown_machines"]
    if notebook == "launch_floor":
        return {
            "launch_floor": launch_floor.draw(ns["rows"], shown),
            "graph_length": graph_length.draw(ns["lengths"], shown),
        }
    if notebook == "handoff":
        return {"handoff": handoff.draw(ns["small"], ns["published_us"], shown)}
    if notebook == "gemm_host_cost":
        figure = gemm_host_cost.draw(ns["shapes"], ns["split"], ns["empty_us"], shown)
        return {"gemm_host_cost": figure}
    if notebook == "decode_graph_gain":
        return {"decode_graph_gain": decode_graph_gain.draw(ns["times"], ns["gains"], shown)}
    if notebook == "prefill_graph_gain":
        return {
            "prefill_graph_gain": prefill_graph_gain.draw(ns["rows"], shown),
            "prefill_queue": prefill_queue.draw(ns["rows"], shown),
        }
    return {"launch_paths": launch_paths.draw(ns["calls"], ns["steps"], shown)}


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_texts_keep_clear_of_each_other(
    notebook: str,
    published: Executed,
    measured: Executed,
    three_machines: tuple[Path, list[str]],
    tmp_path: Path,
) -> None:
    results, machines = three_machines
    for ns in (
        published(notebook)[0],
        measured(notebook)[0],
        run_cells(notebook, machines, results, tmp_path / "out"),
    ):
        with theme("light"):
            for name, figure in draw_all(notebook, ns).items():
                assert colliding_texts(figure) == [], (name, ns["machines"])
                assert clipped_texts(figure) == [], (name, ns["machines"])


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_text_is_large_enough_for_a_phone(notebook: str, measured: Executed) -> None:
    ns, _ = measured(notebook)
    with theme("light"):
        for figure in draw_all(notebook, ns).values():
            assert figure.get_figwidth() == pytest.approx(7.6)
            small = [
                text.get_text()
                for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
                if text.get_text().strip() and text.get_fontsize() < 9
            ]
            assert small == []


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_no_machine_has_the_document(notebook: str, tmp_path: Path) -> None:
    bare = tmp_path / "results" / "rtx5070ti-published"
    bare.mkdir(parents=True)
    shutil.copy(RESULTS / bare.name / "machine.json", bare)
    out = tmp_path / "out"
    run_cells(notebook, [bare.name], bare.parent, out)
    declared = read_notebook(ROOT / "notebooks" / f"{notebook}.py")
    assert facts(out, notebook) == {}
    for table in declared.tables:
        assert NOT_MEASURED in (out / "tables" / f"{table}.md").read_text(encoding="utf-8")
    with theme("light"):
        texts = [text for text, _ in text_boxes(draw_absent(["RTX 5070 Ti (published)"]))]
    assert texts == ["not measured on the machines shown:\nRTX 5070 Ti (published)"]
    for figure in declared.figures:
        for theme_name in THEMES:
            assert (out / "figures" / f"{figure}.{theme_name}.svg").stat().st_size > 0


def test_absent_machine_is_named_below_the_figure(published: Executed) -> None:
    ns, _ = published("gemm_host_cost")
    with theme("light"):
        (figure,) = draw_all("gemm_host_cost", ns).values()
    assert "not measured: RTX 5070 Ti (published)" in [text for text, _ in text_boxes(figure)]


def test_launch_floor_bars_are_the_data() -> None:
    data = pd.DataFrame(
        {
            "path": ["a", "a", "b"],
            "machine": ["one", "two", "two"],
            "host_us": [1.5, 2.5, 0.25],
            "low_us": [1.4, float("nan"), float("nan")],
            "high_us": [1.7, float("nan"), float("nan")],
            "text": ["1.50", "2.50", "0.25"],
        }
    )
    with theme("dark"):
        figure = launch_floor.draw(data, ["one", "two"])
    assert bar_widths(figure) == [1.5, 2.5, 0.25]
    ((low, _), (high, _)) = figure.axes[0].collections[0].get_segments()[0]
    assert (low, high) == (1.4, 1.7)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_a_machine_keeps_its_colour_when_another_is_missing() -> None:
    assert machine_color("b", ["a", "b"]) != machine_color("a", ["a", "b"])
    assert machine_color("b", ["a", "b"]) == machine_color("b", ["x", "b", "c"])


def test_gemm_figure_shows_shapes_split_and_floor(published: Executed) -> None:
    ns, _ = published("gemm_host_cost")
    raw = document("gemm_host_cost")
    with theme("light"):
        (figure,) = draw_all("gemm_host_cost", ns).values()
    expected = [row["host_us"]["median"] for row in raw["rows"]]
    expected += [part["host_us"]["median"] for part in raw["split"]]
    assert bar_widths(figure) == pytest.approx(expected)
    floor = document("launch_floor")["rows"][1]["host_us"]["median"]
    assert list(figure.axes[0].lines[0].get_xdata()) == [floor, floor]
    # Two kernels and one kernel are told apart by colour as well as by word.
    colors = [bar.get_facecolor() for group in figure.axes[0].containers for bar in group]
    assert len(set(colors)) == 2 and colors[0] == colors[3] != colors[4]


def test_gemm_facts_follow_from_the_document(published: Executed) -> None:
    _, out = published("gemm_host_cost")
    raw, found = document("gemm_host_cost"), facts(out, "gemm_host_cost")
    launches = document("decode_graph_gain")["launches"]
    calls = [sum(row["uses"].values()) for row in raw["rows"]]
    kernels = sum(
        count * row["kernels_per_call"] for count, row in zip(calls, raw["rows"], strict=True)
    )
    assert found["gb300.calls"]["value"] == sum(calls) == 305
    assert found["gb300.kernels"]["value"] == kernels == 497
    assert found["gb300.other_launches"]["value"] == launches - kernels == 342
    assert found["gb300.total_us"]["text"] == "1,757\u202fµs"
    assert found["gb300.us_per_other_launch"]["text"] == "2.17\u202fµs"


def test_decode_gain_is_added_up_both_ways(published: Executed) -> None:
    ns, out = published("decode_graph_gain")
    gains, found = ns["gains"], facts(out, "decode_graph_gain")
    measured = gains[gains["part"].isin(["idle", "handoff"])]
    assert measured["low_us"].sum() == pytest.approx(283)
    assert measured.set_index("part")["low_us"]["idle"] == pytest.approx(15 - 4)
    summed = gains[gains["part"].isin(["pdl", "no_pdl"])]
    assert summed["low_us"].sum() == pytest.approx(818 * 0.3 + 21)
    assert summed["high_us"].sum() == pytest.approx(818 * 0.5 + 21)
    assert found["gb300.summed_low_us"]["value"] == pytest.approx(818 * 0.3 + 21)
    assert found["gb300.handoff_us"]["text"] == "272\u202fµs"
    with theme("light"):
        (figure,) = draw_all("decode_graph_gain", ns).values()
    assert bar_widths(figure)[:3] == [2.5, 9.91, 9.62]
    assert bar_widths(figure)[3:5] == pytest.approx([11, 272])


def test_prefill_lines_are_the_data(published: Executed) -> None:
    ns, _ = published("prefill_graph_gain")
    raw = document("prefill_graph_gain")["rows"]
    with theme("light"):
        figures = draw_all("prefill_graph_gain", ns)
    upper = figures["prefill_graph_gain"].axes[0].lines[0]
    empty = [row for row in raw if row["cached_tokens"] == 0]
    assert list(upper.get_xdata()) == [row["tokens"] for row in empty]
    assert list(upper.get_ydata()) == pytest.approx(
        [row["eager_ms"]["median"] - row["graph_ms"]["median"] for row in empty]
    )
    behind = figures["prefill_graph_gain"].axes[1].lines[0]
    assert list(behind.get_xdata()) == [0, 1, 2, 3]
    waiting = figures["prefill_queue"].axes[0].lines[0].get_ydata()
    assert waiting[-2:] == pytest.approx([988, 988], abs=0.6)


def test_prefill_facts_tell_the_full_queue(published: Executed) -> None:
    _, out = published("prefill_graph_gain")
    found = facts(out, "prefill_graph_gain")
    assert found["gb300.full_tokens"]["text"] == "768 and 1,024"
    assert found["gb300.full_waiting"]["text"] == "988"
    assert found["gb300.free_tokens"]["value"] == 512
    assert found["gb300.per_call_us"]["text"] == "0.52–0.65\u202fµs"
    assert found["gb300.saved_percent"]["text"] == "1.7–4.6%"


def test_launch_paths_multiply_by_the_launches(published: Executed) -> None:
    ns, _ = published("launch_paths")
    calls, steps = ns["calls"], ns["steps"]
    assert set(steps["launches"]) == {839, 4000}
    worst = calls.loc[calls["host_us"].idxmax()]
    assert worst["path"] == "jit_torch_op"
    of_worst = steps[steps["label"] == worst["label"]].set_index("launches")["issue_ms"]
    assert of_worst[839] == pytest.approx(839 * (7.87 + 8.01) / 2 / 1000)
    assert set(steps["budget_ms"]) == {9.91}
    with theme("light"):
        (figure,) = draw_all("launch_paths", ns).values()
    assert bar_widths(figure)[: len(calls)] == list(calls["host_us"])
    assert list(calls["host_us"]) == sorted(calls["host_us"])


def test_both_runs_of_the_listing_are_in_the_table(published: Executed) -> None:
    _, out = published("launch_paths")
    table = (out / "tables" / "ffi_launch.md").read_text(encoding="utf-8")
    for row in document("ffi_launch")["rows"]:
        for value in row["host_us"]["runs"]:
            assert f"{value:.3f}" in table


@pytest.mark.parametrize("experiment", ["launch_floor", "gemm_host_cost", "prefill_graph_gain"])
def test_every_published_median_is_in_a_table(experiment: str, published: Executed) -> None:
    _, out = published(experiment)
    table = (out / "tables" / f"{experiment}.md").read_text(encoding="utf-8")
    for row in document(experiment)["rows"]:
        for key, value in row.items():
            if isinstance(value, dict) and "median" in value:
                digits = 3 if experiment == "launch_floor" else 2
                assert f"{value['median']:.{digits}f}" in table, (key, row)


def test_side_by_side_keeps_order_and_says_not_measured() -> None:
    rows = pd.DataFrame({"what": ["z", "a", "z"], "machine": ["m", "m", "n"], "text": "123"})
    rows["text"] = ["1", "2", "3"]
    shown = side_by_side(rows, ["what"], ["m", "n", "o"])
    assert shown.to_dict("list") == {
        "what": ["z", "a"],
        "m": ["1", "2"],
        "n": ["3", NOT_MEASURED],
        "o": [NOT_MEASURED, NOT_MEASURED],
    }


def test_stacked_gives_an_absent_machine_one_row() -> None:
    rows = pd.DataFrame({"machine": ["m", "m"], "x": ["1", "2"], "y": ["3", "4"]})
    shown = stacked(rows, ["x", "y"], ["o", "m"])
    assert shown.values.tolist() == [
        ["o", NOT_MEASURED, ABSENT],
        ["m", "1", "3"],
        ["", "2", "4"],
    ]


@pytest.mark.workflow
def test_a_notebook_runs_as_the_workflow_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    notebook = read_notebook(Path("notebooks/prefill_graph_gain.py"))
    run(notebook, {"machines": PUBLISHED}, tmp_path)
    for name in notebook.outputs().values():
        assert (tmp_path / name).stat().st_size > 0, name


def test_a_column_of_numbers_is_flush_right_whatever_was_not_measured() -> None:
    shown = pd.DataFrame(
        {
            "number": ["1,024 [1–2]", ABSENT, ""],
            "negative": ["−3", NOT_MEASURED, "~4"],
            "word": ["on", ABSENT, "1"],
            "none": [ABSENT, ABSENT, NOT_MEASURED],
        }
    )
    assert exhibits.pipe_table(shown).splitlines()[1] == "| ---: | ---: | :--- | :--- |"
