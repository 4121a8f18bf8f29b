"""Building native programs with a fake nvcc, running fake programs, and reading what they print."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphgain.__main__ import main
from graphgain.errors import MeasureError, MissingToolError
from graphgain.experiments import EXPERIMENTS
from graphgain.measuring.native import (
    SOURCES,
    Runs,
    build_program,
    difference,
    included_files,
    link_flags,
    option_list,
    read_output,
    run_program_repeatedly,
)
from graphgain.measuring.process import run_json
from measuring_stage import Stage, launch_floor_output, make_stage, one_output, one_series


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = make_stage(tmp_path)
    for name, value in stage.environment.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(SOURCES, tmp_path / "native")
    return stage


def build(stage: Stage, arch: str = "sm_90", flags: tuple[str, ...] = ()) -> Path:
    return build_program(
        stage.folder / "native" / "handoff.cu", stage.folder / "build", arch, flags
    )


def nvcc_calls(stage: Stage) -> list[str]:
    log = stage.folder / "nvcc.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_program_is_compiled_once(stage: Stage) -> None:
    program = build(stage)
    assert build(stage) == program
    (call,) = nvcc_calls(stage)
    assert "-arch=sm_90" in call and call.split().count("-o") == 1
    assert [path.name for path in program.parent.iterdir()] == [program.name]


def test_whatever_changes_the_program_builds_another(stage: Stage) -> None:
    built = {build(stage), build(stage, "sm_103"), build(stage, flags=("-lineinfo",))}
    header = stage.folder / "native" / "stopping.hpp"  # included by an included file
    header.write_text(header.read_text() + "// changed\n")
    built.add(build(stage))
    nvcc = stage.folder / "bin" / "nvcc"
    nvcc.write_text(nvcc.read_text().replace("V13.0.48", "V13.0.88"))
    built.add(build(stage))
    assert len(built) == 5 == len(nvcc_calls(stage))
    unrelated = stage.folder / "native" / "launch_floor.cu"
    unrelated.write_text("// changed\n")
    assert build(stage) in built and len(nvcc_calls(stage)) == 5


def test_link_flags_stand_in_the_first_lines(tmp_path: Path) -> None:
    source = tmp_path / "x.cu"
    source.write_text("// a comment\n// link: -lcublas -lcublasLt\nint x;\n")
    assert link_flags(source) == ["-lcublas", "-lcublasLt"]
    source.write_text("\n" * 30 + "// link: -lcublas\n")
    assert link_flags(source) == []
    assert link_flags(SOURCES / "gemm_host_cost.cu") == ["-lcublas", "-lcublasLt"]


def test_link_flags_reach_nvcc_after_the_source(stage: Stage) -> None:
    build_program(stage.folder / "native" / "gemm_host_cost.cu", stage.folder / "build", "sm_90")
    (call,) = nvcc_calls(stage)
    assert call.endswith("gemm_host_cost.cu -lcublas -lcublasLt")


def test_included_files_are_followed() -> None:
    names = {path.name for path in included_files(SOURCES / "handoff.cu")}
    assert {"handoff.cu", "bench.hpp", "stopping.hpp", "json.hpp"} <= names
    assert "launch_floor.cu" not in names


def test_without_nvcc_the_user_learns_where_to_get_it(stage: Stage) -> None:
    (stage.folder / "bin" / "nvcc").unlink()
    if Path("/usr/bin/nvcc").exists():
        pytest.skip("nvcc is in /usr/bin, which the fakes need for sh")
    with pytest.raises(MissingToolError, match="CUDA toolkit"):
        build(stage)


def test_nvcc_is_also_found_in_cuda_home(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    home = stage.folder / "cuda"
    (home / "bin").mkdir(parents=True)
    (stage.folder / "bin" / "nvcc").rename(home / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert build(stage).exists()


def test_nvcc_failing_shows_its_first_errors_and_keeps_nothing(stage: Stage) -> None:
    stage.script(
        "bin/nvcc",
        "#!/bin/sh\n"
        '[ "$1" = --version ] && { echo "release 13.0"; exit 0; }\n'
        'echo "handoff.cu(3): warning: unused" >&2\n'
        'for i in 1 2 3 4; do echo "handoff.cu($i): error: broken $i" >&2; done\n'
        "exit 2\n",
    )
    with pytest.raises(MeasureError) as caught:
        build(stage)
    message = str(caught.value)
    assert "handoff.cu(1): error: broken 1" in message and "broken 3" in message
    assert "broken 4" not in message and "warning" not in message
    assert list((stage.folder / "build" / "native").iterdir()) == []


def test_nvcc_that_does_not_run_is_a_sentence(stage: Stage) -> None:
    stage.script("bin/nvcc", "#!/bin/sh\nexit 127\n")
    with pytest.raises(MissingToolError, match="does not run"):
        build(stage)


def test_a_missing_source_is_named(stage: Stage) -> None:
    with pytest.raises(MeasureError, match=r"gone\.cu: there is no such source"):
        build_program(stage.folder / "gone.cu", stage.folder / "build", "sm_90")


def test_a_program_that_fails_passes_on_its_sentence(stage: Stage) -> None:
    program = stage.script(
        "program",
        "#!/bin/sh\necho 'some detail' >&2\n"
        "echo 'handoff: CUDA error cudaErrorNoDevice while looking for a GPU.' >&2\nexit 3\n",
    )
    with pytest.raises(MeasureError) as caught:
        run_program_repeatedly(program, "handoff", {}, process_runs=1)
    assert str(caught.value) == (
        "handoff failed (exit code 3): CUDA error cudaErrorNoDevice while looking for a GPU."
    )


def test_a_program_that_is_killed_names_the_signal(stage: Stage) -> None:
    program = stage.script("program", "#!/bin/sh\nkill -SEGV $$\n")
    with pytest.raises(MeasureError, match="killed by SIGSEGV"):
        run_json([program], name="handoff", timeout_s=60)


def test_a_program_that_never_ends_is_stopped(stage: Stage) -> None:
    program = stage.script("program", "#!/bin/sh\nread forever < /dev/zero\n")
    with pytest.raises(MeasureError, match=r"stopped after 0\.1 s"):
        run_json([program], name="handoff", timeout_s=0.1)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("Segmentation fault\nmore", "begins 'Segmentation fault'"),
        ("", "begins ''"),
        ('{"a": 1}\n{"a": 2}', "did not print one JSON document"),
        ('{"a": NaN}', "NaN is not a number"),
        ("[1, 2]", "JSON list, not an object"),
    ],
)
def test_rubbish_is_quoted(stage: Stage, printed: str, said: str) -> None:
    (stage.folder / "printed").write_text(printed)
    program = stage.script("program", f'#!/bin/sh\ncat "{stage.folder}/printed"\n')
    with pytest.raises(MeasureError) as caught:
        run_json([program], name="handoff", timeout_s=60)
    assert said in str(caught.value)


def _without(key: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        del document[key]

    return change


def _in_series(key: str, value: Any) -> Any:
    def change(document: dict[str, Any]) -> None:
        document["series"][0][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(
            (_without(key), f"without '{key}'")
            for key in ("benchmark", "series", "counts", "device")
        ),
        (_in_series("samples", []), "without samples"),
        (_in_series("samples", [1.0, None]), "None as a value of host_us"),
        (_in_series("samples", ["1.0"]), "'1.0' as a value of host_us"),
        (_in_series("samples", [True]), "True as a value"),
        (_in_series("samples", 3), "malformed"),
        (_in_series("count", "many"), "malformed"),
        (lambda document: document.update(series=[]), "without any series"),
        (lambda document: document.update(benchmark="handoff"), "benchmark 'handoff'"),
        (lambda document: document.update(series=[7]), "malformed"),
    ],
)
def test_a_malformed_document_is_refused(change: Any, said: str) -> None:
    document = launch_floor_output()
    read_output(document, "launch_floor")
    broken = copy.deepcopy(document)
    change(broken)
    with pytest.raises(MeasureError) as caught:
        read_output(broken, "launch_floor")
    assert said in str(caught.value)


def test_a_series_is_found_by_its_exact_axes(stage: Stage) -> None:
    stage.program(launch_floor_output())
    runs = run_program_repeatedly(
        stage.folder / "program", "launch_floor", {"launches": 512}, process_runs=2
    )
    assert stage.runs() == 2
    found = runs.quantity("host_us", "launch", path="driver")
    assert found["n"] == 6 and found["stop"] == ["converged"] * 2
    with pytest.raises(MeasureError, match="0 series of host_us per launch for path graph"):
        runs.quantity("host_us", "launch", path="graph")
    assert runs.count("outstanding_launches", path="driver") == 1023
    with pytest.raises(MeasureError, match="printed no nonsense"):
        runs.count("nonsense")


def test_counts_that_differ_between_runs_are_refused() -> None:
    outputs = [
        one_output(
            "x",
            [one_series({}, "a", "b", 1, [1.0])],
            [{"axes": {}, "metric": "kernels", "value": value}],
        )
        for value in (1, 2)
    ]
    runs = Runs("x", tuple(read_output(output, "x") for output in outputs))
    with pytest.raises(MeasureError, match=r"differently between runs: \[1\.0, 2\.0\]"):
        runs.count("kernels")
    assert difference(runs.series("a", "b"), runs.series("a", "b"))["median"] == 0


def test_options_are_spelled_as_the_programs_read_them() -> None:
    assert option_list({"kernel_us": [0.0, 1.0, 2.5], "grids": ["1", "8x"], "rounds": 180}) == [
        "--kernel-us", "0,1,2.5", "--grids", "1,8x", "--rounds", "180",
    ]  # fmt: skip


def test_options_exist_in_the_programs() -> None:
    """Every parameter that becomes an option is one that its program declares."""
    shared = (SOURCES / "bench.hpp").read_text()
    for name in ("launch_floor", "gemm_host_cost", "handoff"):
        declared = (SOURCES / f"{name}.cu").read_text() + shared
        parameters = {key: [] for key in EXPERIMENTS[name].parameters if key != "process_runs"}
        for option in option_list(parameters)[::2]:
            assert f'{{"{option}"' in declared, f"{name} has no option {option}"


def test_the_printed_document_survives_json(stage: Stage) -> None:
    text = json.dumps(launch_floor_output())
    assert read_output(json.loads(text), "launch_floor").series[0].samples == (3.0, 3.25, 3.5)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_build_command_compiles_an_experiments_programs_and_keeps_them(
    name: str, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["build", name, "--arch", "sm_90", "--build", str(stage.folder / "build")]
    assert main(command) == 0
    made = [Path(line) for line in capsys.readouterr().out.splitlines()]
    expected = [program for program in EXPERIMENTS[name].native if "/" not in program]
    assert [path.name.rpartition("-")[0] for path in made] == expected
    times = [path.stat().st_mtime_ns for path in made]
    assert main(command) == 0
    assert [path.stat().st_mtime_ns for path in made] == times
