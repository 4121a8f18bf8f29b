"""The ways of launching on a machine that measured them all: figures, table and facts."""

import json
from pathlib import Path
from typing import Any

import pytest

from drawn import bar_widths, clipped_texts, colliding_texts
from graphgain.figures import launch_paths, launch_stages
from graphgain.figures.style import theme
from notebook_source import ROOT, run_cells

MACHINES = ["gb300-published", "rtx5070ti-published", "h200"]
MEASURED: dict[str, Any] = json.loads((ROOT / "results/h200/launch_paths.json").read_text())


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("launch_paths")
    return run_cells("launch_paths", MACHINES, ROOT / "results", out), out


def medians() -> dict[str, float]:
    return {row["path"]: row["host_us"]["median"] for row in MEASURED["rows"] if row["host_us"]}


def test_texts_keep_clear_of_each_other(executed: tuple[dict[str, Any], Path]) -> None:
    ns, _ = executed
    with theme("light"):
        for figure in (
            launch_paths.draw(ns["calls"], ns["steps"], ns["shown_machines"]),
            launch_stages.draw(ns["stages"], ns["shown_machines"]),
        ):
            assert colliding_texts(figure) == [] and clipped_texts(figure) == []


def test_every_measured_way_is_a_bar_and_no_missing_one_is(
    executed: tuple[dict[str, Any], Path],
) -> None:
    ns, _ = executed
    own = ns["calls"][ns["calls"]["name"] == "h200"]
    assert dict(zip(own["path"], own["host_us"], strict=True)) == medians()
    assert own["label"].is_unique
    steps = ns["steps"][ns["steps"]["machine"] == "H200"]
    assert set(steps["launches"]) == {839, 4000}
    # The band is the machine's own step, or none.
    assert steps["budget_ms"].dropna().unique().tolist() == [
        min(row.step_ms.value for row in ns["decodes"][name].rows if row.host != "graph")
        for name in ["h200"]
        if name in ns["decodes"]
    ]


def test_a_missing_package_is_named_and_never_zero(executed: tuple[dict[str, Any], Path]) -> None:
    _, out = executed
    table = (out / "tables" / "launch_paths.md").read_text(encoding="utf-8")
    data = (out / "tables" / "launch_paths.csv").read_text(encoding="utf-8")
    for row in MEASURED["rows"]:
        if row["host_us"] is None:
            (line,) = [line for line in table.splitlines() if f"| {row['label']} |" in line]
            assert row["skipped"].partition(":")[0] in line
            assert row["skipped"] in data
    lines = table.splitlines()
    # One line a way, although two machines describe it.
    assert sum(line.startswith("| tvm-ffi |") for line in lines) == 1
    assert sum("`torch.ops.sgl.add` → dispatcher → Python impl" in line for line in lines) == 1
    assert "`launch(stream, config, kernel, *arguments)`" in table


def test_stacked_stages_are_the_documents(executed: tuple[dict[str, Any], Path]) -> None:
    ns, _ = executed
    with theme("light"):
        widths = bar_widths(launch_stages.draw(ns["stages"], ns["shown_machines"]))
    stages = MEASURED["stages"]
    drawn = [
        stage["host_us"]["median"]
        for path in launch_stages.PATHS
        for name in launch_stages.STAGES
        for stage in stages
        if (stage["path"], stage["stage"]) == (path, name)
    ]
    assert widths == pytest.approx(drawn)


def test_the_parts_of_a_call_add_up_to_about_the_whole() -> None:
    for path, whole in medians().items():
        parts = [s["host_us"]["median"] for s in MEASURED["stages"] if s["path"] == path]
        # Medians of differences, so not exactly.
        assert not parts or sum(parts) == pytest.approx(whole, rel=0.05)


def test_facts_are_multiples_of_the_document(executed: tuple[dict[str, Any], Path]) -> None:
    _, out = executed
    rows = json.loads((out / "facts" / "launch_paths.json").read_text(encoding="utf-8"))
    found = {row["name"].removeprefix("launch_paths.h200."): row["value"] for row in rows}
    us = medians()
    assert found["jit_custom_op_step_ms"] == pytest.approx(839 * us["jit_custom_op"] / 1000)
    assert found["jit_custom_op_unfused_ms"] == pytest.approx(4 * us["jit_custom_op"])
    assert found["triton_jit_times"] == pytest.approx(us["triton_jit"] / us["cpp_loop"])
    assert found["triton_version"] == MEASURED["provenance"]["versions"]["triton"]


def test_the_texts_claims_hold_in_the_document() -> None:
    """What the section says in words, so that new numbers cannot contradict it unnoticed."""
    us = medians()
    four = [us[path] for path in ("tvm_ffi", "jit_cached", "aot_torch_library", "jit_torch_op")]
    assert four == sorted(four) and us["cpp_loop"] < four[0]
    between = [us[path] for path in ("cuda_core", "cupy_raw", "torch_add_out", "cuda_bindings")]
    assert us["tvm_ffi"] < min(between) and max(between) < us["triton_jit"]
    step = json.loads((ROOT / "results/h200/decode_graph_gain.json").read_text())
    busy_ms = min(row["step_ms"]["median"] for row in step["rows"] if row["host"] != "graph")
    assert [path for path, cost in us.items() if 839 * cost / 1000 > busy_ms] == ["jit_custom_op"]
    assert us["triton_jit"] > 3 * us["cpp_loop"] and us["cuda_graph"] < 0.2 < us["cpp_loop"]
    assert us["triton_jit_pdl"] == pytest.approx(us["triton_jit"], rel=0.1)
    published = (7.87 + 8.01) / 2
    assert abs(us["jit_torch_op"] - published) < abs(us["jit_custom_op"] - published)
    stage = {(s["path"], s["stage"]): s["host_us"]["median"] for s in MEASURED["stages"]}
    largest = {
        path: max((us for (of, _), us in stage.items() if of == path))
        for path in launch_stages.PATHS
    }
    most_launch = [path for path in largest if stage[path, "launch"] == largest[path]]
    assert len(most_launch) == 4 and "jit_custom_op" not in most_launch
