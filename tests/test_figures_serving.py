"""The figures and notebooks of the serving half: what is drawn, what is said, what is absent."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drawn import bar_widths, clipped_texts, colliding_texts, text_boxes
from graphgain.figures import gil, prefill_tokens, ttft, ttft_breakdown, ttft_long
from graphgain.figures.engines import ENGINE_COLORS, label, look
from graphgain.figures.style import MACHINE_COLORS, PAGES, contrast, text_color, theme
from graphgain.figures.themes import THEMES
from graphgain.notebooks import read_notebook, run
from notebook_source import ROOT, Executed, executed_once, run_cells

RESULTS = ROOT / "results"
PUBLISHED = ["gb300-published", "rtx5070ti-published"]
NOTEBOOKS = ["agent_workload", "gil", "ttft", "ttft_breakdown", "claims"]
DRAWING = [name for name in NOTEBOOKS if name != "claims"]


def drawings(notebook: str, ns: dict[str, Any]) -> list[Callable[[], Figure]]:
    """What draws the figures of an executed notebook."""
    machines = ns["shown"]
    return {
        "agent_workload": [lambda: prefill_tokens.draw(ns["hits"], ns["labelled"], machines)],
        "gil": [lambda: gil.draw(ns["computing"], ns["launching"], ns["switch_ms"])],
        "ttft": [
            lambda: ttft.draw(ns["short"], ns["fitted"], ns["limits"], machines),
            lambda: ttft.draw(ns["modes"], *ns["nothing"], ns["those"]),
            lambda: ttft_long.draw(ns["relative"], ns["marks"], machines),
        ],
        "ttft_breakdown": [lambda: ttft_breakdown.draw(ns["data"], ns["reference"], machines)],
    }[notebook]


def document(experiment: str) -> dict[str, Any]:
    """One published document of the GB300, as it is written."""
    path = RESULTS / "gb300-published" / f"{experiment}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def facts(out: Path, notebook: str) -> dict[str, dict[str, Any]]:
    """The facts that a notebook wrote, by name without the notebook's."""
    rows = json.loads((out / "facts" / f"{notebook}.json").read_text(encoding="utf-8"))
    return {row["name"].partition(".")[2]: row for row in rows}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Notebooks on the published machines."""
    return executed_once(PUBLISHED, RESULTS, tmp_path_factory)


@pytest.fixture
def with_measured(tmp_path: Path) -> tuple[Path, list[str]]:
    """The published machines and a measured one: no Kern, few lengths."""
    results = tmp_path / "results"
    shutil.copytree(RESULTS, results)
    folder = results / "h200"
    shutil.rmtree(folder, ignore_errors=True)  # what is kept of it would stand beside this
    folder.mkdir()

    def quantity(value: float) -> dict[str, Any]:
        return {"median": value, "low": 0.97 * value, "high": 1.05 * value, "n": 30} | {
            "interval": "run medians"
        }

    provenance = {
        "started_at": "2026-12-01T00:00:00Z",
        "ended_at": "2026-12-01T00:10:00Z",
        "command": ["graphgain", "measure"],
        "git_commit": None,
        "git_dirty": None,
        "source_hash": "0",
        "sources": [],
        "versions": {},
        "process_runs": 3,
    }
    measured = {"schema_version": 1, "machine": "h200", "kind": "measured"} | {
        "provenance": provenance
    }
    documents: dict[str, dict[str, Any]] = {
        "machine": {"schema_version": 1, "slug": "h200", "label": "H200", "kind": "measured"},
        "ttft": measured
        | {
            "experiment": "ttft",
            "parameters": document("ttft")["parameters"],
            "rows": [
                {"engine": engine, "mode": mode, "isl_tokens": isl, "ttft_ms": quantity(ms)}
                for engine, mode, times in (
                    ("vllm", "piecewise", (58.0, 90.0, 350.0)),
                    ("vllm", "piecewise-to-4096", (50.0, 99.0, 351.0)),
                    ("sglang", "breakable", (82.0, 85.0, 360.0)),
                    ("sglang", "no-prefill-graph", (98.0, 104.0, 361.0)),
                )
                for isl, ms in zip((128, 1024, 4096), times, strict=True)
            ],
        },
    }
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return results, [*PUBLISHED, "h200"]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("engine", ENGINE_COLORS)
def test_engine_colours_stand_out_on_both_pages(engine: str, page: str) -> None:
    assert contrast(ENGINE_COLORS[engine], page) >= 3


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("color", MACHINE_COLORS)
def test_words_in_a_colour_can_be_read_on_the_page(name: str, color: str) -> None:
    with theme(name):
        written = text_color(color)
    assert contrast(written, PAGES[name]) >= 4.5
    # The line that it names is still seen to be its own.
    assert min(MACHINE_COLORS, key=lambda other: distance(other, written)) == color


def distance(first: str, second: str) -> float:
    return float(np.linalg.norm(np.subtract(to_rgb(first), to_rgb(second))))


def test_the_figures_know_the_pages_that_they_stand_on() -> None:
    styles = (ROOT / "report/styles/site.css").read_text(encoding="utf-8")
    assert "--paper: light-dark({light}, {dark});".format_map(PAGES) in styles


def test_engine_colours_differ_for_the_colour_blind() -> None:
    # Viénot, Brettel and Mollon (1999): what red-green blindness leaves of linear RGB.
    deuteranopia = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    protanopia = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    colors = np.array([to_rgb(color) for color in ENGINE_COLORS.values()]) ** 2.2
    for blindness in (deuteranopia, protanopia):
        seen = np.clip(colors @ blindness.T, 0, 1) ** (1 / 2.2)
        for index in range(len(seen)):
            others = np.delete(seen, index, axis=0)
            assert np.linalg.norm(others - seen[index], axis=1).min() > 0.15


def test_modes_of_one_engine_differ_in_their_dashes() -> None:
    assert look("vllm", "piecewise").dashes != look("vllm", "no-piecewise").dashes
    assert look("vllm", "some-new-mode").dashes not in ((), look("vllm", "no-piecewise").dashes)
    assert label("vllm", "some-new-mode") == "vLLM, some new mode"
    assert label("kern", "default") == "Kern"


@pytest.mark.parametrize("notebook", DRAWING)
def test_texts_keep_clear_of_each_other(
    notebook: str, executed: Executed, tmp_path: Path, with_measured: tuple[Path, list[str]]
) -> None:
    results, machines = with_measured
    for ns in (executed(notebook)[0], run_cells(notebook, machines, results, tmp_path / "out")):
        for draw in drawings(notebook, ns):
            for theme_name in THEMES:
                with theme(theme_name):
                    figure = draw()
                    assert colliding_texts(figure) == []
                    assert clipped_texts(figure) == []


@pytest.mark.parametrize("notebook", DRAWING)
def test_text_is_large_enough_for_a_phone(notebook: str, executed: Executed) -> None:
    with theme("light"):
        for draw in drawings(notebook, executed(notebook)[0]):
            figure = draw()
            assert figure.get_figwidth() <= 7.6
            assert text_boxes(figure)
            sizes = [text.get_fontsize() for axes in figure.axes for text in axes.texts]
            assert min(sizes) >= 9


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_no_machine_has_the_document(notebook: str, tmp_path: Path) -> None:
    # No counted traces either: they are shown with any machines.
    shutil.copytree(RESULTS / "rtx5070ti-published", tmp_path / "kept" / "rtx5070ti-published")
    run_cells(notebook, ["rtx5070ti-published"], tmp_path / "kept", tmp_path)
    assert facts(tmp_path, notebook) == {}
    declared = read_notebook(ROOT / "notebooks" / f"{notebook}.py")
    for table in declared.tables:
        assert "not measured" in (tmp_path / "tables" / f"{table}.md").read_text(encoding="utf-8")
    for figure in declared.figures:
        assert (tmp_path / "figures" / f"{figure}.light.svg").stat().st_size > 0


@pytest.mark.parametrize("notebook", ["ttft", "claims"])
def test_a_measured_machine_stands_beside_the_published(
    notebook: str, with_measured: tuple[Path, list[str]], tmp_path: Path
) -> None:
    results, machines = with_measured
    out = tmp_path / "out"
    run_cells(notebook, machines, results, out)
    tables = "".join(path.read_text(encoding="utf-8") for path in (out / "tables").glob("*.md"))
    assert "H200" in tables
    if notebook != "claims":
        assert any(name.startswith("h200.") for name in facts(out, notebook))


def test_ttft_lines_are_the_documents_rows(executed: Executed) -> None:
    ns, _ = executed("ttft")
    with theme("light"):
        nothing = ns["fitted"].iloc[:0]
        axes = ttft.draw(ns["short"], nothing, ns["limits"], ns["shown"]).axes[0]
    drawn = {
        (line.get_color(), line.is_dashed()): list(zip(*line.get_data(), strict=True))
        for line in axes.lines
        if len(line.get_xdata()) > 3
    }
    assert len(drawn) == 5
    for engine, mode in (("kern", "default"), ("vllm", "no-piecewise"), ("sglang", "breakable")):
        wanted = [
            (row["isl_tokens"], row["ttft_ms"]["median"])
            for row in document("ttft")["rows"]
            if (row["engine"], row["mode"]) == (engine, mode) and row["isl_tokens"] <= 4096
        ]
        assert drawn[ENGINE_COLORS[engine], mode == "no-piecewise"] == wanted


def test_ttft_facts_follow_from_the_document(executed: Executed) -> None:
    _, out = executed("ttft")
    found = facts(out, "ttft")
    for row in document("ttft")["rows"]:
        name = f"{row['engine']}_{row['mode'].replace('-', '_')}_{row['isl_tokens']}_ms"
        assert found[f"gb300.{name}"]["value"] == row["ttft_ms"]["median"]
    assert found["gb300.values"]["value"] == 220
    assert found["gb300.kern_first_short"]["value"] == found["gb300.short_lengths"]["value"] == 32
    # 8192: 306.35 against 308.00; 9216: 350.11 against 335.73.
    assert found["gb300.kern_first_through_tokens"]["value"] == 8192
    assert found["gb300.vllm_step1_from_tokens"]["value"] == 768
    assert found["gb300.vllm_step1_ms"]["value"] == pytest.approx(89.76 - 46.81)


def test_every_ttft_is_in_the_table(executed: Executed) -> None:
    _, out = executed("ttft")
    table = (out / "tables" / "ttft.md").read_text(encoding="utf-8")
    for row in document("ttft")["rows"]:
        assert f" {row['ttft_ms']['median']:.2f} " in table


def test_crossovers_are_stated_in_both_directions(executed: Executed) -> None:
    ns, _ = executed("ttft")
    crossings = ns["crossings"]
    kern = crossings[crossings["first_engine"] == "kern"]
    no_piecewise = kern[kern["second_mode"] == "no-piecewise"]
    assert list(no_piecewise["first_below"]) == [False, True, False, True, False]
    assert list(no_piecewise["left_tokens"]) == [8192, 9216, 10240, 13312, 14336]
    with theme("light"):
        figure = ttft_long.draw(ns["relative"], ns["marks"], ns["shown"])
    dots = [
        len(line.get_xdata())
        for axes in figure.axes
        for line in axes.lines
        if line.get_marker() == "o"
    ]
    assert sum(dots) == len(crossings)


@pytest.mark.parametrize("cards", [("aaaa", "aaaa"), ("aaaa", "bbbb")])
def test_engines_on_two_nodes_are_not_compared(
    cards: tuple[str, str], with_measured: tuple[Path, list[str]], tmp_path: Path
) -> None:
    results, machines = with_measured
    path = results / "h200" / "ttft.json"
    raw = json.loads(path.read_text())
    of_engine = dict(zip(("vllm", "sglang"), cards, strict=True))
    raw["rows"] += [
        {**row, "mode": "hicache"} for row in raw["rows"] if row["mode"] == "no-prefill-graph"
    ]
    raw["engines"] = [
        {
            **{"engine": engine, "mode": mode, "label": engine, "mode_label": mode},
            **{"version": "1", "command": None, "start_s": None, "card": of_engine[engine]},
            **dict.fromkeys(("started_at", "ended_at"), "2026-12-01T00:00:00Z"),
        }
        for engine, mode in dict.fromkeys((row["engine"], row["mode"]) for row in raw["rows"])
        if mode != "piecewise-to-4096"  # one that the document has nothing to say about
    ]
    path.write_text(json.dumps(raw))
    ns = run_cells("ttft", machines, results, tmp_path / "out")
    crossed = ns["crossings"][ns["crossings"]["slug"] == "h200"]
    listed = (tmp_path / "out/tables/ttft_crossovers.md").read_text()
    if cards[0] == cards[1]:
        assert len(crossed) > 0 and "| H200 |" in listed
        assert "node" not in ns["runs"]
    else:
        assert len(crossed) == 0 and "H200" not in listed
        assert set(ns["runs"]["node"]) == {"1", "2"}
    # Each engine has a panel of its own, and names nodes only where its lines are of several.
    assert set(ns["modes"]["machine"]) == {"H200: SGLang"}
    figure = ttft.draw(ns["modes"], *ns["nothing"], ns["those"])
    names = [text.get_text() for text in figure.axes[0].texts]
    assert "SGLang, hicache" in names


def test_lines_of_several_nodes_are_named_with_them() -> None:
    data = pd.DataFrame(
        [
            {"machine": "M", "engine": "vllm", "mode": mode, "isl_tokens": isl}
            | {"ttft_ms": 50.0 + number, "low_ms": None, "high_ms": None, "node": number}
            for number, mode in ((1, "piecewise"), (2, "eager"))
            for isl in (128, 4096)
        ]
    )
    empty = data.iloc[:0].assign(tokens=[])
    names = [text.get_text() for text in ttft.draw(data, empty, empty, ["M"]).axes[0].texts]
    assert {"vLLM, piecewise graph (node 1)", "vLLM, no graph at all (node 2)"} <= set(names)


def test_breakdown_bars_are_busy_and_idle(executed: Executed) -> None:
    ns, _ = executed("ttft_breakdown")
    with theme("light"):
        figure = ttft_breakdown.draw(ns["data"], ns["reference"], ns["shown"])
    rows = document("ttft_breakdown")["rows"]
    busy = [row["gpu_busy_ms"]["median"] for row in rows]
    idle = [row["ttft_traced_ms"]["median"] - row["gpu_busy_ms"]["median"] for row in rows]
    assert bar_widths(figure) == pytest.approx([*busy, *idle])
    untraced = next(line for line in figure.axes[0].lines if line.get_marker() == "D")
    assert list(untraced.get_xdata())[:2] == [101.94, 102.0]


def test_breakdown_facts_keep_both_numbers(executed: Executed) -> None:
    _, out = executed("ttft_breakdown")
    found = facts(out, "ttft_breakdown")
    assert found["gb300.isl128_traced_ms"]["value"] == 142.0
    assert found["gb300.isl128_untraced_ms"]["value"] == 101.94
    assert found["gb300.isl128_untraced_interval_us"]["value"] == pytest.approx(101_940 / 1827)
    assert found["gb300.overhead_ms_low"]["value"] == pytest.approx(822.5 - 816.4)
    assert found["gb300.overhead_ms_high"]["value"] == pytest.approx(180.1 - 172.4)
    assert found["gb300.tldr_sglang_launch_interval_us"]["text"] == "74\u202fµs"
    assert found["gb300.breakdown_launch_overhead_us"]["text"] == "70\u202fµs"


def test_known_points_are_drawn_and_no_curve(executed: Executed) -> None:
    ns, _ = executed("agent_workload")
    with theme("light"):
        axes = prefill_tokens.draw(ns["hits"], ns["labelled"], ns["shown"]).axes[1]
    lines = [line for line in axes.lines if line.get_marker() == "o"]
    assert [list(zip(*line.get_data(), strict=True)) for line in lines] == [
        [(1600.0, 50.0), (4096.0, 85.2)]
    ]
    assert lines[0].get_linestyle() == "None"


def test_long_tails_are_drawn_on_a_logarithmic_axis() -> None:
    hits = pd.DataFrame({"machine": ["H200"], "percent": [98.3]})
    points = pd.DataFrame(
        {"machine": "H200", "tokens": [1664, 46_722], "percent": [50, 99], "text": ["a", "b"]}
    )
    with theme("light"):
        axes = prefill_tokens.draw(hits, points, ["H200"]).axes[1]
    assert axes.get_xscale() == "log"


def test_gil_census_is_the_documents(executed: Executed) -> None:
    _, out = executed("gil")
    table = (out / "tables" / "gil_threads.md").read_text(encoding="utf-8")
    assert "| scheduler + worker | 6 | yes |" in table
    assert "| detokenizer | not given | no |" in table
    assert "nan" not in table


@pytest.mark.workflow
@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_as_the_workflow_runs_it(
    notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    declared = read_notebook(Path("notebooks") / f"{notebook}.py")
    run(declared, {"machines": PUBLISHED, "results": "results"}, tmp_path)
    for path in declared.outputs().values():
        assert (tmp_path / path).exists()
