"""On a real GPU: the native experiments end to end, and launch_floor beside a plain program."""

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphgain.experiments import EXPERIMENTS, missing_tools
from graphgain.measuring.gpu import device_files_exist
from graphgain.measuring.native import SOURCES, build_program, run_program_repeatedly
from graphgain.measuring.process import run_json
from graphgain.measuring.run import measure
from graphgain.results.launches import FfiLaunch, GemmHostCost, Handoff, LaunchFloor
from graphgain.results.store import read_document

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_files_exist(), reason="needs an NVIDIA GPU"),
]

REFERENCE = Path(__file__).parent / "native" / "launch_reference.cu"
FEW = {"rounds": 10, "warmup": 2, "process_runs": 2}
SMALL = {
    "launch_floor": {**FEW, "max_rounds": 10, "graph_lengths": [1, 512], "argument_counts": [8]},
    "gemm_host_cost": {**FEW, "max_rounds": 10, "shapes": ["96x5120:in_proj_ba=48"]},
    "handoff": {
        **FEW,
        "max_rounds": 10,
        "kernel_us": [2.0],
        "grids": ["1"],
        "argument_bytes": [8],
    },
    "ffi_launch": FEW,
}


def measured(name: str, folder: Path) -> object:
    experiment = EXPERIMENTS[name]
    reason = missing_tools(experiment)
    if reason:
        pytest.skip(reason)
    return read_document(measure(experiment, folder / "here", SMALL[name], build=folder / "build"))


def test_launch_floor(tmp_path: Path) -> None:
    document = measured("launch_floor", tmp_path)
    assert isinstance(document, LaunchFloor)
    host_us = {row.path: row.host_us.value for row in document.rows if row.launches == 512}
    assert host_us["graph"] < 0.1 * host_us["driver"]
    assert document.outstanding_launches is not None
    assert document.outstanding_launches.value > 100


def test_gemm_host_cost(tmp_path: Path) -> None:
    document = measured("gemm_host_cost", tmp_path)
    assert isinstance(document, GemmHostCost)
    (row,) = document.rows
    assert row.kernels is not None and len(row.kernels) == row.kernels_per_call
    assert row.bare_us is not None and row.bare_us.value < row.host_us.value


def test_handoff(tmp_path: Path) -> None:
    document = measured("handoff", tmp_path)
    assert isinstance(document, Handoff)
    assert {row.pdl: row.programmatic_edges for row in document.rows} == {False: 0, True: 255}
    for row in document.rows:
        assert row.bare_us is not None and row.bare_us.value == pytest.approx(2.0, rel=0.1)
        assert row.eager_us.value > row.bare_us.value


def test_ffi_launch(tmp_path: Path) -> None:
    document = measured("ffi_launch", tmp_path)
    assert isinstance(document, FfiLaunch)
    host_us = {row.path: row.host_us.value for row in document.rows}
    assert host_us["graph"] < host_us["cpp_loop"] < host_us["python_tvm_ffi"]


@pytest.fixture
def one_core() -> Iterator[None]:
    """Everything on one core: cores of a shared machine are not equally fast."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("one_core")
def test_launch_floor_agrees_with_a_plain_program_run_alternately(tmp_path: Path) -> None:
    """Within 5 %: the median ratio of neighbouring runs, ours first and the plain one first in
    turns, so that a drift of the machine lengthens as many ratios as it shortens."""
    reason = missing_tools(EXPERIMENTS["launch_floor"])
    if reason:
        pytest.skip(reason)
    ours = build_program(SOURCES / "launch_floor.cu", tmp_path, "native")
    plain = build_program(REFERENCE, tmp_path, "native")
    options = {"paths": ["driver", "runtime", "graph"], "argument_counts": [1]}
    options |= {"graph_lengths": [1], "outstanding_repeats": 1}

    def run_ours() -> dict[str, float]:
        runs = run_program_repeatedly(ours, "launch_floor", options, process_runs=1)
        return {path: runs.quantity("host_us", "launch", path=path)["median"] for path in ratios}

    def run_plain() -> dict[str, float]:
        printed = run_json([plain], name="launch_reference", timeout_s=120)
        return {path: printed[f"{path}_us"] for path in ratios}

    ratios: dict[str, list[float]] = {"driver": [], "runtime": [], "graph": []}
    lines = []
    for pair in range(8):
        order = [run_ours, run_plain] if pair % 2 == 0 else [run_plain, run_ours]
        found = {run: run() for run in order}
        for path, each in ratios.items():
            each.append(found[run_ours][path] / found[run_plain][path])
            lines.append(f"{path}: {found[run_ours][path]} beside {found[run_plain][path]} us")
    print(*sorted(lines), sep="\n")
    for path, each in ratios.items():
        assert statistics.median(each) == pytest.approx(1, rel=0.05), (path, each)
