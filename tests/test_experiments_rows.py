"""From what the native programs print to the rows of their documents."""

from pathlib import Path
from typing import Any

import pytest

from graphgain.errors import ConfigError, MeasureError
from graphgain.experiments import EXPERIMENTS, ffi_launch, gemm_host_cost, handoff, launch_floor
from graphgain.measuring.native import Runs, read_output
from graphgain.measuring.nvcc import find_nvcc
from graphgain.results import MODELS, Document
from graphgain.results.store import read_document
from measuring_stage import launch_floor_output, one_output, one_series

PROVENANCE = {
    "started_at": "2026-01-01T00:00:00+00:00",
    "ended_at": "2026-01-01T00:01:00+00:00",
    "command": ["graphgain"],
    "git_commit": None,
    "git_dirty": None,
    "source_hash": "0" * 64,
    "sources": [],
    "versions": {},
    "process_runs": 2,
}


def runs_of(name: str, *outputs: dict[str, Any]) -> Runs:
    return Runs(name, tuple(read_output(output, name) for output in outputs))


def validated(experiment: str, parameters: dict[str, Any], body: dict[str, Any]) -> Document:
    """The body as a whole document under the model of its experiment."""
    return MODELS[experiment].model_validate(
        {
            "schema_version": 1,
            "experiment": experiment,
            "machine": "here",
            "kind": "measured",
            "provenance": PROVENANCE,
            "parameters": parameters,
            **body,
        }
    )


def test_launch_floor_rows() -> None:
    runs = runs_of("launch_floor", launch_floor_output(), launch_floor_output(shift=0.5))
    body = launch_floor.body(runs)
    validated("launch_floor", {"process_runs": 2}, body)
    rows = {(row["path"], row["launches"], row.get("arguments", 0)): row for row in body["rows"]}
    assert set(rows) == {
        ("driver", 512, 0),
        ("runtime", 512, 0),
        ("driver", 512, 8),
        ("graph", 4, 0),
        ("graph", 2048, 0),
    }
    driver = rows["driver", 512, 0]["host_us"]
    assert (driver["low"], driver["high"], driver["n"]) == (3.25, 3.75, 6)
    graph = rows["graph", 4, 0]
    assert graph["host_us"]["median"] == 2.0 and graph["graph_host_us"]["median"] == 8.0
    assert graph["instantiate_us"]["median"] == 50.5
    assert graph["gpu_us_per_node"]["median"] == 1.125
    assert body["outstanding_launches"]["median"] == 1023


def test_results_past_the_queue_are_flagged() -> None:
    body = launch_floor.body(runs_of("launch_floor", launch_floor_output()))
    flags = {(row["path"], row["launches"]): row["past_queue"] for row in body["rows"]}
    assert flags["graph", 2048] is True
    assert flags["driver", 512] is False and flags["graph", 4] is False


def test_a_queue_that_never_filled_flags_nothing_and_says_so() -> None:
    output = launch_floor_output()
    for count in output["counts"]:
        count["metric"] = "outstanding_launches_at_least"
    body = launch_floor.body(runs_of("launch_floor", output))
    validated("launch_floor", {}, body)
    assert "outstanding_launches" not in body and "No launch blocked" in body["notes"][0]
    assert not any(row["past_queue"] for row in body["rows"])


SHAPE = gemm_host_cost.parse_shape("5120x6144:o_proj=16,out_proj=48")
SMALL = gemm_host_cost.parse_shape("96x5120:in_proj_ba=48")


def gemm_output(shift: float = 0.0) -> dict[str, Any]:
    """Two shapes; the first takes two kernels, the second one."""
    series, counts, kernels = [], [], []
    for shape, count in ((SHAPE, 2), (SMALL, 1)):
        noise = [0.0, 0.5, shift]
        for call, us in (
            ("empty", 3.0),
            ("gemm_ex", 9.0),
            ("lt_heuristic", 8.0),
            ("lt_pinned", 6.5),
            ("bare", 4.0),
        ):
            axes = {"shape": shape.name, "call": call}
            # All calls of a round share its noise.
            series.append(one_series(axes, "host_us", "call", 256, [us + x for x in noise]))
        call_axes = {"shape": shape.name, "call": "gemm_ex"}
        counts += [
            {"axes": call_axes, "metric": metric, "value": value}
            for metric, value in (
                ("kernels_per_call", count),
                ("memsets_per_call", 0),
                ("programmatic_edges_per_call", count - 1),
                ("launches_per_round", 256 * count),
            )
        ]
        counts += [
            {"axes": {"shape": shape.name}, "metric": metric, "value": value}
            for metric, value in (("weight_copies", 7), ("lt_pinned_same_kernels_as_gemm_ex", 1))
        ]
        kernels += [
            {
                "axes": call_axes,
                "index": index,
                "kind": "kernel",
                "name": "gemvNSP",
                "grid": [10, 1, 1],
                "block": [128, 1, 1],
                "dynamic_shared_bytes": 0,
                "programmatic": index == 1,
            }
            for index in range(count)
        ]
    return {**one_output("gemm_host_cost", series, counts), "kernels": kernels}


def test_gemm_rows_and_split() -> None:
    runs = runs_of("gemm_host_cost", gemm_output(), gemm_output(shift=2.0))
    body = gemm_host_cost.body(runs, [SHAPE, SMALL])
    validated("gemm_host_cost", {"launches": 256}, body)
    first, second = body["rows"]
    assert first["gemm"] == "o_proj / out_proj" and first["uses"] == {"o_proj": 16, "out_proj": 48}
    assert first["kernels_per_call"] == 2 and len(first["kernels"]) == 2
    assert [kernel["pdl"] for kernel in first["kernels"]] == [False, True]
    assert first["lt_pinned_same_kernels"] is True and first["weight_copies"] == 7
    # The noise that all calls of a round share is not in the differences.
    for name, expected in (("algorithm_choice_us", 1.5), ("remainder_us", 3.5)):
        found = first[name]
        assert (found["median"], found["low"], found["high"]) == (expected,) * 3
    assert second["kernels_per_call"] == 1
    assert [part["part"] for part in body["split"]] == ["algorithm_choice", "launch", "remainder"]
    parts = sum(part["host_us"]["median"] for part in body["split"])
    assert parts == pytest.approx(second["host_us"]["median"])
    assert "in_proj_ba" in body["notes"][0]
    assert body["empty_us"]["n"] == 12


def test_no_split_is_invented_where_every_call_takes_two_kernels() -> None:
    body = gemm_host_cost.body(runs_of("gemm_host_cost", gemm_output()), [SHAPE])
    validated("gemm_host_cost", {}, body)
    assert "split" not in body


@pytest.mark.parametrize("text", ["", "5120:o_proj=1", "5120x6144:", "5120x6144:o_proj", "axb:c=1"])
def test_a_badly_written_shape_is_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="5120x6144:o_proj=16"):
        gemm_host_cost.parse_shape(text)


def test_the_default_shapes_are_the_published_ones() -> None:
    published = read_document(
        Path(__file__).resolve().parents[1] / "results/gb300-published/gemm_host_cost.json"
    )
    shapes = map(gemm_host_cost.parse_shape, EXPERIMENTS["gemm_host_cost"].parameters["shapes"])
    assert [(shape.n, shape.k, shape.uses) for shape in shapes] == [
        (row.n, row.k, row.uses) for row in published.rows
    ]


def handoff_output(shift: float = 0.0) -> dict[str, Any]:
    """One case with and without PDL; eager is 0.75 µs (PDL: 0.25) above graph in every round."""
    series, counts = [], []
    noise = [0.0, 1.0, shift]
    case = {"kernel_us": 2.0, "grid": 132, "argument_bytes": 8, "chain": 256}
    for pdl, saved in ((False, 0.75), (True, 0.25)):
        for mode, us in (("eager", 3.0 + saved), ("graph", 3.0)):
            axes = {"mode": mode, "pdl": pdl, **case}
            series.append(one_series(axes, "gpu_us", "kernel", 256, [us + x for x in noise]))
            series.append(one_series(axes, "host_us", "kernel", 256, [1.5, 1.5, 1.5]))
        counts.append(
            {
                "axes": {"mode": "graph", "pdl": pdl, **case},
                "metric": "programmatic_edges",
                "value": 255 if pdl else 0,
            }
        )
    series.append(
        one_series({"mode": "bare", "pdl": False, **case}, "gpu_us", "kernel", 255, [2.0] * 3)
    )
    counts += [
        {"axes": {}, "metric": f"sm_cycles_per_us_{when}", "value": 1980.0}
        for when in ("before", "after")
    ]
    return one_output("handoff", series, counts)


def test_handoff_rows() -> None:
    runs = runs_of("handoff", handoff_output(), handoff_output(shift=5.0))
    body = handoff.body(runs)
    parameters = {"kernels": 256, "rounds": 105, "warmup_rounds": 5, "process_runs": 2}
    validated("handoff", parameters, body)
    plain, pdl = body["rows"]
    assert (plain["pdl"], pdl["pdl"]) == (False, True)
    assert (plain["programmatic_edges"], pdl["programmatic_edges"]) == (0, 255)
    assert plain["saved_us"]["median"] == 0.75 == plain["saved_us"]["high"]
    assert pdl["saved_us"]["median"] == 0.25
    assert plain["bare_us"] == pdl["bare_us"] and plain["bare_us"]["median"] == 2.0
    assert plain["grid_blocks"] == 132
    assert body["sm_cycles_per_us"]["median"] == 1980.0


def test_a_case_that_one_run_lacks_is_an_error() -> None:
    lacking = handoff_output()
    lacking["series"] = [one for one in lacking["series"] if one["axes"]["mode"] != "bare"]
    with pytest.raises(MeasureError, match=r"0 series of gpu_us per kernel for mode bare"):
        handoff.body(runs_of("handoff", handoff_output(), lacking))


def test_ffi_rows_and_what_tensors_add() -> None:
    def run(shift: float) -> dict[str, list[float]]:
        base = [4.0, 4.0 + shift, 4.5]
        return {
            "python_tvm_ffi": base,
            "python_tvm_ffi_tensors": [x + 0.25 for x in base],
            "cpp_loop": [3.0, 3.0, 3.0],
            "graph": [0.004, 0.004, 0.004],
        }

    body = ffi_launch.body([run(0.0), run(1.0)])
    validated("ffi_launch", {}, body)
    assert [row["path"] for row in body["rows"]] == list(run(0.0))
    assert body["tensor_arguments_extra_us"]["median"] == 0.25
    assert "torch" in body["notes"][0]


def test_ffi_processes_that_measured_different_paths_are_refused() -> None:
    one = {"python_tvm_ffi": [1.0], "python_tvm_ffi_tensors": [1.0]}
    with pytest.raises(MeasureError, match="other paths"):
        ffi_launch.body([one, {**one, "python_tvm_ffi_torch_tensors": [1.0]}])


def test_the_ffi_library_is_built_against_the_installed_tvm_ffi() -> None:
    libinfo = pytest.importorskip("tvm_ffi.libinfo", reason="apache-tvm-ffi is not installed")
    flags = ffi_launch.library_flags(libinfo)
    assert "-shared" in flags and "-ltvm_ffi" in flags
    folders = [Path(flag.removeprefix("-I")) for flag in flags if flag.startswith("-I")]
    assert any((folder / "tvm" / "ffi" / "function.h").is_file() for folder in folders)


def test_the_ffi_library_compiles_loads_and_speaks_of_errors(tmp_path: Path) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    if find_nvcc() is None:
        pytest.skip("nvcc is not installed")
    library = ffi_launch.build_library(tmp_path, "sm_90")
    assert ffi_launch.build_library(tmp_path, "sm_90") == library
    module = tvm_ffi.load_module(str(library))
    assert str(module.runtime_version()).count(".") == 1
    with pytest.raises(Exception, match=r"CUDA error cudaError\w+ .* while \w+ a \w+\."):
        module.graph_us()  # no graph is prepared
