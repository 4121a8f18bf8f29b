"""The `gil` experiment, for real but short."""

import sys
import threading
from pathlib import Path

import pytest

from graphgain.errors import MeasureError
from graphgain.experiments import EXPERIMENTS, Context, gil, gil_process
from graphgain.measuring.run import measure
from graphgain.results.store import read_document
from graphgain.results.threads import Gil

SHORT = {
    "background_threads": [0, 1],
    "spin_us": [2.0],
    "duration_s": 0.05,
    "warmup_s": 0.01,
    "switch_interval_ms": 1.0,
    "process_runs": 2,
}


def test_a_short_run_makes_a_valid_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    document = read_document(measure(EXPERIMENTS["gil"], tmp_path / "here", SHORT))
    assert isinstance(document, Gil)
    assert [row.background_threads for row in document.rows] == [0, 1]
    for row in document.rows:
        assert row.spin_us == 2.0 and row.call_us is not None
        assert row.interval_us.runs is not None and len(row.interval_us.runs) == 2
        assert row.interval_us.value <= row.p90_us <= row.max_us
        assert row.interval_us.n is not None
        assert (row.p99_us is None) == (row.interval_us.n < 459)
    assert document.parameters.switch_interval_ms == 1.0
    assert document.provenance is not None
    assert document.provenance.parameters == SHORT
    assert document.provenance.gpu_before is None or document.provenance.gpu_after is not None


def series(intervals: list[float]) -> dict[str, object]:
    return {
        "background_threads": 1,
        "spin_us": 2.0,
        "call_us": [2.0, 2.0],
        "intervals_us": intervals,
    }


def test_a_row_counts_long_intervals_and_withholds_p99_of_few() -> None:
    row = gil.row((series([10.0] * 90 + [2000.0] * 10), series([10.0] * 100)))
    assert row["share_over_1ms_percent"] == 5.0
    assert row["max_us"] == 2000.0 and row["interval_us"]["median"] == 10.0
    assert row["p99_us"] is None
    # Mean interval 209 µs and 10 µs.
    assert row["calls_per_s"]["runs"] == pytest.approx([4784.69, 100000.0])
    assert gil.row((series([10.0] * 230), series([10.0] * 229)))["p99_us"] == 10.0
    assert gil.row((series([10.0] * 229), series([10.0] * 229)))["p99_us"] is None


def test_a_python_without_a_gil_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The child is the real one but for its interpreter, which says that it has no GIL.
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho \'{"gil": false, "series": []}\'\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(MeasureError, match="without a GIL"):
        gil.measure(Context(parameters=SHORT, build=tmp_path, arch="native"))


def test_the_stub_releases_the_gil() -> None:
    """While one thread is in a very long call, another one runs and sees it unfinished."""
    events: list[str] = []
    # Far longer than a thread takes to wake, or it would find the GIL taken again.
    stub, _ = gil_process.calibrated_stub(400.0)
    inside = threading.Event()

    def call_for_long() -> None:
        inside.set()
        for _ in range(1000):
            stub()
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
    assert events == ["other thread ran", "calls ended"]


def test_the_launcher_runs_for_its_time_and_drops_the_warm_up() -> None:
    calls: list[None] = []
    intervals = gil_process.measure(lambda: calls.append(None), 1, 0.02, 0.005)
    assert 0 < len(intervals) < len(calls)
    assert all(interval >= 0 for interval in intervals)
    assert sum(intervals) <= 1e6 * 0.02 + max(intervals)


def test_a_call_cannot_be_longer_than_its_buffer() -> None:
    with pytest.raises(SystemExit, match="spin_us 1e\\+09 is more than"):
        gil_process.calibrated_stub(1e9)
