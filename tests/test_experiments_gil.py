"""The `gil` experiment, for real but short."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_here import needs_gpu
from graphgain.errors import ConfigError, MeasureError
from graphgain.experiments import EXPERIMENTS, Context, gil, gil_gpu_process, gil_process
from graphgain.experiments.gil_interpreters import find_interpreters
from graphgain.experiments.gil_lock_step import min_samples, resampled, slowest_of, supported
from graphgain.experiments.gil_ranks_process import steps_us
from graphgain.measuring.cc import build_c_library, find_cc
from graphgain.measuring.native import SOURCES
from graphgain.measuring.packages import is_importable
from graphgain.measuring.provenance import experiment_sources
from graphgain.measuring.run import measure
from graphgain.results.store import read_document
from graphgain.results.threads import Gil
from test_experiments_rows import validated

DEFAULTS = EXPERIMENTS["gil"].parameters
SHORT = {
    **DEFAULTS,
    "background": ["compute"],
    "background_threads": [0, 1],
    "spin_us": [0.0],
    "switch_intervals_ms": [0.5],
    "interpreters": ["3.99"],
    "rank_backgrounds": ["poll:1"],
    "ranks": [1, 2, 64],
    "rank_s": 0.02,
    "intervals": 200,
    "min_s": 0.02,
    "limit_s": 0.1,
    "warmup_s": 0.005,
    "process_runs": 2,
}
needs_cc = pytest.mark.skipif(find_cc() is None, reason="no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """spin.c, compiled."""
    built = build_c_library(SOURCES / "gil" / "spin.c", tmp_path_factory.mktemp("build"))
    assert built is not None
    return str(built)


def test_a_short_run_makes_a_valid_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    document = read_document(measure(EXPERIMENTS["gil"], tmp_path / "here", SHORT))
    assert isinstance(document, Gil)
    settings = [
        (row.background, row.background_threads, row.spin_us, row.switch_interval_ms, row.gil)
        for row in document.rows
    ]
    assert settings == [
        ("none", 0, 5.0, 5.0, "released"),
        ("compute", 1, 5.0, 5.0, "released"),
        ("none", 0, 0.0, 5.0, "released"),
        ("compute", 1, 0.0, 5.0, "released"),
        ("compute", 1, 5.0, 0.5, "released"),
        ("none", 0, 1.0, 5.0, "kept"),
        ("compute", 1, 1.0, 5.0, "kept"),
        ("none", 0, 5.0, 5.0, "kept"),
        ("compute", 1, 5.0, 5.0, "kept"),
    ]
    for row in document.rows:
        assert row.interval_us.runs is not None and len(row.interval_us.runs) == 2
        assert row.interval_us.value <= row.max_us
        assert row.interval_us.n is not None
        assert (row.p99_us is None) == (row.interval_us.n < 459)
        assert row.quantiles_us[0] is not None and row.quantiles_us[-1] == row.max_us
        assert (row.bare_loop_us is None) == (row.background_threads > 0)
        assert row.call_us.value >= row.empty_us.value or row.spin_us == 0
        assert row.interval_us.value > row.spin_us / 2
    assert [found.skipped for found in document.interpreters] == ["not installed"]
    assert document.provenance is not None and document.provenance.parameters == SHORT
    assert bool(document.lock_step) == (document.lock_step_skipped is None) == bool(find_cc())
    assert bool(document.gpu) == (document.gpu_skipped is None)


def series(intervals_us: list[float], bare_us: Any = (), thread_us: Any = ()) -> dict[str, Any]:
    lengths, counts = np.unique(np.round(1000 * np.array(intervals_us)), return_counts=True)
    return {
        "empty_us": [0.5, 0.5],
        "call_us": [5.5, 5.5],
        "bare_us": list(bare_us),
        "thread_us": list(thread_us),
        "interval_ns": lengths.tolist(),
        "interval_count": counts.tolist(),
    }


SETTING = gil.Setting("compute", 1, 5.0, 5.0)
PYTHON = {"python": "3.12.3", "free_threaded": False, "gil": True}


def test_a_row_counts_long_intervals_and_withholds_what_few_cannot_tell() -> None:
    row = gil.row(SETTING, PYTHON, [series([10.0] * 90 + [6000.0] * 10), series([10.0] * 100)])
    assert row["share_over_1ms_percent"] == row["share_interrupted_percent"] == 5.0
    assert row["max_us"] == 6000.0 and row["interval_us"]["median"] == 10.0
    assert row["p90_us"] == 10.0 and row["p99_us"] is None
    # The interruptions are of one run only; the other has none.
    assert row["interruption_us"]["median"] == 6000.0 and row["interruption_us"]["n"] == 10
    assert row["interruption_mode_us"] == pytest.approx(6000, rel=0.012)
    assert row["mode_us"] == pytest.approx(10, rel=0.012)
    # Mean interval 609 µs and 10 µs.
    assert row["calls_per_s"]["runs"] == pytest.approx([1642.04, 100000.0])
    assert "bare_loop_us" not in row
    one = [series([10.0] * 458 + [20.0])]
    assert gil.row(SETTING, PYTHON, one)["p99_us"] == 10.0
    assert gil.row(SETTING, PYTHON, one)["p999_us"] is None
    assert gil.row(SETTING, PYTHON, [series([10.0] * 458)])["p99_us"] is None


def test_a_distribution_is_kept_as_far_as_its_intervals_tell_it() -> None:
    many = [float(us) for us in range(1, 10_001)]
    row = gil.row(SETTING, PYTHON, [series(many)])
    kept = dict(zip(gil.PROBABILITIES, row["quantiles_us"], strict=True))
    assert kept[0.0] == 1 and kept[1.0] == 10_000
    assert kept[0.5] == pytest.approx(5000.5) and kept[0.999] == pytest.approx(9990, rel=1e-4)
    assert row["p999_us"] == pytest.approx(kept[0.999])
    assert kept[0.9998] is None and kept[0.0001] is None
    few = gil.row(SETTING, PYTHON, [series(many[:459])])["quantiles_us"]
    told = {p for p, us in zip(gil.PROBABILITIES, few, strict=True) if us is not None}
    assert {0.0, 0.01, 0.02, 0.5, 0.98, 0.99, 1.0} <= told and not told & {0.001, 0.995, 0.999}
    assert list(gil.PROBABILITIES) == sorted(set(gil.PROBABILITIES))


def test_the_loops_with_and_without_a_thread_are_compared_in_pairs() -> None:
    setting = gil.Setting("none", 0, 5.0, 5.0)
    # The core's speed halves between the turns; each pair sees it.
    runs = [series([10.0], [10, 20], [10.5, 21]), series([10.0], [10, 20, 40], [10, 20, 80])]
    row = gil.row(setting, PYTHON, runs)
    assert row["above_bare_loop_percent"]["runs"] == [5.0, 0.0]
    assert row["bare_loop_us"]["median"] == 20.0


def test_a_loop_in_a_thread_is_the_same_loop() -> None:
    calls: list[int] = []
    bare, threaded = gil_process.compare_loops(calls.append, 7, 0.05)
    assert len(bare) == len(threaded) == gil_process.PAIRS
    assert all(us > 0 for us in (*bare, *threaded))


def test_settings_are_slices_without_repetition() -> None:
    chosen = gil.settings(DEFAULTS)
    assert len(chosen) == len(set(chosen)) < 40
    crowd = {(s.background, s.background_threads) for s in chosen if s.spin_us == 5.0}
    assert crowd >= {(kind, n) for kind in ("compute", "poll", "io") for n in (1, 2, 4, 6, 10)}
    assert {s.spin_us for s in chosen if s.gil == "released"} == {0.0, 1.0, 5.0, 20.0}
    assert {s.switch_interval_ms for s in chosen} == {0.5, 1.0, 5.0, 20.0}
    assert {s.spin_us for s in chosen if s.gil == "kept"} == {1.0, 5.0}


def test_a_python_without_a_gil_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a free-threaded build, where this function exists and says so.
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(MeasureError, match="without a GIL"):
        gil.measure(Context(parameters=SHORT, build=tmp_path, arch="native"))


@needs_cc
@pytest.mark.parametrize("compiled", [True, False])
def test_the_stub_releases_the_gil_or_keeps_it(compiled: bool, library: str) -> None:
    """While one thread is in a very long call, another one runs only if the GIL is released."""
    stub = gil_process.Stub(library if compiled else None)
    for holding in ("released", "kept"):
        call = stub.call(holding)
        # Longer than a thread takes to wake, or it would find the GIL taken again; and not longer
        # than the slowest call that is there without a compiler lasts on a fast machine.
        argument = stub.argument(call, 150.0)
        events: list[str] = []
        inside = threading.Event()

        def call_for_long(
            call: Any = call, argument: int = argument, events: Any = events, inside: Any = inside
        ) -> None:
            inside.set()
            for _ in range(500):
                call(argument)
            events.append("calls ended")

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # so that only a released GIL lets the other thread run
        try:
            thread = threading.Thread(target=call_for_long)
            thread.start()
            inside.wait()
            events.append("other thread ran")
            thread.join()
        finally:
            sys.setswitchinterval(interval)
        first = "other thread ran" if holding == "released" else "calls ended"
        assert events[0] == first, holding


@needs_cc
def test_the_spin_lasts_as_long_as_asked(library: str) -> None:
    """By the clock that it watches; a busy machine can only make it longer."""
    call = gil_process.Stub(library).call("kept")
    assert min(gil_process.durations_us(call, 200_000, 20)) >= 200
    assert min(gil_process.durations_us(call, 0, 2000)) < 200


def test_without_a_compiler_a_call_cannot_be_longer_than_its_buffer() -> None:
    stub = gil_process.Stub(None)
    with pytest.raises(SystemExit, match="spin_us 1e\\+09 is more than"):
        stub.argument(stub.call("released"), 1e9)


def test_the_launcher_runs_for_its_time_and_its_number() -> None:
    calls: list[int] = []
    timing = {"background": "compute", "background_threads": 1, "warmup_s": 0.005}
    limits = {"intervals": 10, "min_s": 0.02, "limit_s": 1.0}
    intervals = gil_process.measure(calls.append, 7, {**timing, **limits})
    assert 10 <= len(intervals) < len(calls) and set(calls) == {7}
    assert sum(intervals) >= 0.02e9 - max(intervals)
    many = {"intervals": 10**9, "min_s": 0.0, "limit_s": 0.02}
    intervals = gil_process.measure(calls.append, 7, {**timing, **many})
    assert sum(intervals) >= 0.02e9 - max(intervals)


@needs_cc
@pytest.mark.parametrize("holding", ["released", "kept"])
def test_a_computing_thread_interrupts_for_a_switch_interval(library: str, holding: str) -> None:
    """The model's prediction: whoever lost the GIL has it back after one switch interval.

    How near it is to that is looked at in the documents; a busy machine can only delay it here. A
    long interval, so that what the operating system preempts is shorter.
    """
    timing = {"intervals": 10**9, "min_s": 0.0, "limit_s": 0.6, "warmup_s": 0.01}
    setting = {"background": "compute", "background_threads": 1, **timing}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.020)
    try:
        call = gil_process.Stub(library).call(holding)
        intervals = gil_process.measure(call, 1000, setting)
    finally:
        sys.setswitchinterval(interval)
    interruptions = np.array([ns / 1000 for ns in intervals if ns > 10e6])
    assert len(interruptions) >= 1
    assert np.median(interruptions) >= 20_000


@needs_cc
def test_another_process_gives_the_runs_of_its_copies(library: str) -> None:
    setting = {
        **{"background": "none", "background_threads": 0, "spin_us": 1.0, "gil": "released"},
        **{"switch_interval_ms": 5.0, "intervals": 5, "min_s": 0.0, "limit_s": 0.1},
        "warmup_s": 0.0,
    }
    argument = json.dumps({"library": library, "processes": 2, "settings": [setting]})
    # By its path and without this package, as other interpreters run it.
    done = subprocess.run(
        [sys.executable, "-I", gil_process.__file__, argument],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 2
    for run in runs:
        assert run["gil"] is True and run["python"].startswith(f"3.{sys.version_info.minor}.")
        assert sum(run["series"][0]["interval_count"]) >= 5
        assert len(run["series"][0]["thread_us"]) == gil_process.PAIRS


def test_interpreters_are_asked_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fake(name: str, answer: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{answer}'\n")
        path.chmod(0o755)

    fake("python3.98", '["3.98.1", false, "CPython"]')
    fake("python3.98t", '["3.98.1", true, "CPython"]')
    fake("python3.97", '["3.97.0", false, "PyPy"]')
    fake("python3.96", "no JSON")
    fake("python3.95t", '["3.95.0", false, "CPython"]')  # not free-threaded, whatever its name says
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
    found = find_interpreters(["3.98", "3.98t", "3.97", "3.96", "3.95t", "3.94"])
    versions = {release: one and (one.version, one.free_threaded) for release, one in found.items()}
    assert versions == {
        **{"3.98": ("3.98.1", False), "3.98t": ("3.98.1", True)},
        **dict.fromkeys(("3.97", "3.96", "3.95t", "3.94")),
    }
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = find_interpreters([here])[here]
    assert own is not None and own.path == sys.executable


def test_a_groups_step_is_the_slowest_of_its_ranks() -> None:
    steps = np.array([1.0] * 99 + [100.0])
    assert (slowest_of(steps, 1) == 100).mean() == pytest.approx(0.01, abs=0.003)
    # 64 ranks: a slow one among them in 1 - 0.99^64 = 47 % of the steps.
    assert (slowest_of(steps, 64) == 100).mean() == pytest.approx(1 - 0.99**64, abs=0.02)
    assert (slowest_of(steps, 64) == slowest_of(steps, 64)).all()  # a fixed seed


def test_a_percentile_of_a_group_needs_more_samples_of_one_rank() -> None:
    assert [min_samples(percent) for percent in (50, 90, 99, 99.9)] == [7, 44, 459, 4603]
    assert supported(99, 459) and not supported(99, 458)
    assert supported(50, 426, ranks=64) and not supported(50, 425, ranks=64)
    rows = resampled(np.linspace(1, 2, 459), [1, 64])
    assert [row["ranks"] for row in rows] == [1, 64]
    assert rows[0]["p99_us"] is not None and rows[1]["p50_us"] is not None
    assert rows[1]["p90_us"] is None and rows[1]["p99_us"] is None
    assert rows[1]["p50_us"] > rows[0]["p50_us"]


def test_a_step_ends_when_the_last_rank_arrives() -> None:
    assert steps_us([[0, 5000, 9000], [1000, 4000, 12000]]) == [4.0, 7.0]


def test_a_background_that_is_no_kind_and_number_is_refused() -> None:
    assert gil.parse_background("poll:4") == ("poll", 4)
    for text in ("poll", "poll:", "poll:x", "sleep:1"):
        with pytest.raises(ConfigError, match="such as poll:4"):
            gil.parse_background(text)


GPU_ARGUMENT = {
    **{"launches": 4, "kernel_us": 6.0, "switch_interval_ms": 5.0, "intervals": 10},
    **{"min_s": 0.0, "limit_s": 0.01},
    "settings": [{"background": "none", "background_threads": 0, "gil": "kept"}],
}

FAKE_TVM_FFI = '''
"""A GPU whose clock does one cycle a nanosecond."""
def load_module(path):
    class Function:
        release_gil = True
        def __call__(self, cycles): assert cycles == 6000 and self.release_gil is False
    class Module:
        launch = Function()
        def gpu_us(self, cycles, kernels): return cycles / 1000
        def synchronize(self): pass
    return Module()
'''


def test_the_gpu_process_with_a_fake_gpu(tmp_path: Path) -> None:
    (tmp_path / "tvm_ffi.py").write_text(FAKE_TVM_FFI)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.pathsep.join(sys.path)}"}
    done = subprocess.run(
        [sys.executable, "-m", gil_gpu_process.__name__, "library.so", json.dumps(GPU_ARGUMENT)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = json.loads(done.stdout)
    assert set(printed["gpu_us"]) == {6.0}
    # Three intervals in each step of four launches.
    (one,) = printed["series"]
    assert sum(one["interval_count"]) == 3 * len(one["step_us"]) >= 10


def test_the_gpu_idles_for_what_its_kernels_leave_of_a_step() -> None:
    run = {
        "gpu_us": [6.0, 6.0],
        "series": [{"interval_ns": [5000], "interval_count": [3], "step_us": [24.0, 48.0, 12.0]}],
    }
    (row,) = gil.gpu_rows(GPU_ARGUMENT, [run, run])
    # 24 µs of kernels: all, half, and (a clock is never perfect) more than all of it.
    assert row["gpu_idle_percent"]["runs"] == [0.0, 0.0] and row["gpu_idle_percent"]["n"] == 6
    slow = {**run, "series": [{**run["series"][0], "step_us": [48.0, 96.0, 96.0]}]}
    assert gil.gpu_rows(GPU_ARGUMENT, [slow])[0]["gpu_idle_percent"]["median"] == 75.0
    parameters = {"python": "3.12.3", "switch_interval_ms": 5.0}
    document = validated(
        "gil", parameters, {"gpu": [row], "probabilities": list(gil.PROBABILITIES)}
    )
    assert isinstance(document, Gil) and document.gpu[0].launches_per_step == 4


def test_quantiles_without_their_probabilities_are_refused() -> None:
    row = gil.row(SETTING, PYTHON, [series([float(us) for us in range(10_000)])])
    parameters = {"python": "3.12.3", "switch_interval_ms": 5.0}
    probabilities = list(gil.PROBABILITIES)
    validated("gil", parameters, {"rows": [row], "probabilities": probabilities})
    with pytest.raises(ValueError, match="quantiles, but there are"):
        validated("gil", parameters, {"rows": [row], "probabilities": probabilities[:-1]})


def test_every_process_and_native_source_is_hashed() -> None:
    names = {file.name for file in experiment_sources(EXPERIMENTS["gil"])}
    assert {"gil_process.py", "gil_ranks_process.py", "gil_gpu_process.py"} <= names
    assert {"gil_lock_step.py", "spin.c", "spin_kernel.cu"} <= names


def test_a_c_source_that_does_not_compile_is_shown(tmp_path: Path) -> None:
    if find_cc() is None:
        pytest.skip("no C compiler")
    source = tmp_path / "broken.c"
    source.write_text("int main( {")
    with pytest.raises(MeasureError, match=r"could not compile .*broken\.c"):
        build_c_library(source, tmp_path)
    assert list((tmp_path / "native").iterdir()) == []


@pytest.mark.gpu
@needs_gpu
@pytest.mark.skipif(not is_importable("tvm_ffi"), reason="apache-tvm-ffi is not installed")
def test_on_a_gpu_real_launches_are_measured(tmp_path: Path) -> None:
    wanted = {**SHORT, "gpu_backgrounds": ["compute:1"], "gpu_limit_s": 0.2, "gpu_launches": 64}
    rows, skipped = gil.run_gpu(Context(parameters=wanted, build=tmp_path, arch="native"))
    assert skipped is None
    assert [(row["background"], row["gil"]) for row in rows] == [
        *(("none", "released"), ("compute", "released"), ("none", "kept"), ("compute", "kept"))
    ]
    assert all(row["gpu_us_per_kernel"]["median"] > 0 for row in rows)
