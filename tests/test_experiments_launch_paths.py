"""`launch_paths`: rows and stages from samples, and its process with packages faked at the edge."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_here import needs_gpu
from graphgain.errors import ConfigError, MeasureError
from graphgain.experiments import EXPERIMENTS, Context, launch_paths, launch_paths_process
from graphgain.experiments.launch_paths import PATHS, STAGES, VARIANTS, asked, body
from graphgain.measuring.nvcc import find_nvcc
from graphgain.measuring.packages import is_importable
from graphgain.measuring.process import child_environment
from graphgain.measuring.provenance import experiment_sources
from graphgain.results.launches import LaunchPaths
from test_experiments_rows import validated

DEFAULTS = EXPERIMENTS["launch_paths"].parameters

FAKE_TORCH = '''
"""As much of torch as a path without a GPU needs: vectors in plain Python."""
import types

float32 = "float32"

class Vector(list):
    dtype = float32
    def __mul__(self, number): return Vector(number * v for v in self)
    __rmul__ = __mul__
    def __add__(self, other):
        others = other if isinstance(other, list) else [other] * len(self)
        return Vector(a + b for a, b in zip(self, others))
    def __eq__(self, other): return Vector(a == b for a, b in zip(self, other))
    def all(self): return all(self)
    def isnan(self): return Vector(v != v for v in self)
    def fill_(self, value): self[:] = [value] * len(self)
    def data_ptr(self): return id(self)

class Stream:
    cuda_stream = 7
    def synchronize(self): pass

def arange(count, dtype, device): return Vector(float(i) for i in range(count))
def empty_like(vector): return Vector(vector)
def add(x, y, out): out[:] = [a + b for a, b in zip(x, y)]

cuda = types.SimpleNamespace(Stream=Stream, set_stream=lambda stream: None)
'''

FAKE_TVM_FFI = '''
"""A module whose add forgets the last element if its library says so."""
def load_module(path):
    class Module:
        @staticmethod
        def add(x, y, out):
            out[:] = [a + b for a, b in zip(x, y)]
            if "broken" in path: out[-1] = 0.0
        @staticmethod
        def accept(x, y, out):
            if "broken" in path: out[0] = 1.0
        @staticmethod
        def nothing(): pass
    return Module
'''


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with a torch, a tvm_ffi, and a CuPy that cannot be imported."""
    (tmp_path / "torch.py").write_text(FAKE_TORCH)
    (tmp_path / "tvm_ffi.py").write_text(FAKE_TVM_FFI)
    (tmp_path / "cupy.py").write_text("raise ModuleNotFoundError('no', name='cupy')\n")
    (tmp_path / "triton.py").write_text("raise RuntimeError('\\x1b[91m\\nno driver\\x1b[0m')\n")
    return tmp_path


def run_process(packages: Path, paths: list[str], library: str = "good") -> dict[str, Any]:
    """What the real process prints with those packages."""
    argument = {
        "launches": 3,
        "rounds": 4,
        "warmup": 1,
        "libraries": {"tvm_ffi_add": library},
        "paths": {name: way.stack for name, way in asked(paths).items()},
    }
    environment = child_environment()
    environment["PYTHONPATH"] = f"{packages}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-m", launch_paths_process.__name__, json.dumps(argument)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def test_the_process_times_what_works_and_says_why_the_rest_does_not(packages: Path) -> None:
    asked_for = ["tvm_ffi", "jit_cached", "torch_add_out", "cupy_raw", "triton_jit"]
    printed = run_process(packages, asked_for)
    assert list(printed["samples"]) == [
        *("tvm_ffi", "jit_cached", "torch_add_out", "tvm_ffi_nothing", "tvm_ffi_accept")
    ]
    assert all(len(samples) == 4 for samples in printed["samples"].values())
    assert all(us > 0 for samples in printed["samples"].values() for us in samples)
    assert printed["failed"] == {
        "cupy_raw": "cupy is not installed",
        "triton_jit": "did not work here: RuntimeError: no driver",
    }
    document = validated("launch_paths", {}, body([printed, printed], asked_for, {}))
    assert isinstance(document, LaunchPaths)
    rows = {row.path: row for row in document.rows}
    assert rows["cupy_raw"].host_us is None and rows["cupy_raw"].skipped == "cupy is not installed"
    assert rows["tvm_ffi"].host_us is not None and rows["tvm_ffi"].skipped is None


def test_a_wrong_sum_is_not_timed(packages: Path) -> None:
    printed = run_process(packages, ["tvm_ffi", "torch_add_out"], library="broken")
    assert list(printed["samples"]) == ["torch_add_out", "tvm_ffi_nothing"]
    assert "not the sum" in printed["failed"]["tvm_ffi"]
    # A variant is to leave the output alone.
    assert "without a launch" in printed["failed"]["tvm_ffi_accept"]


def samples(**us: float) -> dict[str, Any]:
    """A process that measured these constants, with the same noise in every path."""
    noise = [0.0, 0.5, 1.0]
    return {"samples": {name: [x + dx for dx in noise] for name, x in us.items()}, "failed": {}}


PARTS = {
    "tvm_ffi_nothing": 0.25,
    "tvm_ffi_accept": 0.75,
    "tvm_ffi": 3.75,
    "jit_cached": 4.0,
    "jit_torch_op": 8.0,
    "jit_custom_op": 24.0,
    "aot_nothing": 1.0,
    "aot_accept": 2.0,
    "aot_torch_library": 5.0,
}


def test_the_stages_of_a_path_add_up_to_it() -> None:
    paths = [name for name in PARTS if name in PATHS]
    document = validated("launch_paths", {}, body([samples(**PARTS)] * 2, paths, {}))
    assert isinstance(document, LaunchPaths)
    stages = {
        name: {s.stage: s.host_us for s in document.stages if s.path == name} for name in paths
    }
    for row in document.rows:
        assert row.host_us is not None
        # The first stage is a whole call and keeps the noise, whose median is 0.5.
        total = sum(stage.value for stage in stages[row.path].values())
        assert total == row.host_us.value
    custom = stages["jit_custom_op"]
    assert {name: part.value for name, part in custom.items()} == {
        **{"call": 0.75, "arguments": 0.5, "launch": 3.0, "python_wrapper": 0.25},
        **{"dispatcher": 4.0, "custom_op": 16.0},
    }
    assert custom["launch"].low == custom["launch"].high == 3.0  # no noise in a paired difference
    assert {variant.variant for variant in document.variants} == {
        *("tvm_ffi_nothing", "tvm_ffi_accept", "aot_nothing", "aot_accept")
    }


def test_stages_of_a_path_that_lacks_a_part_are_left_out() -> None:
    lacking = {name: us for name, us in PARTS.items() if name != "tvm_ffi_accept"}
    found = body([samples(**lacking)], ["jit_torch_op", "aot_torch_library"], {})
    assert {stage["path"] for stage in found["stages"]} == {"aot_torch_library"}


def test_what_was_not_compiled_is_skipped_with_the_reason() -> None:
    printed = samples(torch_add_out=3.0)
    found = body(
        [printed], ["aot_torch_library", "torch_add_out"], {"torch_add": "not compiled: x"}
    )
    assert [row["skipped"] for row in found["rows"]] == ["not compiled: x", None]
    with pytest.raises(
        MeasureError, match="not prepare a single path: aot_torch_library: not compiled: x"
    ):
        body([samples()], ["aot_torch_library"], {"torch_add": "not compiled: x"})


def test_processes_that_measured_different_paths_are_refused() -> None:
    with pytest.raises(MeasureError, match="other paths"):
        body([samples(tvm_ffi=1.0), samples(torch_add_out=1.0)], ["tvm_ffi"], {})


def test_an_unknown_path_is_refused_with_those_known(tmp_path: Path) -> None:
    wanted = {**DEFAULTS, "paths": ["tvm_ffi", "boost"]}
    with pytest.raises(ConfigError, match=r"no path boost; there are cpp_loop, tvm_ffi"):
        launch_paths.measure(Context(parameters=wanted, build=tmp_path, arch="sm_90"))


def test_the_defaults_are_all_paths_below_the_depth_of_the_queue() -> None:
    assert DEFAULTS["paths"] == list(PATHS)
    assert DEFAULTS["launches"] == 512 and DEFAULTS["process_runs"] == 3
    for path, stages in STAGES.items():
        parts = {part for stage in stages for part in stage[1:] if part is not None}
        assert parts <= set(PATHS) | set(VARIANTS)
        assert stages[-1][1] == path


def test_every_stack_and_native_source_is_hashed() -> None:
    names = {file.name for file in experiment_sources(EXPERIMENTS["launch_paths"])}
    assert {f"{way.stack}.py" for way in PATHS.values()} <= names
    assert {"add.cuh", "torch_add.cu", "tvm_ffi_add.cu", "loop.cu", "cubin.cu"} <= names


@pytest.mark.parametrize("name", ["loop", "cubin", "tvm_ffi_add"])
def test_the_native_sources_compile(name: str, tmp_path: Path) -> None:
    if find_nvcc() is None:
        pytest.skip("nvcc is not installed")
    if name == "tvm_ffi_add" and not is_importable("tvm_ffi"):
        pytest.skip("apache-tvm-ffi is not installed")
    flags = {
        "loop": ["-shared", "-Xcompiler=-fPIC"],
        "cubin": ["-cubin"],
        "tvm_ffi_add": launch_paths.tvm_ffi_flags() if is_importable("tvm_ffi") else [],
    }
    suffix = ".cubin" if name == "cubin" else ".so"
    source = launch_paths.SOURCES / "paths" / f"{name}.cu"
    built = launch_paths.build_program(source, tmp_path, "sm_90", flags[name], suffix=suffix)
    assert built.stat().st_size > 0


def test_without_torch_the_operator_is_not_compiled_and_the_rest_is(tmp_path: Path) -> None:
    if find_nvcc() is None:
        pytest.skip("nvcc is not installed")
    if is_importable("torch"):
        pytest.skip("torch is installed")
    libraries, unbuilt = launch_paths.build_libraries(tmp_path, "sm_90")
    assert {"loop", "cubin"} <= set(libraries)
    assert unbuilt["torch_add"] == (
        "not compiled: torch is not installed as a package, so its headers were not found."
    )


@pytest.mark.gpu
@needs_gpu
@pytest.mark.skipif(not is_importable("torch"), reason="torch is not installed")
def test_on_a_gpu_every_installed_path_computes_the_sum(tmp_path: Path) -> None:
    wanted = {**DEFAULTS, "rounds": 3, "warmup": 1, "process_runs": 1, "launches": 64}
    found = launch_paths.measure(Context(parameters=wanted, build=tmp_path, arch="native"))
    document = validated("launch_paths", found.pop("parameters"), found)
    assert isinstance(document, LaunchPaths)
    for row in document.rows:
        absent = (row.skipped or "").endswith("is not installed")
        # A package of others may not fit the machine's other packages; its row then says so.
        foreign = row.path in ("cute_dsl", "cupy_raw", "numba_cuda", "cuda_core", "cuda_bindings")
        assert row.host_us is not None or absent or (foreign and row.skipped), row
