"""`graphgain ttft` where something is not as it should be: every case a sentence, nothing lost."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine_stage import FAKE, Serve, parameters, write_engine
from graphgain.__main__ import main
from graphgain.engines import profiling, session
from graphgain.engines.client import Answer, Target, send_all
from graphgain.engines.config import load_engines
from graphgain.engines.foreign import read_foreign
from graphgain.engines.kineto import ProfileError, read_trace
from graphgain.engines.modes import Chosen, Model, find_model, profile_folder
from graphgain.engines.points import read_kept
from graphgain.engines.protocol import Request, RequestError, event, usage
from graphgain.engines.server import ServerError, await_health, free_port, started
from graphgain.engines.session import measure_engines
from graphgain.errors import ConfigError, DocumentError, MeasureError
from graphgain.freshness import check_document

TRACES = Path(__file__).parent / "traces"


def points(project: Path, mode: str = "on") -> dict[str, Any]:
    """What is kept of a mode, by length."""
    (folder,) = project.glob(f"build/ttft/*-{mode}-*")
    return {path.stem: read_kept(path) for path in folder.glob("[0-9]*.json")}


def command(out: Path, *more: str) -> int:
    """The command with a short sweep and no profile."""
    short = ["--lengths", "8", "16", "--requests", "2", "--no-breakdown"]
    return main(["ttft", *more, *short, "--out", str(out), "--label", "here"])


def test_a_finished_sweep_of_a_running_server_is_made_again(project: Path, serve: Serve) -> None:
    with serve() as url:
        wanted = parameters(attach=url, profile_lengths=[0])
        (first,), _, _ = measure_engines(wanted, project / "build")
        (again,), _, _ = measure_engines(wanted, project / "build")
    assert [point.ttft_ms for point in first.points] != [point.ttft_ms for point in again.points]
    with pytest.raises((MeasureError, ConfigError), match="refused"):
        measure_engines(wanted, project / "build")  # nobody is there any more


def test_both_documents_of_a_running_server_are_of_one_sweep(project: Path, tmp_path: Path) -> None:
    port, traces = free_port(), tmp_path / "build" / "ttft"
    url = f"http://127.0.0.1:{port}"
    write_engine(project, command=None, url=url, random_weights_arguments=None)
    wanted = parameters(modes=["fake:on"])
    model = find_model("", "", project / "build")
    chosen = Chosen(load_engines()["fake"], "on", model)
    sweep = session.wanted_of(wanted, model).sweep
    folder = profile_folder(chosen.folder(traces, sweep, None))
    call = [sys.executable, str(FAKE), str(port), "--profile", str(folder)]
    with started("fake", call, url, tmp_path / "log") as server:
        await_health(server, "/health", 60)
        (first,), _, _ = measure_engines(wanted, project / "build")
        (second,), _, _ = measure_engines(wanted, project / "build", finished_stays=True)
    assert first.points == second.points and first.breakdown() == second.breakdown()


def test_a_running_server_is_asked_what_it_serves(project: Path, serve: Serve) -> None:
    with serve() as url:
        _, model, _ = measure_engines(parameters(attach=url, profile_lengths=[0]), project / "b")
    assert model.served == "fake-model"


def test_an_engine_of_another_version_is_measured_again(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = parameters(modes=["fake:on"], profile_lengths=[0])
    measure_engines(wanted, project / "build")
    (folder,) = project.glob("build/ttft/*-on-*")
    (folder / "8.json").unlink()  # so that a server is started
    known = points(project)["16"]
    measure_engines(wanted, project / "build")
    assert points(project)["16"] == known, "the same version goes on"
    run = read_kept(folder / "run.json") | {"version": "1.0.0"}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "8.json").unlink()
    measure_engines(wanted, project / "build")
    assert points(project)["16"] != known
    assert "is of version 1.0.0, the server is 1.2.3" in capsys.readouterr().err


def test_what_is_kept_is_measured_again_on_request(project: Path) -> None:
    wanted = parameters(modes=["fake:on"], profile_lengths=[0])
    measure_engines(wanted, project / "build")
    known = points(project)
    measure_engines(wanted | {"again": True}, project / "build")
    assert points(project).keys() == known.keys() and points(project) != known


def test_other_requests_are_profiled_again(project: Path) -> None:
    wanted = parameters(modes=["fake:on"])
    (first,), _, _ = measure_engines(wanted, project / "build")
    assert first.breakdown()[0]["requests"] == 2
    (again,), _, _ = measure_engines(wanted | {"profile_requests": 3}, project / "build")
    assert again.breakdown()[0]["requests"] == 3


def test_as_many_requests_go_out_in_the_same_way_without_a_tracer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[tuple[int, float]] = []

    def send(target: Target, requests: Sequence[Request], *, pause_s: float = 0) -> list[Answer]:
        pauses.append((len(requests), pause_s))
        return send_all(target, requests)

    monkeypatch.setattr(profiling, "send_all", send)
    (measured,), _, _ = measure_engines(parameters(modes=["fake:on"]), project / "build")
    assert pauses == [(1, 0), (2, profiling.PAUSE_S), (2, profiling.PAUSE_S)]
    (row,) = measured.breakdown()
    assert row["ttft_untraced_ms"]["n"] == row["ttft_traced_ms"]["n"] == 2
    assert row["ttft_ms"]["n"] == 3  # the sweep's


def test_a_profile_without_untraced_requests_is_made_again(project: Path) -> None:
    measure_engines(parameters(modes=["fake:on"]), project / "build")
    (path,) = (project / "build").rglob("times-8.json")
    path.write_text(json.dumps(json.loads(path.read_text())["traced"]))  # as kept once
    (measured,), _, _ = measure_engines(parameters(modes=["fake:on"]), project / "build")
    assert measured.breakdown()[0]["ttft_untraced_ms"]["n"] == 2


def test_a_profile_that_is_none_is_made_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ProfileError("2 requests cannot be told apart.")

    with monkeypatch.context() as patch:
        patch.setattr(session, "composed", broken)
        with pytest.raises(MeasureError, match="fake:on, profile of 8"):
            measure_engines(parameters(modes=["fake:on"]), project / "build")
    (measured,), _, _ = measure_engines(parameters(modes=["fake:on"]), project / "build")
    assert measured.breakdown()[0]["launches_per_request"] == 4


def test_passes_share_out_the_requests(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = parameters(modes=["fake:on"], profile_lengths=[0], passes=2)
    (measured,), _, _ = measure_engines(wanted, project / "build")
    assert [len(point.ttft_ms) for point in measured.points] == [3, 3]
    told = re.findall(r"pass (\d) of 2, (\d) of 2: (\d+) tokens", capsys.readouterr().err)
    assert told == [("1", "1", "8"), ("1", "2", "16"), ("2", "1", "8"), ("2", "2", "16")]


def test_an_interrupted_pass_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = parameters(modes=["fake:on"], profile_lengths=[0], passes=3)
    from graphgain.engines import points as module

    real, calls = module.measure_length, []

    def failing(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise RequestError("interrupted")
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, "measure_length", failing)
        with pytest.raises(MeasureError, match="interrupted"):
            measure_engines(wanted, project / "build")
    kept = points(project)
    assert {name: len(point["ttft_ms"]) for name, point in kept.items()} == {"8": 2, "16": 1}
    (measured,), _, _ = measure_engines(wanted, project / "build")
    assert measured.points[0].ttft_ms[:2] == kept["8"]["ttft_ms"]
    assert [len(point.ttft_ms) for point in measured.points] == [3, 3]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("requests_per_length", ["--requests", "3"]),
        ("warmup_requests", ["warmup_requests: 2"]),
        ("concurrency", ["concurrency: 2"]),
    ],
)
def test_modes_asked_in_another_way_are_refused_before_anything_is_measured(
    name: str, other: list[str], project: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    out = project / "results" / "here"
    with serve() as url:
        assert command(out, "--attach", url) == 0
    before = (out / "ttft.json").read_text()
    if not other[0].startswith("--"):
        (project / "config" / "config.yaml").write_text("experiments:\n  ttft:\n    " + other.pop())
    kept = ["ttft", "--attach", url, "--keep", "--lengths", "8", "--out", str(out)]
    # The server is gone: had it been asked, that would be the error.
    assert main([*kept, *(other or ["--requests", "2"])]) == 1
    assert f"its modes were measured with {name}" in capsys.readouterr().err
    assert (out / "ttft.json").read_text() == before


def test_a_document_that_is_none_is_not_joined(
    project: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    out = project / "results" / "here"
    out.mkdir(parents=True)
    (out / "ttft.json").write_text("{}")
    with serve() as url:
        assert command(out, "--attach", url, "--keep") == 1
    assert "ttft.json" in capsys.readouterr().err
    assert (out / "ttft.json").read_text() == "{}"


def test_a_server_may_be_named_by_the_path_of_its_api(project: Path, serve: Serve) -> None:
    out = project / "results" / "here"
    with serve() as url:
        for number, path in enumerate(("", "/", "/v1", "/v1/")):
            folder = out / str(number)
            assert command(folder, "--attach", url + path) == 0
            found = json.loads((folder / "ttft.json").read_text())["provenance"]["parameters"]
            assert found["attach"] == url


def test_which_server_was_asked_does_not_make_a_document_stale(project: Path, serve: Serve) -> None:
    out = project / "results" / "here"
    with serve() as url:
        assert command(out, "--attach", url, "--served", "fake") == 0
    wanted = {"ttft": {"requests": 2}}
    assert check_document(out / "ttft.json", wanted).state == "fresh"
    assert check_document(out / "ttft.json").reasons == ("parameter requests 2 → 10",)


def test_an_engine_without_a_profiler_has_no_breakdown(
    project: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    out = project / "results" / "here"
    swept = ["--lengths", "8", "16", "--requests", "2", "--out", str(out), "--label", "here"]
    with serve() as url:
        write_engine(project, command=None, url=url, profiler=None, random_weights_arguments=None)
        assert main(["ttft", "fake:on", *swept]) == 0
    assert "no breakdown: none of the chosen engines has a profiler" in capsys.readouterr().out
    assert (out / "ttft.json").exists()
    assert not (out / "ttft_breakdown.json").exists()


def test_a_document_that_is_replaced_is_told(
    project: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    out = project / "results" / "here"
    with serve() as url:
        assert command(out, "--attach", url) == 0
        assert "is replaced" not in capsys.readouterr().out
        assert command(out, "--attach", url) == 0
    assert "is replaced, with all modes that it had (--keep" in capsys.readouterr().out


def test_an_engine_that_runs_already_needs_no_gpu_here(project: Path, serve: Serve) -> None:
    with serve() as url:
        write_engine(project, command=None, url=url, profiler=None, random_weights_arguments=None)
        assert command(project / "results" / "here", "fake:on") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--list", "--attach", "http://127.0.0.1:1"], "--list and --attach do not go together"),
        (["fake", "--attach", "http://127.0.0.1:1"], "--attach and ENGINE do not go together"),
        (["--attach", "localhost:8000"], "'localhost:8000' is no address such as"),
        (["--attach", "http://"], "is no address such as"),
        (["nobody"], "There is no engine 'nobody'"),
        (["fake:nothing"], "no mode 'nothing'"),
        (["--compose", str(TRACES / "vllm_piecewise_128.json.gz")], "--in-trace COUNT"),
        (["--build", "config/engines/fake.yaml"], "fake.yaml: cannot be written"),
        (["--out", "config/engines/fake.yaml/here"], "here: cannot be written"),
    ],
)
def test_a_wrong_call_is_told_at_once(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["ttft", *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"requests": 0}, "requests is 0; it is at least 1"),
        ({"profile_requests": 0}, "profile_requests is 0"),
        ({"lengths": [-5]}, r"lengths is \[-5\]"),
        ({"lengths": [8, 8]}, "each once"),
        ({"lengths": []}, r"lengths is \[\]"),
        ({"profile_lengths": [8, 0]}, r"profile_lengths is \[8, 0\]"),
        ({"passes": 4}, "passes: every pass needs a request"),
        ({"port": 80000}, "ports end at 65535"),
        ({"port": -1}, "port is -1"),
    ],
)
def test_parameters_out_of_range_are_refused(
    project: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        measure_engines(parameters(**change), project / "build")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": []}, "command"),
        ({"command": None, "url": "localhost:80"}, "url: 'localhost:80' is no address"),
        ({"read_back": {"version": "version version"}}, "version: has to be `/PATH KEY`"),
        ({"read_back": {"settings": {"a": "log (open"}}}, "settings.a: .* no regular expression"),
        ({"read_back": {"settings": {"a": "log word"}}}, "settings.a: .* has no group"),
        ({"health": {"path": "health"}}, "health.path"),
        ({"colour": 1}, "colour: there is no such key"),
        ({"modes": {"a_b": {"label": "x"}}}, "modes.a_b: a mode's name has small letters"),
        ({"modes": 5}, "modes"),
    ],
)
def test_a_mistake_in_an_engine_file_is_told_before_anything_starts(
    project: Path, change: dict[str, Any], message: str
) -> None:
    write_engine(project, **change)
    with pytest.raises(ConfigError, match=rf"fake\.yaml: .*{message}"):
        load_engines()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[1]", b"a: {"])
def test_an_engine_file_that_is_none_is_named(project: Path, content: bytes) -> None:
    (project / "config/engines/own.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"own\.yaml"):
        load_engines()


def test_a_key_that_stands_twice_is_refused(project: Path) -> None:
    path = project / "config/engines/fake.yaml"
    path.write_text(path.read_text() + "modes: {other: {label: x}}\n")
    with pytest.raises(ConfigError, match=r"fake\.yaml: .*(?s:'modes' is there twice)"):
        load_engines()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_server_first(project: Path, number: int, code: int) -> None:
    pid_file = project / "pid"
    more = ["--fault", "never healthy", "--pid-file", str(pid_file)]
    write_engine(project, modes={"on": {"label": "on", "arguments": more}})
    # The command as it is, less the GPU and the documents: a server is started and awaited.
    script = """if True:
        import sys
        from pathlib import Path
        from engine_stage import parameters
        from graphgain import __main__ as command
        from graphgain.engines import commands, session
        from graphgain.measuring.process import termination_unwinds

        def measure(options):
            with termination_unwinds():
                session.measure_engines(parameters(), Path("build"))

        commands._measure = measure
        sys.exit(command.main(["ttft"]))
    """
    path = os.pathsep.join([str(FAKE.parent), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        # Under nohup the tests ignore a hang-up, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    assert running.stderr is not None
    try:
        while not pid_file.exists():
            assert running.poll() is None, running.stderr.read()
        running.send_signal(number)
        assert running.wait(60) == code
        assert "fake:on: stopping" in (told := running.stderr.read()) and "terminated" in told
    finally:
        running.kill()
        running.stderr.close()
    assert not Path(f"/proc/{pid_file.read_text().split()[0]}").exists()


def test_a_folder_in_place_of_an_engine_file_is_named(project: Path) -> None:
    (project / "config/engines/own.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"own\.yaml: cannot be read"):
        load_engines()


@pytest.mark.parametrize("text", ["[]", '{"vocab_size": 0}', '{"vocab_size": -5}', "{", '"x"'])
def test_a_model_without_a_usable_vocabulary_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        find_model(str(tmp_path), "", tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"ttft_ms": 5}', "\x00"])
def test_a_broken_kept_file_is_named(project: Path, text: str) -> None:
    measure_engines(parameters(modes=["fake:on"], profile_lengths=[0]), project / "build")
    (folder,) = project.glob("build/ttft/*-on-*")
    (folder / "8.json").write_text(text)
    with pytest.raises(MeasureError, match=r"8\.json: .*remove it"):
        measure_engines(parameters(modes=["fake:on"], profile_lengths=[0]), project / "build")


def test_loopback_is_not_asked_through_a_proxy(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with serve():  # which waits until it is healthy
        pass


def test_why_a_server_is_not_healthy_is_told(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    call = [sys.executable, str(FAKE), str(port)]
    with started("fake", call, url, tmp_path / "log") as server:
        await_health(server, "/health", 60)
        with pytest.raises(ServerError, match=r"/no/such: it answered 404"):
            await_health(server, "/no/such", 0.1)


def test_a_single_modes_failure_is_told_as_it_is(project: Path) -> None:
    write_engine(project, modes={"on": {"label": "on", "arguments": ["--fault", "500"]}})
    with pytest.raises(MeasureError) as caught:
        measure_engines(parameters(), project / "build")
    assert str(caught.value).startswith("fake:on, 8 tokens: ")


def test_a_container_is_removed_whatever_happens_to_its_client(
    project: Path, tmp_path: Path
) -> None:
    write_engine(project, docker={"image": "engine:1"})
    model = Model(project, "m", 5000, random=True)
    chosen = Chosen(load_engines()["fake"], "on", model)
    call = chosen.command(8123, project)
    assert call is not None and call[call.index("--name") + 1] == "graphgain-fake-on-8123"
    assert chosen.last(8123) == ["docker", "rm", "--force", "graphgain-fake-on-8123"]
    done = tmp_path / "removed"
    with started("fake", ["sleep", "60"], "http://x", tmp_path / "log", last=["touch", str(done)]):
        assert not done.exists()
    assert done.exists()


@pytest.mark.parametrize(
    "result",
    [
        {"ttfts": [0.1, None], "input_lens": [8, 8]},
        {"ttfts": [0.1, "x"], "input_lens": [8, 8]},
        {"ttfts": [0.1, float("nan")], "input_lens": [8, 8]},
        {"ttfts": 0.1, "input_lens": [8]},
        {"ttfts": [0.1], "input_lens": 8},
        {"ttfts": [0.1], "input_lens": [8], "errors": 5},
        {"ttfts": [0.1], "random_input_len": "abc"},
        {"ttfts": [0.1]},
    ],
)
def test_an_odd_result_of_another_client_is_named(tmp_path: Path, result: dict[str, Any]) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    with pytest.raises(DocumentError, match=r"result\.json: "):
        read_foreign(path)


def test_a_result_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\x1f\x8b\xff")
    with pytest.raises(DocumentError, match=r"result\.json: cannot be read"):
        read_foreign(path)


LAUNCH = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "args": {"correlation": 1}}
KERNEL = {"cat": "kernel", "ts": 2, "dur": 1, "args": {"correlation": 1}}


@pytest.mark.parametrize(
    "events",
    [
        [{**LAUNCH, "ts": None}, KERNEL],
        [{**LAUNCH, "name": 5}, KERNEL],
        [{name: value for name, value in LAUNCH.items() if name != "ts"}, KERNEL],
        [LAUNCH, {**KERNEL, "args": {"correlation": 2**70}}],
        [LAUNCH, {**KERNEL, "cat": ["kernel"]}],
        [LAUNCH, {**KERNEL, "dur": "x"}],
    ],
)
def test_an_odd_event_in_a_trace_is_an_error_of_the_trace(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    with pytest.raises(ProfileError, match=r"t\.json: not a readable trace"):
        read_trace(path)


def test_a_kernel_of_no_length_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [LAUNCH, {**KERNEL, "ts": 1, "dur": 0}]}))
    assert main(["ttft", "--compose", str(path), "--in-trace", "1"]) == 0
    assert "(100%)" in capsys.readouterr().out


@pytest.mark.parametrize("count", ["0", "-1", "3", "4", "900"])
def test_a_wrong_number_of_requests_in_a_trace_is_told(
    capsys: pytest.CaptureFixture[str], count: str
) -> None:
    path = TRACES / "sglang_no_prefill_graph_128.json.gz"
    assert main(["ttft", "--compose", str(path), "--in-trace", count]) == 1
    told = capsys.readouterr().err
    assert path.name in told and f"Is --in-trace {count} right?" in told


@pytest.mark.parametrize(
    "told",
    [
        {"usage": 5},
        {"usage": "x"},
        {"usage": {"prompt_tokens": "128"}},
        {"usage": {"prompt_tokens_details": [1]}},
    ],
)
def test_an_odd_usage_is_an_error_of_the_request(told: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="The server sent"):
        usage("openai", told)


def test_no_error_is_no_error() -> None:
    assert event(b'data: {"error": null, "choices": [1]}') == {"error": None, "choices": [1]}
