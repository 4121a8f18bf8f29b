"""From what processes print about forwards to the rows of the two documents."""

from typing import Any

import pytest

from graphgain.errors import MeasureError
from graphgain.experiments import EXPERIMENTS, decode_graph_gain, prefill_graph_gain
from graphgain.experiments.forward_runs import by_forward, parameters
from graphgain.results.forwards import DecodeGraphGain, PrefillGraphGain
from test_experiments_rows import validated

NAMES = ["embed()", "gemm()", "norm()", "gemm()"]
PDL = [False, False, True, False]
WALL_MS = {"eager": [9.0, 9.4], "cpp_eager": [5.0, 5.2], "cpp_eager_no_pdl": [5.5, 5.6],
           "graph": [4.0, 4.4]}  # fmt: skip


def forward(model: str, tokens: int = 1, cached: int = 8, shift: float = 0.0) -> dict[str, Any]:
    """One forward as a process prints it; `shift` is added to every wall time, in ms."""
    later = {"cpp_eager": [3.0, 5.0, 2.4, 6.0], "graph": [1.0, 4.0, 2.0, 5.5]}
    wall = {host: [ms + shift for ms in times] for host, times in WALL_MS.items()}
    return {
        "model": model,
        "tokens": tokens,
        "cached_tokens": cached,
        "launches": 4,
        "pdl_launches": 1,
        "memsets": 0,
        "memcpys": 0,
        "kernels": [
            {"name": "gemm()", "launches": 2, "pdl_launches": 0},
            {"name": "embed()", "launches": 1, "pdl_launches": 0},
            {"name": "norm()", "launches": 1, "pdl_launches": 1},
        ],
        "identical_outputs": {"eager": True, "cpp_eager": True, "cpp_eager_no_pdl": True},
        "samples": {
            "wall_ms": wall,
            "gpu_ms": wall,
            "issue_ms": {host: [1.0, 1.2] for host in wall},
            "unhindered_issue_ms": [0.5, 0.7],
        },
        "profile": {
            host: {"total_us": [4000.0], "idle_us": [7.0], **(
                {"later_us": later[host], "names": NAMES} if host in later else {}
            )}
            for host in ("eager", "cpp_eager", "graph")
        },
        "pdl_nodes": PDL,
    }  # fmt: skip


def run(*forwards: dict[str, Any], copy_gb_s: float = 4000.0) -> dict[str, Any]:
    return {
        "cuda_runtime": "13.0",
        "copy_gb_s": copy_gb_s,
        "decode_weight_gb": 14.0,
        "forwards": list(forwards),
    }


def decode(runs: list[dict[str, Any]]) -> DecodeGraphGain:
    wanted = EXPERIMENTS["decode_graph_gain"].with_overrides({})
    own = parameters(wanted, "lean", tokens=1, cached_tokens=8)
    document = validated("decode_graph_gain", own, decode_graph_gain.body(runs))
    assert isinstance(document, DecodeGraphGain)
    return document


def test_a_decode_step_under_every_host() -> None:
    document = decode([run(forward("lean")), run(forward("lean", shift=1.0))])
    rows = {row.host: row for row in document.rows}
    assert set(rows) == {"eager", "cpp_eager", "cpp_eager_no_pdl", "graph"}
    graph = rows["graph"].step_ms
    assert (graph.median, graph.low, graph.high, graph.n) == (4.7, 4.2, 5.2, 4)
    assert rows["graph"].idle_us is not None and rows["graph"].idle_us.median == 7.0
    assert rows["graph"].profiled_ms is not None and rows["graph"].profiled_ms.median == 4.0
    assert rows["cpp_eager_no_pdl"].idle_us is None  # not profiled
    assert document.host_issue_ms.median == 0.6


def test_what_the_graph_saves_is_paired_by_round() -> None:
    document = decode([run(forward("lean")), run(forward("lean", shift=1.0))])
    assert document.saved_us is not None and document.python_saved_us is not None
    assert document.saved_us.median == pytest.approx(900)
    assert document.python_saved_us.median == pytest.approx(5000)


def test_a_kernel_counts_from_its_predecessors_end_so_the_first_one_does_not() -> None:
    document = decode([run(forward("lean"))])
    slower = {row.pdl: row for row in document.per_kernel}
    assert slower[True].slower_us.median == pytest.approx(0.4)
    assert slower[False].slower_us.n == 2
    assert slower[False].total_us == pytest.approx(1.5)
    times = document.launch_times
    assert times is not None
    assert [times.names[index] for index in times.kernel] == NAMES
    mix = {kernel.name: kernel for kernel in document.kernels}
    assert (mix["gemm()"].cpp_eager_us, mix["gemm()"].graph_us) == (11.0, 9.5)


def test_launch_times_are_medians_over_processes() -> None:
    runs = [run(forward("lean")) for _ in range(3)]
    for extra, one in zip((0.0, 1.0, 5.0), runs, strict=True):
        one["forwards"][0]["profile"]["graph"]["later_us"][2] += extra
    times = decode(runs).launch_times
    assert times is not None and times.graph_us[2] == 3.0


def test_the_floor_is_weights_over_copy_bandwidth() -> None:
    stream = decode([run(forward("lean"))]).weight_stream
    assert stream is not None
    assert stream.floor_ms == pytest.approx(3.5)
    assert stream.graph_over_floor == pytest.approx(4.2 / 3.5)


def test_other_models_stand_beside_the_first() -> None:
    document = decode([run(forward("lean"), forward("transformers", shift=2.0))])
    (beside,) = document.beside
    assert beside.engine == "transformers"
    assert beside.rows[0].step_ms.median == 11.2


def test_without_a_profile_there_are_times_only() -> None:
    one = forward("lean")
    del one["profile"]
    one["not_profiled"] = "The profiler is not available."
    document = decode([run(one), run(forward("lean"))])
    assert "The profiler is not available." in document.notes
    assert document.launch_times is None
    assert document.per_kernel == []
    assert document.kernels[0].graph_us is None


def test_a_result_that_differs_is_noted() -> None:
    one = forward("lean")
    one["identical_outputs"]["cpp_eager"] = False
    document = decode([run(one), run(forward("lean"))])
    assert document.identical_outputs is not None
    assert document.identical_outputs["cpp_eager"] is False
    assert any("cpp_eager gives another result" in note for note in document.notes)


def test_processes_that_captured_different_launches_are_an_error() -> None:
    other = forward("lean")
    other["launches"] = 5
    with pytest.raises(MeasureError, match=r"different numbers of launches: \[4, 5\]"):
        by_forward([run(forward("lean")), run(other)])


def test_prefill_rows() -> None:
    runs = [
        run(forward("lean", 128, 0), forward("lean", 256, 4096), forward("transformers", 128, 0))
        for _ in range(2)
    ]
    wanted = EXPERIMENTS["prefill_graph_gain"].with_overrides({})
    document = validated(
        "prefill_graph_gain", parameters(wanted, "lean"), prefill_graph_gain.body(runs)
    )
    assert isinstance(document, PrefillGraphGain)
    assert [(row.tokens, row.cached_tokens) for row in document.rows] == [(128, 0), (256, 4096)]
    assert document.calls_per_forward == 4
    row = document.rows[0]
    assert row.cpp_eager_ms is not None and row.cpp_eager_ms.median == pytest.approx(5.1)
    assert row.saved_ms is not None and row.saved_ms.median == pytest.approx(0.9)
    assert row.host_issue_ms.median == 0.6
    assert row.cpp_issue_ms is not None and row.cpp_issue_ms.median == 1.1
    assert [one.engine for one in document.beside] == ["transformers"]


def test_prefill_cases_of_the_first_model_and_the_others() -> None:
    wanted = EXPERIMENTS["prefill_graph_gain"].with_overrides(
        {"tokens": [128, 256], "cached_tokens": [4096], "tokens_beside": [512]}
    )
    assert prefill_graph_gain.cases(wanted) == {
        "lean": [(128, 0), (256, 0), (256, 4096)],
        "transformers": [(512, 0), (256, 4096)],
    }


def test_a_case_that_is_named_twice_is_measured_once() -> None:
    wanted = EXPERIMENTS["prefill_graph_gain"].with_overrides(
        {"models": ["lean"], "tokens": [256, 256], "cached_tokens": [0]}
    )
    assert prefill_graph_gain.cases(wanted) == {"lean": [(256, 0)]}


def test_another_model_is_named_in_the_parameters() -> None:
    wanted = EXPERIMENTS["decode_graph_gain"].with_overrides({"layers": 8})
    assert parameters(wanted, "Qwen/Qwen3-8B")["model"] == "Qwen/Qwen3-8B"
    assert parameters(wanted, "Qwen/Qwen3-8B")["engine"] == "transformers"
    assert parameters(wanted, "lean")["model"] == "Qwen3.8-27B"
    assert parameters(wanted, "lean")["layers"] == 8
