"""`graphgain measure` from outside: what it writes, what it refuses, and what faults leave."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphgain.results.store import read_document, read_machine
from measuring_stage import UUID, Stage, launch_floor_output, make_stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path)


BLOCKING = """#!/bin/sh
exec 3> "{started}"
echo $$ >&3
read nothing < "{gate}"
"""


def blocking_program(stage: Stage) -> tuple[Path, Path]:
    """A program that says that it started and then waits until it is let go or dies."""
    started, gate = stage.folder / "started", stage.folder / "gate"
    os.mkfifo(started)
    os.mkfifo(gate)
    stage.script("program", BLOCKING.format(started=started, gate=gate))
    return started, gate


def start(stage: Stage, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        stage.measure("launch_floor", *arguments),
        env=stage.environment,
        cwd=stage.folder,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that are started in the background inherit an ignored Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_document_is_complete_and_valid(stage: Stage) -> None:
    done = stage.run(stage.measure())
    assert done.returncode == 0, done.stderr
    document = read_document(stage.out / "launch_floor.json")
    assert document.kind == "measured" and document.machine == "h200"
    assert stage.runs() == 3, "three independent processes"
    provenance = document.provenance
    assert provenance is not None
    assert provenance.process_runs == 3
    assert provenance.versions["cuda_runtime"] == "13.0"
    assert provenance.versions["nvcc"] == "13.0"
    assert provenance.command[:3] == ["graphgain", "measure", "launch_floor"]
    assert "workflow/native/bench.hpp" in provenance.sources
    assert "src/graphgain/experiments/__init__.py" not in provenance.sources
    assert provenance.gpu_before is not None
    assert provenance.gpu_before.throttle_reasons == ["gpu_idle", "sw_power_cap"]
    assert provenance.other_gpu_processes == []
    machine = read_machine(stage.out)
    assert machine.gpu is not None and machine.gpu.name == "NVIDIA H200"
    assert UUID not in (stage.out / "machine.json").read_text()
    assert stage.leftovers() == []


def test_an_existing_document_is_measured_again_only_by_force(stage: Stage) -> None:
    stage.run(stage.measure())
    again = stage.run(stage.measure())
    assert again.returncode == 0 and "--force" in again.stdout and stage.runs() == 3
    stage.program(launch_floor_output(shift=1.0))
    (stage.folder / "build" / "native").rename(stage.folder / "old")  # the fake is not in the hash
    forced = stage.run(stage.measure("launch_floor", "--force"))
    assert forced.returncode == 0, forced.stderr
    assert stage.runs() == 6
    rows = json.loads((stage.out / "launch_floor.json").read_text())["rows"]
    assert rows[0]["host_us"]["median"] == 4.25


def test_kill_9_in_the_middle_leaves_the_old_document_and_no_child(stage: Stage) -> None:
    stage.run(stage.measure())
    before = (stage.out / "launch_floor.json").read_bytes()
    (stage.folder / "build" / "native").rename(stage.folder / "old")
    started, _ = blocking_program(stage)
    process = start(stage, "--force")
    with started.open() as stream:
        assert stream.readline().strip().isdigit()
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert stream.read() == "", "end of file comes when the child dies with its parent"
    assert (stage.out / "launch_floor.json").read_bytes() == before
    assert stage.leftovers() == []

    stage.program(launch_floor_output())
    (stage.folder / "build" / "native").rename(stage.folder / "older")
    done = stage.run(stage.measure("launch_floor", "--force"))
    assert done.returncode == 0, f"the dead holder's lock is gone: {done.stderr}"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_a_signal_ends_the_child_and_writes_nothing(
    stage: Stage, number: signal.Signals, code: int
) -> None:
    started, _ = blocking_program(stage)
    process = start(stage)
    with started.open() as stream:
        stream.readline()
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        assert stream.read() == ""
    assert not stage.out.exists()


def test_two_measurements_never_share_a_gpu(stage: Stage, tmp_path: Path) -> None:
    started, gate = blocking_program(stage)
    first = start(stage)
    with started.open() as stream:
        stream.readline()
        elsewhere = stage.command("measure", "handoff", "--out", tmp_path / "other" / "h200")
        second = stage.run([*elsewhere, "--build", str(tmp_path / "build")])
        assert second.returncode == 1
        assert f"pid {first.pid}" in second.stderr
        assert not (tmp_path / "other").exists()
        first.kill()
        first.wait()
    assert gate.exists()


def test_another_process_on_the_gpu_is_refused_unless_allowed(stage: Stage) -> None:
    refused = stage.run(stage.measure(), FAKE_GPU_PIDS="4711\n4712\n")
    assert refused.returncode == 1
    assert "pid 4711, 4712" in refused.stderr and "--allow-busy" in refused.stderr
    assert not stage.out.exists() and stage.runs() == 0

    allowed = stage.run(stage.measure("launch_floor", "--allow-busy"), FAKE_GPU_PIDS="4711\n")
    assert allowed.returncode == 0, allowed.stderr
    document = read_document(stage.out / "launch_floor.json")
    assert document.provenance is not None
    assert document.provenance.other_gpu_processes == [4711]


def test_a_full_disk_leaves_the_old_document(stage: Stage) -> None:
    stage.run(stage.measure())
    path = stage.out / "launch_floor.json"
    before = path.read_bytes()
    command = stage.measure("launch_floor", "--force")
    limited = (
        "import resource, runpy, sys;"
        # Room for the lock file, the copied program and all that is small.
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2}, resource.RLIM_INFINITY));"
        "sys.argv = ['graphgain', *sys.argv[1:]];"
        "runpy.run_module('graphgain', run_name='__main__')"
    )
    done = stage.run([sys.executable, "-c", limited, *command[3:]])
    assert done.returncode == 1
    assert "could not be written" in done.stderr and "Traceback" not in done.stderr
    assert path.read_bytes() == before
    assert stage.leftovers() == []


def test_a_folder_that_cannot_be_written_is_named(stage: Stage) -> None:
    stage.out.parent.mkdir(parents=True)
    stage.out.write_text("a file where the folder should be")
    done = stage.run(stage.measure())
    assert done.returncode == 1
    assert str(stage.out) in done.stderr and "Traceback" not in done.stderr


def test_results_of_another_gpu_are_not_mixed_in(stage: Stage) -> None:
    stage.run(stage.measure())
    before = (stage.out / "machine.json").read_bytes()
    other = "GPU-99999999-2222-3333-4444-555555555555"
    refused = stage.run(stage.measure("launch_floor", "--force"), FAKE_GPU_UUID=other)
    assert refused.returncode == 1
    assert "another machine" in refused.stderr and "--allow-other-gpu" in refused.stderr
    allowed = stage.run(
        stage.measure("launch_floor", "--force", "--allow-other-gpu"), FAKE_GPU_UUID=other
    )
    assert allowed.returncode == 0, allowed.stderr
    assert (stage.out / "machine.json").read_bytes() == before
    assert "another NVIDIA H200" in read_document(stage.out / "launch_floor.json").notes[0]

    model = stage.run(
        stage.measure("launch_floor", "--force", "--allow-other-gpu"),
        FAKE_GPU_UUID=other,
        FAKE_GPU_NAME="NVIDIA B200",
    )
    assert model.returncode == 1 and "NVIDIA B200" in model.stderr


def test_published_results_are_never_measured_over(stage: Stage) -> None:
    stage.out.mkdir(parents=True)
    machine = {"slug": "h200", "kind": "published", "gpu": {"name": "NVIDIA H200"}}
    (stage.out / "machine.json").write_text(json.dumps(machine))
    done = stage.run(stage.measure())
    assert done.returncode == 1 and "published machine" in done.stderr
    assert stage.runs() == 0


SHORT_GIL = (
    *("min_s=0.01", "limit_s=0.02", "warmup_s=0", "rank_s=0.01", "process_runs=1"),
    *("background_threads=[0]", "spin_us=[0]", "switch_intervals_ms=[5]"),
    *('interpreters=["3.99"]', 'rank_backgrounds=["poll:1"]'),
)


def test_the_measuring_path_needs_neither_pydantic_nor_yaml_nor_snakemake(stage: Stage) -> None:
    (stage.folder / "python" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pydantic', 'yaml', 'snakemake', 'pandas'):\n"
        "            raise ModuleNotFoundError('blocked: ' + name, name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
    )
    blocked = stage.run([sys.executable, "-c", "import pydantic"])
    assert "blocked: pydantic" in blocked.stderr
    config = stage.folder / "config" / "config.yaml"
    config.parent.mkdir()
    config.write_text("measure: never\n")
    done = stage.run(stage.measure())
    assert done.returncode == 0, done.stderr
    assert "was not validated" in done.stderr and "config.yaml is not read" in done.stderr
    assert read_document(stage.out / "launch_floor.json").kind == "measured"
    gil = stage.run(
        stage.measure("gil", *(part for text in SHORT_GIL for part in ("--parameter", text)))
    )
    assert gil.returncode == 0, gil.stderr
    # The stage's GPU and nvcc are no real ones.
    assert read_document(stage.out / "gil.json").gpu_skipped  # type: ignore[attr-defined]


def test_an_invalid_document_is_not_written(stage: Stage) -> None:
    document = launch_floor_output()
    document["series"][0]["axes"] = {"path": "carrier_pigeon"}
    stage.program(document)
    done = stage.run(stage.measure())
    assert done.returncode == 1
    assert "rows.0.path" in done.stderr and "was not written" in done.stderr
    assert not (stage.out / "launch_floor.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "launch_floor, gemm_host_cost"),
        (["launch_floor", "-p", "lanches=4"], "it has launches, paths"),
        (["launch_floor", "-p", "launches=many"], "as JSON"),
        (["launch_floor", "-p", 'launches="512"'], "must be like its default 512"),
        (["launch_floor", "-p", "launches=true"], "must be like its default 512"),
        (["launch_floor", "-p", "graph_lengths=[]"], "must be like its default"),
        (["launch_floor", "-p", "process_runs=0"], "at least 1"),
        (["launch_floor", "--slug", "h100"], "disagree"),
    ],
)
def test_mistakes_are_sentences(stage: Stage, arguments: list[str], said: str) -> None:
    done = stage.run(stage.measure(*arguments))
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert stage.runs() == 0


def test_no_gpu_and_no_nvcc_are_sentences(stage: Stage) -> None:
    (stage.folder / "bin" / "nvidia-smi").unlink()
    (stage.folder / "bin" / "nvcc").rename(stage.folder / "nvcc-away")
    if not Path("/usr/bin/nvcc").exists():
        without_nvcc = stage.run(stage.measure())
        assert without_nvcc.returncode == 1
        assert "needs nvcc" in without_nvcc.stderr and "CUDA_HOME" in without_nvcc.stderr
    (stage.folder / "nvcc-away").rename(stage.folder / "bin" / "nvcc")
    if not Path("/usr/bin/nvidia-smi").exists():
        without_gpu = stage.run(stage.measure())
        assert without_gpu.returncode == 1 and "no NVIDIA GPU was found" in without_gpu.stderr


def test_the_configuration_gives_parameters_and_the_slug(stage: Stage) -> None:
    config = stage.folder / "config" / "config.yaml"
    config.parent.mkdir()
    config.write_text(
        "machine: {slug: my-h200, label: My H200}\nexperiments: {launch_floor: {rounds: 30}}\n"
    )
    done = stage.run(stage.command("measure", "launch_floor", "--build", stage.folder / "build"))
    assert done.returncode == 0, done.stderr
    folder = stage.folder / "results" / "my-h200"
    document = read_document(folder / "launch_floor.json")
    assert document.provenance is not None and document.provenance.parameters["rounds"] == 30
    assert read_machine(folder).label == "My H200"
