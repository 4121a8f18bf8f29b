"""The native programs compile without a warning, and refuse politely what they cannot do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "native"))
from toolchain import PROBES, SOURCES, compile_cuda

PROGRAMS = ["gemm_host_cost", "handoff", "launch_floor"]
SOURCE_NAMES = sorted(source.stem for source in SOURCES.glob("*.cu"))


class Programs:
    """The programs by name, each compiled when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiler_said: dict[str, str] = {}

    def path(self, name: str) -> Path:
        target = self.folder / name
        if name not in self.compiler_said:
            source = SOURCES / f"{name}.cu"
            source = source if source.exists() else PROBES / f"{name}.cu"
            self.compiler_said[name] = compile_cuda(source, target)
        return target

    def run(self, name: str, *options: str, gpu: bool = False) -> subprocess.CompletedProcess[str]:
        environment = os.environ if gpu else {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        return subprocess.run(
            [str(self.path(name)), *options],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("name", [*SOURCE_NAMES, "launch_reference"])
def test_compiles_without_a_warning(programs: Programs, name: str) -> None:
    assert programs.path(name).is_file()
    assert "warning" not in programs.compiler_said[name]


@pytest.mark.parametrize("name", [*PROGRAMS, "launch_reference"])
def test_without_a_gpu_a_program_says_so_and_prints_no_document(
    programs: Programs, name: str
) -> None:
    result = programs.run(name)
    assert result.returncode != 0
    assert result.stdout == ""
    assert result.stderr.startswith(f"{name}: CUDA error cuda")
    assert result.stderr.endswith(".\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--no-such-option", "1"], "Unknown option '--no-such-option'. Known options"),
        (["--rounds"], "Option --rounds needs a value."),
        (["--rounds", "many"], "Option --rounds needs a whole number of at least 5, got 'many'."),
        (["--rounds", "4"], "Option --rounds needs a whole number of at least 5, got '4'."),
        (["--max-rounds", "10"], "Option --max-rounds needs a whole number of at least "),
        (["--max-noise", "nan"], "Option --max-noise needs a number above zero, got 'nan'."),
        (["--time-limit-s", "0"], "Option --time-limit-s needs a number above zero, got '0'."),
    ],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bad_option_is_named_before_a_gpu_is_looked_for(
    programs: Programs, name: str, options: list[str], complaint: str
) -> None:
    result = programs.run(name, *options)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"{name}: {complaint}")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("launch_floor", "--paths", "driver,teleport"),
        ("launch_floor", "--argument-counts", "3"),
        ("launch_floor", "--graph-lengths", "1,0"),
        ("launch_floor", "--graph-lengths", "1,,2"),
        ("gemm_host_cost", "--shapes", "small:96:5120"),
        ("gemm_host_cost", "--shapes", "small:96:-1:48"),
        ("handoff", "--chain", "1"),
        ("handoff", "--grids", "2y"),
        ("handoff", "--grids", "x"),
        ("handoff", "--kernel-us", "-1"),
        ("handoff", "--kernel-us", "2000"),
        ("handoff", "--argument-bytes", "16"),
    ],
)
def test_a_bad_list_is_refused_naming_the_option(
    programs: Programs, name: str, option: str, value: str
) -> None:
    result = programs.run(name, option, value)
    assert result.returncode == 2
    assert f"Option {option} needs" in result.stderr


def gpu_missing() -> bool:
    smi = shutil.which("nvidia-smi")
    return smi is None or subprocess.run([smi, "-L"], capture_output=True).returncode != 0


QUICK = ["--rounds", "5", "--max-rounds", "5", "--warmup", "1"]
SMALL = {
    "launch_floor": [
        "--graph-lengths",
        "1,16",
        "--outstanding-repeats",
        "1",
        "--instantiate-rounds",
        "5",
    ],
    "gemm_host_cost": ["--shapes", "ba:96:5120:48,qkv:14336:5120:16", "--calls", "16"],
    "handoff": ["--chain", "32", "--kernel-us", "0,5", "--grids", "1,1x"],
}


@pytest.mark.gpu
@pytest.mark.skipif(gpu_missing(), reason="nvidia-smi finds no GPU")
@pytest.mark.parametrize("name", SMALL)
def test_on_a_gpu_a_program_prints_one_complete_document(programs: Programs, name: str) -> None:
    result = programs.run(name, *QUICK, *SMALL[name], gpu=True)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["benchmark"] == name
    assert set(document) == {"benchmark", "device", "parameters", "series", "counts", "kernels"}
    for series in document["series"]:
        assert len(series["samples"]) == 5
        assert min(series["samples"]) > 0
        assert series["stop"] in {"converged", "stably_noisy", "round_limit", "time_limit"}
    keys = [json.dumps([s["axes"], s["metric"], s["per"]]) for s in document["series"]]
    assert len(set(keys)) == len(keys) > 0
