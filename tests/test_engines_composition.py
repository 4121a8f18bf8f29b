"""Traces: read as a stream, requests told apart, and what each one's time consists of."""

import contextlib
import gzip
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_engine import call, kineto, operation
from graphgain.__main__ import main
from graphgain.engines import kineto as reader
from graphgain.engines.composition import compose, occupation, request_starts, starts_by_clock
from graphgain.engines.kineto import ProfileError, Trace, read_trace
from graphgain.engines.nsys import read_nsys
from graphgain.engines.profiling import around


def written(tmp_path: Path, content: Any, name: str = "t.json", indent: int | None = None) -> Path:
    path = tmp_path / name
    text = json.dumps(content, indent=indent)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("chunk", [7, 100, 1 << 22])
def test_a_trace_is_read_whatever_the_size_of_the_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, indent: int | None, chunk: int
) -> None:
    monkeypatch.setattr(reader, "_CHUNK", chunk)
    trace = read_trace(written(tmp_path, kineto(2), name, indent))
    assert len(trace.launch_us) == 8 and len(trace.start_us) == 10
    assert trace.launch_graph.sum() == 2 and trace.base_ns is None
    assert list(np.diff(trace.launch_us) >= 0) == [True] * 7


@pytest.mark.parametrize("after", [False, True])
def test_the_time_base_is_found_before_and_after_the_events(tmp_path: Path, after: bool) -> None:
    base = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
    content = {**kineto(1), **base} if after else {**base, **kineto(1)}
    assert read_trace(written(tmp_path, content)).base_ns == base["baseTimeNanoseconds"]


@pytest.mark.parametrize(
    "text", ["", "{}", '{"traceEvents": [', '{"traceEvents": [{"cat": "kernel"', "[1]", "\x00\x01"]
)
def test_what_is_no_trace_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ProfileError, match=r"broken\.json: not a readable trace"):
        read_trace(path)


def test_a_trace_cut_off_in_its_gzip_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, kineto(50), "cut.json.gz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ProfileError, match=r"cut\.json\.gz"):
        read_trace(path)


def test_calls_that_put_nothing_on_the_gpu_are_no_launches(tmp_path: Path) -> None:
    content = kineto(1)
    assert "cudaDeviceSynchronize" in json.dumps(content)
    assert len(read_trace(written(tmp_path, content)).launch_us) == 4


def test_the_composition_of_known_requests(tmp_path: Path) -> None:
    found = compose(read_trace(written(tmp_path, kineto(3))), 3)
    assert len(found) == 3
    for one in found:
        # Three kernels of 30 µs 100 µs apart, and a graph of two of 40 µs with 10 µs between.
        assert one.busy_ms == pytest.approx(0.170)
        assert one.span_ms == pytest.approx(0.410)
        assert (one.launches, one.graph_launches) == (4, 1)
        assert (one.kernels, one.kernels_in_graphs) == (5, 2)
        assert one.interval_us == one.interval_median_us == pytest.approx(100)
        # Idle 70 µs three times: 50 until the next launch begins, 20 until its kernel does.
        assert one.waiting_for_host_ms == pytest.approx(0.150)
        assert one.between_kernels_ms == pytest.approx(0.060 + 0.010)


def test_the_next_tokens_work_is_no_part_of_the_first(tmp_path: Path) -> None:
    # The graph of two kernels (320 to 410 µs) is launched at 300; the token comes at 380.
    trace = read_trace(written(tmp_path, kineto(2)))
    first = [float(start) for start in (trace.launch_us[0], trace.launch_us[4])]
    for one in compose(trace, 2, [(at - 50, at + 380) for at in first]):
        assert (one.launches, one.graph_launches) == (3, 0)
        assert (one.kernels, one.kernels_in_graphs) == (3, 0)
        assert one.busy_ms == pytest.approx(0.090) and one.span_ms == pytest.approx(0.250)
    whole = compose(trace, 2)
    assert compose(trace, 2, [(at - 50, at + 500) for at in first]) == whole
    # Times of a clock that is not the trace's leave nothing out.
    assert compose(trace, 2, [(at - 10**9, at - 10**9 + 380) for at in first]) == whole


def real(name: str) -> Trace:
    """The first two of five requests of 128 tokens on an H200 node; the launches and operations of
    the trace, less what is not read."""
    return read_trace(Path(__file__).parent / "traces" / f"{name}.json.gz")


def test_a_real_trace_of_vllm() -> None:
    trace = real("vllm_piecewise_128")
    first, second = compose(trace, 2)
    for one in (first, second):
        # A graph for each of 64 layers and one more; the model has 1,641 kernels in this prefill.
        assert (one.graph_launches, one.launches) == (65, 951)
        assert (one.kernels, one.kernels_in_graphs) == (1641, 834)
        assert one.busy_ms == pytest.approx(19.74, abs=0.02)
        idle = one.waiting_for_host_ms + one.between_kernels_ms
        assert one.busy_ms + idle == pytest.approx(one.span_ms, abs=0.2)
    # vLLM waits for the first token before it starts the next: with the client's times the same.
    spans = [(one.first_launch_us - 4000, one.last_end_us + 2500) for one in (first, second)]
    assert compose(trace, 2, spans) == [first, second]


def test_a_real_trace_of_sglang_which_starts_the_next_token_early() -> None:
    trace = real("sglang_no_prefill_graph_128")
    whole = compose(trace, 2)
    assert [(one.graph_launches, one.kernels_in_graphs) for one in whole] == [(1, 884)] * 2
    # The token came 10 ms before the graph of the decode step was done.
    spans = [(one.first_launch_us - 3500, one.last_end_us - 9977) for one in whole]
    for one, with_decode in zip(compose(trace, 2, spans), whole, strict=True):
        assert (one.graph_launches, one.kernels, one.launches) == (0, 1703, 1747)
        assert one.busy_ms == pytest.approx(20.45, abs=0.02)
        assert with_decode.busy_ms - one.busy_ms == pytest.approx(14.3, abs=0.1)


def test_copies_and_fills_keep_the_gpu_busy_but_are_no_kernels(tmp_path: Path) -> None:
    events = [
        call("cudaMemcpyAsync", 0, 1), operation("gpu_memcpy", 10, 20, 1),
        call("cudaMemsetAsync", 5, 2), operation("gpu_memset", 20, 30, 2),
        call("cuLaunchKernelEx", 6, 3), operation("kernel", 50, 10, 3),
    ]  # fmt: skip
    (one,) = compose(read_trace(written(tmp_path, {"traceEvents": events})), 1)
    assert one.busy_ms == pytest.approx(0.050) and one.kernels == 1 and one.launches == 3


def test_the_interval_is_of_the_launching_thread(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for index in range(5):
        events.append(call("cudaLaunchKernel", 10 * index, index))
        events.append(operation("kernel", 10 * index + 5, 1, index))
    other = call("cudaMemcpyAsync", 13, 9) | {"tid": 8}
    events += [other, operation("gpu_memcpy", 14, 1, 9)]
    (one,) = compose(read_trace(written(tmp_path, {"traceEvents": events})), 1)
    assert one.interval_us == 10 and one.launches == 6


def test_occupation_of_overlapping_operations() -> None:
    start, end = np.array([0.0, 5, 8, 30]), np.array([10.0, 9, 20, 40])
    busy, waiting, between = occupation(start, end, launched=np.array([0.0, 0, 0, 26]))
    assert (busy, waiting, between) == (30, 6, 4)


def test_requests_that_cannot_be_told_apart_are_refused() -> None:
    even = np.arange(100, dtype=float)
    with pytest.raises(ProfileError, match="3 requests cannot be told apart"):
        request_starts(even, 3)
    with pytest.raises(ProfileError, match="2 launches, which cannot be 3"):
        request_starts(even[:2], 3)
    assert request_starts(np.array([0.0, 1, 2, 50, 51, 90]), 3) == [0, 50, 90]
    assert request_starts(even, 1) == [0]


def test_requests_are_told_apart_by_the_clients_clock_where_it_agrees() -> None:
    launches = np.array([10.0, 400, 401, 500, 501, 900])  # a long gap within the first request
    assert starts_by_clock(launches, [(5, 450), (490, 950)]) == [10, 500]
    assert starts_by_clock(launches, [(50, 450), (490, 950)]) is None
    assert starts_by_clock(launches, [(5, 450), (910, 950)]) is None
    assert starts_by_clock(launches, [(5, 450), (502, 600)]) is None


def test_a_clock_that_is_not_the_clients_gives_no_times_around(tmp_path: Path) -> None:
    found = compose(read_trace(written(tmp_path, kineto(1))), 1)
    sent = 10**18
    base = sent + 5_000_000 - 1_000_000_000  # the first launch is 1 s after the base
    times = [(sent, sent + 6_000_000)]
    ((before, after),) = around(found, times, base) or [(0, 0)]
    assert before == pytest.approx(5.0) and after == pytest.approx(1.0 - 0.410)
    assert around(found, times, base - 10**15) is None
    assert around(found, times, None) is None


def test_memory_does_not_grow_with_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_CHUNK", 4096)
    longest = 0

    class Counting(io.StringIO):
        def read(self, size: int | None = -1) -> str:
            assert size == 4096
            return super().read(size)

    text = json.dumps(kineto(2000))
    for event in reader.events(Counting(text), []):
        longest = max(longest, len(json.dumps(event)))
    assert longest < 4096 < len(text)


def test_trace_type() -> None:
    trace = reader.trace_of([[0.0], [1], [2], [1]], [[3.0], [4.0], [1], [0]], None)
    assert isinstance(trace, Trace) and trace.launch_graph.dtype == np.bool_


def exported(path: Path, *, leave_out: str = "") -> Path:
    """The trace of two requests as nsys exports one."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE StringIds (id, value)")
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(start, end, globalTid, correlationId, nameId)"
        )
        for table in ("KERNEL", "MEMCPY"):
            file.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_{table} (start, end, correlationId)")
        names: dict[str, int] = {}
        for event in kineto(2)["traceEvents"]:  # type: ignore[attr-defined]
            if event["ph"] != "X":
                continue
            start, correlation = 1000 * event["ts"], event["args"]["correlation"]
            end = start + 1000 * event["dur"]
            if event["cat"] == "kernel":
                file.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)",
                    (start, end, correlation),
                )
                continue
            number = names.setdefault(event["name"], len(names))
            file.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)",
                (start, end, event["tid"], correlation, number),
            )
        file.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(n, name) for name, n in names.items()]
        )
        if leave_out:
            file.execute(f"DROP TABLE {leave_out}")
        file.commit()
    return path


def test_an_nsys_export_gives_the_same_as_the_torch_profiler(tmp_path: Path) -> None:
    from_nsys = compose(read_nsys(exported(tmp_path / "p.sqlite")), 2)
    from_torch = compose(read_trace(written(tmp_path, kineto(2))), 2)
    assert from_nsys == from_torch


def test_what_is_no_export_of_nsys_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_text("not a database, but long enough to be read as one" * 40)
    with pytest.raises(ProfileError, match=r"other\.sqlite: not an export"):
        read_nsys(other)
    with pytest.raises(ProfileError, match=r"missing\.sqlite: not an export"):
        read_nsys(tmp_path / "missing.sqlite")
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = exported(tmp_path / "host.sqlite", leave_out=table)
    with pytest.raises(ProfileError, match=rf"host\.sqlite: has no table {table}"):
        read_nsys(path)


@pytest.mark.parametrize("name", ["t.json.gz", "p.sqlite"])
def test_the_command_prints_what_a_trace_consists_of(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if name == "p.sqlite":
        exported(path)
    else:
        written(tmp_path, kineto(2), name)
    assert main(["ttft", "--compose", str(path), "--in-trace", "2"]) == 0
    shown = capsys.readouterr().out
    assert "request 2: 0.41 ms" in shown
    assert "4 launches (1 of graphs), 100.0 µs apart" in shown
    assert "5 kernels, 2 of them in graphs" in shown
    assert main(["ttft", "--compose", str(path), "--in-trace", "3"]) == 1
    assert "3 requests cannot be told apart" in capsys.readouterr().err
