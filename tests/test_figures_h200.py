"""The measured H200 in the launch half: what is drawn and said is what its documents hold."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from graphgain.figures import graph_length, handoff
from graphgain.figures.style import BLUE, ORANGE, faint, theme
from notebook_source import ROOT, run_cells

RESULTS = ROOT / "results"
MACHINES = ["gb300-published", "rtx5070ti-published", "h200"]


def document(experiment: str) -> dict[str, Any]:
    """One document of the H200, as it is written."""
    return json.loads((RESULTS / "h200" / f"{experiment}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The facts of the notebooks that show the H200, by name."""
    out = tmp_path_factory.mktemp("h200")
    found: dict[str, dict[str, Any]] = {}
    for notebook in ("launch_floor", "gemm_host_cost", "handoff", "launch_paths", "claims"):
        run_cells(notebook, MACHINES, RESULTS, out)
        rows = json.loads((out / "facts" / f"{notebook}.json").read_text(encoding="utf-8"))
        found |= {row["name"]: row for row in rows}
    found["out"] = {"value": str(out)}
    return found


def table(facts: dict[str, dict[str, Any]], name: str) -> str:
    return (Path(facts["out"]["value"]) / "tables" / f"{name}.md").read_text(encoding="utf-8")


# Launches ----------------------------------------------------------------------------------------


def test_launch_facts_are_the_medians_and_their_runs(facts: dict[str, dict[str, Any]]) -> None:
    raw = document("launch_floor")
    row = next(row for row in raw["rows"] if row["path"] == "driver" and not row.get("arguments"))
    host_us = row["host_us"]
    assert facts["launch_floor.h200.driver"]["value"] == host_us["median"]
    runs = facts["launch_floor.h200.driver_runs"]["text"]
    assert runs == f"{min(host_us['runs']):.2f}–{max(host_us['runs']):.2f}\u202fµs"
    assert facts["launch_floor.h200.outstanding"]["text"] == "1,021"
    assert facts["launch_floor.h200.outstanding_pdl"]["text"] == "1,028"


def test_arguments_are_those_of_the_document(facts: dict[str, dict[str, Any]]) -> None:
    costs = [
        row["host_us"]["median"] for row in document("launch_floor")["rows"] if row.get("arguments")
    ]
    assert len(costs) == 7
    shown = facts["launch_floor.h200.arguments"]["text"]
    assert shown == f"{min(costs):.2f}–{max(costs):.2f}\u202fµs"


def test_no_number_in_the_text_is_from_past_the_queue(facts: dict[str, dict[str, Any]]) -> None:
    rows = [row for row in document("launch_floor")["rows"] if row["path"] == "graph"]
    below = [row for row in rows if not row["past_queue"]]
    past = [row for row in rows if row["past_queue"]]
    assert [row["launches"] for row in past] == [1024, 2048, 4096]
    assert facts["launch_floor.h200.graph_length.longest_below"]["value"] == 512
    host = [row["graph_host_us"]["median"] for row in below]
    assert facts["launch_floor.h200.graph_length.host_us"]["text"] == (
        f"{min(host):.1f}–{max(host):.1f}\u202fµs"
    )
    lines = table(facts, "graph_length").splitlines()
    assert [line.rsplit("|", 2)[1].strip() for line in lines[-13:]] == ["no"] * 10 + ["yes"] * 3


def test_points_past_the_queue_look_different() -> None:
    values = {column: [1.0, 2.0, 4.0] for column in graph_length.PANELS}
    ends = {f"{end}_{column}": [1.0, 2.0, 4.0] for column in values for end in ("low", "high")}
    data = pd.DataFrame(
        {"machine": "m", "launches": [1, 8, 512], "past_queue": [False, False, True]}
        | values
        | ends
    )
    with theme("light"):
        figure = graph_length.draw(data, ["m"])
        pale = to_hex(faint())
    for axes in figure.axes:
        line, below, past = axes.lines
        assert list(line.get_xdata()) == [1, 8, 512] and list(line.get_ydata()) == [1, 2, 4]
        assert list(below.get_xdata()) == [1, 8] and list(past.get_xdata()) == [512]
        assert to_hex(past.get_markerfacecolor()) == pale != to_hex(below.get_markerfacecolor())


# cuBLAS ------------------------------------------------------------------------------------------


def test_gemm_facts_are_sums_over_the_document(facts: dict[str, dict[str, Any]]) -> None:
    rows = document("gemm_host_cost")["rows"]
    calls = [sum(row["uses"].values()) for row in rows]
    total = sum(n * row["host_us"]["median"] for n, row in zip(calls, rows, strict=True))
    kernels = sum(n * len(row["kernels"]) for n, row in zip(calls, rows, strict=True))
    assert facts["gemm_host_cost.h200.total_us"]["value"] == pytest.approx(total)
    assert facts["gemm_host_cost.h200.kernels"]["value"] == kernels
    assert facts["gemm_host_cost.h200.cublas"]["value"] == "13.1.0"


def test_pdl_is_counted_kernel_by_kernel(facts: dict[str, dict[str, Any]]) -> None:
    rows = document("gemm_host_cost")["rows"]
    first = [row["kernels"][0]["pdl"] for row in rows]
    later = [kernel for row in rows for kernel in row["kernels"][1:]]
    assert facts["gemm_host_cost.h200.first_kernels_pdl"]["value"] == sum(first) == 0
    assert facts["gemm_host_cost.h200.later_kernels_pdl"]["value"] == len(later) == 2
    assert all("splitKreduce" in kernel["name"] for kernel in later)
    listed = [line for line in table(facts, "gemm_kernels").splitlines() if "`" in line]
    assert len(listed) == len(rows) + len(later)
    assert [line for line in listed if "| yes |" in line] == [
        line for line in listed if "splitKreduce" in line
    ]


def test_every_part_of_the_split_is_named(facts: dict[str, dict[str, Any]]) -> None:
    shown = table(facts, "gemm_split")
    for part in document("gemm_host_cost")["split"]:
        assert f"{part['host_us']['median']:.1f} [" in shown
    assert "nan" not in shown


# Hand-over ---------------------------------------------------------------------------------------


def test_handoff_facts_follow_from_the_document(facts: dict[str, dict[str, Any]]) -> None:
    rows = [row for row in document("handoff")["rows"] if row["argument_bytes"] == 8]
    plain = [row["saved_us"]["median"] for row in rows if not row["pdl"]]
    pdl = [row["saved_us"]["median"] for row in rows if row["pdl"] and row["kernel_us"]]
    assert facts["handoff.h200.plain_us"]["text"] == f"{min(plain):.2f}–{max(plain):.2f}\u202fµs"
    assert facts["handoff.h200.pdl_us"]["text"] == f"{min(pdl):.2f}–{max(pdl):.2f}\u202fµs"
    case = next(
        row
        for row in rows
        if (row["grid_blocks"], row["kernel_us"], row["pdl"]) == (132, 10, False)
    )
    gap = case["eager_us"]["median"] - case["bare_us"]["median"]
    assert facts["handoff.h200.per_sm1.us10_plain_eager_gap_us"]["value"] == pytest.approx(gap)


def test_the_argument_block_changes_less_than_is_said(facts: dict[str, dict[str, Any]]) -> None:
    saved: dict[tuple[Any, ...], list[float]] = {}
    for row in document("handoff")["rows"]:
        case = (row["grid_blocks"], row["kernel_us"], row["pdl"])
        saved.setdefault(case, []).append(row["saved_us"]["median"])
    assert all(len(both) == 2 for both in saved.values())
    most = max(abs(one - other) for one, other in saved.values())
    assert facts["handoff.h200.argument_difference_us"]["value"] == pytest.approx(most)


def test_the_scaled_step_is_a_product(facts: dict[str, dict[str, Any]]) -> None:
    low, high = (
        818 * facts["handoff.h200.pdl_us"]["value"] + 21 * facts["handoff.h200.plain_us"]["value"],
        facts["handoff.h200.step_of_gb300_us"]["value"],
    )
    assert low == pytest.approx(high)  # both are the middle of their ranges


def test_the_callout_about_large_grids_is_what_was_measured(
    facts: dict[str, dict[str, Any]],
) -> None:
    case = "handoff.h200.per_sm8.us20"
    own = facts[f"{case}_plain_own_us"]["value"]
    assert facts[f"{case}_plain_eager_us"]["value"] > 1.5 * own
    assert facts[f"{case}_plain_graph_us"]["value"] > 1.5 * own
    assert facts[f"{case}_pdl_eager_us"]["value"] < 1.05 * own
    for length in (5, 10):
        ratio = facts[f"handoff.h200.per_sm8.us{length}_plain_eager_us"]["value"] / length
        assert 1.9 < ratio < 2.4


def test_handoff_lines_and_intervals_are_the_data() -> None:
    data = pd.DataFrame(
        {
            "machine": "m",
            "grid": "1 block",
            "pdl": [False, False, True, True],
            "kernel_us": [1.0, 5.0, 1.0, 5.0],
            "saved_us": [0.8, 0.9, 0.1, -0.2],
            "low_us": [0.7, 0.8, 0.1, -0.3],
            "high_us": [0.9, 1.0, 0.2, -0.1],
        }
    )
    with theme("dark"):
        figure = handoff.draw(data, (0.3, 1.0), ["m", "other"])
    (axes,) = figure.axes
    lines = {to_hex(line.get_color()): list(line.get_ydata()) for line in axes.lines[:2]}
    assert lines == {ORANGE: [0.8, 0.9], BLUE: [0.1, -0.2]}
    segments = [segment for lines in axes.collections for segment in lines.get_segments()]
    assert sorted((low[1], high[1]) for low, high in segments) == sorted(
        zip(data["low_us"], data["high_us"], strict=True)
    )
    texts = [text.get_text() for text in axes.texts]
    assert "without PDL: 0.8–0.9" in texts and "with PDL: −0.20 to 0.10" in texts
    assert "published:\n0.3–1 µs" in texts
    band = axes.patches[0]
    assert (band.get_y(), band.get_y() + band.get_height()) == (0.3, 1.0)


# Python ------------------------------------------------------------------------------------------


def test_what_python_adds_is_a_difference_of_medians(facts: dict[str, dict[str, Any]]) -> None:
    raw = document("ffi_launch")
    cost = {row["path"]: row["host_us"]["median"] for row in raw["rows"]}
    extra = facts["launch_paths.h200.ffi_extra_us"]["value"]
    assert extra == pytest.approx(cost["python_tvm_ffi"] - cost["cpp_loop"])
    torch = facts["launch_paths.h200.torch_tensors_extra_us"]["value"]
    assert torch == pytest.approx(cost["python_tvm_ffi_torch_tensors"] - cost["python_tvm_ffi"])
    for value in cost.values():
        assert f"{value:.3f} [" in table(facts, "ffi_launch")


def test_the_claims_table_judges_only_what_it_can_test(facts: dict[str, dict[str, Any]]) -> None:
    shown = table(facts, "claims").splitlines()
    header = [cell.strip() for cell in shown[0].strip("|").split("|")]
    assert header[-1] == "H200" and "RTX 5070 Ti (published)" not in header
    judged = [line for line in shown if "**agrees**" in line or "**differs**" in line]
    assert len(judged) == facts["claims.h200.judged_count"]["value"] >= 4
    (differing,) = (line for line in judged if "**differs**" in line)
    assert differing.startswith("| cuBLAS launches")
