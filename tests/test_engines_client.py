"""The client, points and a whole session against a fake engine, well-behaved and not."""

import asyncio
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine_stage import SWEEP, Serve, parameters, write_engine
from graphgain.__main__ import main
from graphgain.engines import keeping, modes
from graphgain.engines.client import Target, send_all
from graphgain.engines.config import load_engines, select
from graphgain.engines.keeping import keep_other_modes
from graphgain.engines.modes import Chosen, find_model
from graphgain.engines.null_server import client_cost
from graphgain.engines.points import measure_length, measure_points, read_point
from graphgain.engines.prompts import token_ids
from graphgain.engines.protocol import RequestError, request
from graphgain.engines.server import free_port
from graphgain.engines.session import measure_engines
from graphgain.errors import ConfigError, MeasureError, MissingToolError
from graphgain.experiments import EXPERIMENTS, missing_tools, ttft, ttft_breakdown
from graphgain.results.serving import Ttft, TtftBreakdown


@pytest.mark.parametrize("protocol", ["openai", "sglang"])
def test_a_length_is_measured(serve: Serve, protocol: Any) -> None:
    with serve("--protocol", protocol) as url:
        point = measure_length(Target(url, protocol), 64, SWEEP, run=1)
    assert len(point.ttft_ms) == 3 and min(point.ttft_ms) > 0
    summary = point.quantity()
    assert summary["low"] <= summary["median"] <= summary["high"] and summary["n"] == 3


@pytest.mark.parametrize("protocol", ["openai", "sglang"])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("500", "answered 500.*out of blocks"),
        ("garbage", "no JSON: '<html>'"),
        ("empty", "without a token"),
        ("error event", "aborted"),
        ("cached", "64 of 64 tokens came from the server's prefix cache"),
        ("other length", "64 tokens was counted as 65"),
        ("two tokens", "it made 2"),
    ],
)
def test_a_fault_makes_the_point_invalid(
    serve: Serve, fault: str, message: str, protocol: Any
) -> None:
    with (
        serve("--protocol", protocol, "--fault", fault) as url,
        pytest.raises(RequestError, match=message),
    ):
        measure_length(Target(url, protocol), 64, SWEEP, run=1)


def test_a_connection_closed_before_the_token_is_a_failure(serve: Serve) -> None:
    with (
        serve("--fault", "mid-stream") as url,
        pytest.raises(RequestError, match="without a token"),
    ):
        measure_length(Target(url, "openai"), 64, SWEEP, run=1)


def test_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RequestError, match="did not answer"):
        measure_length(Target(url, "openai"), 64, SWEEP, run=1)


def test_requests_can_be_sent_where_an_event_loop_runs(serve: Serve) -> None:
    async def within(url: str) -> float:
        return measure_length(Target(url, "openai"), 8, SWEEP, run=1).ttft_ms[0]

    # In a thread: other tests of this run may have left a loop running in this one.
    with serve() as url, ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(asyncio.run, within(url)).result() > 0


def test_concurrent_requests_come_back_in_order(serve: Serve) -> None:
    requests = [request("openai", "fake", [7] * length) for length in (3, 5, 8, 13)]
    with serve() as url:
        answers = send_all(Target(url, "openai"), requests, concurrency=2)
    assert [answer.usage.prompt_tokens for answer in answers] == [3, 5, 8, 13]


def test_prompts_differ_and_can_be_made_again() -> None:
    prompts = [token_ids(64, index, 5000, run) for index in range(3) for run in (1, 2)]
    assert len({tuple(ids) for ids in prompts}) == 6
    assert token_ids(64, 2, 5000, 2) == prompts[-1]
    # A vocabulary smaller than that of any real model, too.
    assert all(128 <= token < 256 for token in token_ids(64, 0, 256, 1))
    assert all(1000 <= token < 5000 for ids in prompts for token in ids)


def test_a_sweep_goes_on_where_it_stopped(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "points"
    with serve() as url:
        first = measure_points(Target(url, "openai"), [8], SWEEP, folder, "fake", lambda: None)
    checked = []
    url = f"http://127.0.0.1:{free_port()}"  # nobody is there any more: a request would fail
    with pytest.raises(RequestError, match="fake, 16 tokens"):
        measure_points(
            Target(url, "openai"), [8, 16], SWEEP, folder, "fake", lambda: checked.append(1)
        )
    assert checked and read_point(folder, 8, SWEEP) == first[0]
    assert read_point(folder, 16, SWEEP) is None


def test_a_point_that_is_no_point_is_named(tmp_path: Path) -> None:
    (tmp_path / "8.json").write_text('{"isl_tokens": 8}')
    with pytest.raises(MeasureError, match=r"8\.json: not a point"):
        read_point(tmp_path, 8, SWEEP)


def test_the_null_server_answers() -> None:
    (row,) = client_cost([16], requests=5, vocabulary=5000)
    assert row["isl_tokens"] == 16 and 0 < row["ttft_ms"]["median"] < 1000


@pytest.mark.parametrize("together", [False, True])
def test_a_session_makes_both_documents(project: Path, together: bool) -> None:
    wanted = parameters(together=together)
    measured, model, notes = measure_engines(wanted, project / "build")
    assert notes == [] and model.weights == "random"
    envelope = {
        "schema_version": 1,
        "machine": "here",
        "kind": "measured",
        "provenance": {
            "started_at": "2026-12-01T00:00:00Z", "ended_at": "2026-12-01T00:00:00Z",
            "command": [], "git_commit": None, "git_dirty": None, "source_hash": "0", "sources": [],
            "versions": {}, "process_runs": 1,
        },
    }  # fmt: skip
    document = Ttft.model_validate(
        {**envelope, "experiment": "ttft", **ttft.body(wanted, measured, model, notes)}
    )
    assert [(row.mode, row.isl_tokens) for row in document.rows] == [
        ("on", 8), ("on", 16), ("off", 8), ("off", 16),
    ]  # fmt: skip
    assert document.engines is not None
    run = document.engines[1]
    assert (run.version, run.mode_label, run.environment) == (
        "1.2.3", "without", {"GRAPH": "Qwen3.8-27B"},
    )  # fmt: skip
    assert run.settings == {
        "max_model_len": 20480, "attention": "FAKE", "capture_sizes": [1, 2, 4],
    }  # fmt: skip
    assert set(run.unavailable) == {"kv_cache", "nothing"}
    assert run.beside == (["fake:on"] if together else [])
    breakdown = TtftBreakdown.model_validate(
        {**envelope, "experiment": "ttft_breakdown", **ttft_breakdown.body(measured, model, notes)}
    )
    (row,) = breakdown.rows
    assert row.launches_per_request == 4 and row.kernels_in_graphs_per_request == 2
    assert breakdown.beside is not None and breakdown.beside[0].mode == "off"
    # The traces stay, so that they can be looked at, and composed again by other code.
    assert len(list(project.glob("build/ttft/*/trace-8.json.gz"))) == 2
    assert not list(project.glob("build/ttft/*/profile/*"))


def test_an_engine_without_a_profiler_is_swept_only(project: Path) -> None:
    write_engine(project, profiler=None)
    measured, _, _ = measure_engines(parameters(), project / "build")
    assert [len(one.points) for one in measured] == [2, 2]
    assert all(one.breakdown() == [] for one in measured)
    for log in project.glob("build/ttft/*/server.log"):
        log.unlink()
    measure_engines(parameters(), project / "build")
    assert not list(project.glob("build/ttft/*/server.log")), "it is complete without a profile"


def test_what_is_known_starts_no_server(project: Path) -> None:
    measured, _, _ = measure_engines(parameters(), project / "build")
    write_engine(project, label="Renamed")
    for log in project.glob("build/ttft/*/server.log"):
        log.unlink()
    again, _, _ = measure_engines(parameters(), project / "build")
    assert [one.points for one in again] == [one.points for one in measured]
    assert not list(project.glob("build/ttft/*/server.log"))
    measure_engines(parameters(lengths=[8, 16, 24], modes=["fake:on"]), project / "build")
    assert len(list(project.glob("build/ttft/*/server.log"))) == 1


def test_a_mode_that_fails_is_named_and_loses_no_other(project: Path) -> None:
    modes = {
        "bad": {"label": "bad", "arguments": ["--fault", "dies"]},
        "good": {"label": "good"},
    }
    write_engine(project, modes=modes)
    with pytest.raises(MeasureError, match=r"(?s)1 of 2 modes failed.*fake:bad ended.*memory"):
        measure_engines(parameters(), project / "build")
    measured, _, _ = measure_engines(parameters(modes=["fake:good"]), project / "build")
    assert len(measured[0].points) == 2


def test_without_engines_the_experiment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reason = missing_tools(EXPERIMENTS["ttft"])
    assert reason is not None and "config/engines: has no engine" in reason


def test_the_experiment_can_run_where_an_engine_can_be_started(project: Path) -> None:
    assert missing_tools(EXPERIMENTS["ttft"]) is None
    write_engine(project, package="no_such_package")
    reason = missing_tools(EXPERIMENTS["ttft"])
    assert reason is not None and "Fake is not installed here" in reason


def test_an_engine_that_is_not_installed_is_a_note_or_an_error(project: Path) -> None:
    write_engine(project, package="no_such_package")
    with pytest.raises(MissingToolError, match="Fake is not installed here"):
        measure_engines(parameters(), project / "build")


def test_a_running_server_is_attached_to_and_left_running(project: Path, serve: Serve) -> None:
    with serve() as url:
        wanted = parameters(attach=url, profile_lengths=[0], served="fake")
        measured, model, _ = measure_engines(wanted, project / "build")
        assert measured[0].run["command"] is None and measured[0].run["version"] == "1.2.3"
        body = ttft.body(wanted, measured, model, [])
        assert body["parameters"]["weights"] is None, "its weights are its own business"
        assert body["parameters"]["model"] == "fake" and body["notes"] == []
        assert send_all(Target(url, "openai"), [request("openai", "fake", [1])])


def test_a_key_is_sent_and_written_nowhere(
    project: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with serve() as url:
        measure_engines(parameters(attach=url, profile_lengths=[0]), project / "build")
    kept = subprocess.run(
        ["grep", "-rl", "very-secret", str(project)], capture_output=True, text=True, check=False
    )
    assert kept.stdout == ""


def test_a_trace_that_does_not_come_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphgain.engines import profiling

    monkeypatch.setattr(profiling, "TRACE_DEADLINE_S", 0.3)
    write_engine(
        project,
        modes={"on": {"label": "on", "arguments": ["--fault", "no trace"]}},
    )
    with pytest.raises(MeasureError, match=r"no file appeared within 0\.3 s"):
        measure_engines(parameters(), project / "build")


def test_the_engines_of_the_repository_are_valid() -> None:
    engines = load_engines(Path(__file__).parents[1] / "config" / "engines")
    assert {"piecewise", "no-piecewise", "eager"} <= set(engines["vllm"].modes)
    assert {"breakable", "no-prefill-graph", "hicache", "hicache-l3"} <= set(
        engines["sglang"].modes
    )
    assert engines["kern"].compute_capability == "10.3"


def test_engines_and_modes_are_selected_by_name(project: Path) -> None:
    engines = load_engines()
    assert [mode for _, mode in select(engines, ["fake:off", "fake"])] == ["off", "on"]
    with pytest.raises(ConfigError, match=r"no engine 'vlm'.*there are fake"):
        select(engines, ["vlm"])
    with pytest.raises(ConfigError, match="no mode 'of'; it has on, off"):
        select(engines, ["fake:of"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "http://127.0.0.1:1"}, "either a command"),
        ({"modes": {}}, "modes"),
        ({"speed": 1}, "speed"),
        ({"protocol": "grpc"}, "protocol"),
    ],
)
def test_a_bad_engine_file_is_named_with_its_field(
    project: Path, change: dict[str, Any], message: str
) -> None:
    write_engine(project, **change)
    with pytest.raises(ConfigError, match=rf"fake\.yaml: .*{message}"):
        load_engines()


def test_a_container_gets_the_model_the_environment_and_the_command(project: Path) -> None:
    write_engine(
        project,
        docker={"image": "engine:1", "arguments": ["--shm-size", "32g"]},
        environment={"A": "1"},
        command=["{python}", "-m", "engine", "{model}", "--port", "{port}"],
    )
    engine = load_engines()["fake"]
    model = find_model("", "", project / "build")
    command = Chosen(engine, "off", model).command(8123, project / "build" / "points")
    assert command is not None
    assert command[:2] == ["docker", "run"]
    image = command.index("engine:1")
    before, after = command[:image], command[image + 1 :]
    assert f"{model.folder}:{model.folder}:ro" in before
    assert {"--env=A=1", "--env=GRAPH=Qwen3.8-27B", "--shm-size"} <= set(before)
    assert after == ["python3", "-m", "engine", str(model.folder), "--port", "8123"]


def test_the_article_s_engines_become_whole_command_lines(project: Path) -> None:
    engines = load_engines(Path(__file__).parents[1] / "config" / "engines")
    model = find_model("", "", project / "build")
    for engine in engines.values():
        if engine.random_weights_arguments is None:
            with pytest.raises(ConfigError, match="cannot run with random weights"):
                Chosen(engine, next(iter(engine.modes)), model).command(1, project)
            continue
        for mode in engine.modes:
            command = Chosen(engine, mode, model).command(8123, project)
            assert command is not None and str(model.folder) in command and "8123" in command
            unfilled = [part for part in command if re.search(r"\{(\w+)\}", part)]
            assert unfilled == []
            for part in command:
                if part.startswith(("--compilation-config=", "--profiler-config=")):
                    json.loads(part.partition("=")[2])


def made(project: Path, mode: str, experiment: str, commit: str) -> dict[str, Any]:
    """A document of one mode of the fake engine."""
    measured, model, notes = measure_engines(parameters(modes=[f"fake:{mode}"]), project / "build")
    body = (
        ttft.body(parameters(), measured, model, notes)
        if experiment == "ttft"
        else ttft_breakdown.body(measured, model, notes)
    )
    return {
        "schema_version": 1,
        "experiment": experiment,
        "machine": "here",
        "kind": "measured",
        "provenance": {
            "started_at": "2026-12-01T00:00:00Z", "ended_at": "2026-12-01T00:00:00Z",
            "command": [], "git_commit": commit, "git_dirty": False, "source_hash": commit * 3,
            "sources": [], "versions": {}, "process_runs": 1,
        },
        **body,
    }  # fmt: skip


def test_modes_measured_at_different_times_stand_in_one_document(project: Path) -> None:
    old, new = made(project, "on", "ttft", "aaaa"), made(project, "off", "ttft", "bbbb")
    joined = Ttft.model_validate(keep_other_modes(new, old))
    assert [(row.mode, row.isl_tokens) for row in joined.rows] == [
        ("off", 8), ("off", 16), ("on", 8), ("on", 16),
    ]  # fmt: skip
    assert joined.engines is not None and joined.provenance is not None
    assert [run.mode for run in joined.engines] == ["off", "on"]
    assert joined.engines[1].notes == ["Measured by commit aaaa, source aaaaaaaa."]
    assert joined.provenance.git_commit == "bbbb"
    # What is measured again replaces what was there, and a third run keeps the first one's note.
    again = keep_other_modes(made(project, "off", "ttft", "cccc"), joined.model_dump(mode="json"))
    assert Ttft.model_validate(again).engines == joined.engines
    assert len(again["rows"]) == 4


def test_compositions_are_joined_with_the_published_mode_first(project: Path) -> None:
    old = made(project, "on", "ttft_breakdown", "aaaa")
    new = made(project, "off", "ttft_breakdown", "bbbb")
    joined = TtftBreakdown.model_validate(keep_other_modes(new, old))
    assert joined.parameters.mode == "off" and joined.beside is not None
    assert [part.mode for part in joined.beside] == ["on"]
    old["parameters"] |= {"engine": "sglang", "mode": "no-prefill-graph"}
    old["engines"][0] |= {"engine": "sglang", "mode": "no-prefill-graph"}
    joined = TtftBreakdown.model_validate(keep_other_modes(new, old))
    assert joined.parameters.engine == "sglang" and joined.beside is not None
    assert [(part.engine, part.mode) for part in joined.beside] == [("fake", "off")]


def test_the_command_keeps_modes_on_request(
    project: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    out = project / "results" / "here"
    with serve() as url:
        arguments = [
            "ttft",
            "--attach",
            url,
            "--lengths",
            "8",
            "--requests",
            "2",
            "--out",
            str(out),
        ]
        assert main(arguments) == 0
        assert re.search(
            r"^attached:default: [\d.]+ ms at 8 tokens$", capsys.readouterr().out, re.M
        )
        document = out / "ttft.json"
        other = json.loads(document.read_text())
        for part in (*other["rows"], *other["engines"]):
            part["engine"] = "elsewhere"
        document.write_text(json.dumps(other))
        assert main([*arguments, "--keep"]) == 0
        assert {row["engine"] for row in json.loads(document.read_text())["rows"]} == {
            "attached", "elsewhere",
        }  # fmt: skip
        assert main(arguments) == 0
        assert {row["engine"] for row in json.loads(document.read_text())["rows"]} == {"attached"}


def test_reading_and_measuring_name_the_same_composition_as_the_published_one() -> None:
    assert keeping.PUBLISHED == modes.PUBLISHED
