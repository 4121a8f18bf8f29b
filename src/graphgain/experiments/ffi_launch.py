"""`ffi_launch`: host cost of a launch that starts in Python and goes through tvm-ffi."""

import json
from pathlib import Path
from typing import Any

from graphgain.errors import MeasureError
from graphgain.experiments import Context, ffi_process
from graphgain.measuring.native import SOURCES, build_program
from graphgain.measuring.packages import package_version
from graphgain.measuring.process import python_module, run_json
from graphgain.measuring.summary import paired_difference, quantity

_TIMEOUT_S = 600
_STOP = "round_limit"


def measure(context: Context) -> dict[str, Any]:
    """Build the library, run it from independent Python processes; the parts of the document."""
    wanted = context.parameters
    library = build_library(context.build, context.arch)
    argument = json.dumps({name: wanted[name] for name in ("launches", "rounds", "warmup")})
    runs = [
        run_json(
            python_module(ffi_process.__name__, str(library), argument),
            name="ffi_launch",
            timeout_s=_TIMEOUT_S,
        )
        for _ in range(wanted["process_runs"])
    ]
    context.versions["cuda_runtime"] = runs[0]["runtime_version"]
    return {
        "parameters": {
            "launches": wanted["launches"],
            "rounds": wanted["rounds"] + wanted["warmup"],
            "warmup_rounds": wanted["warmup"],
            "process_runs": wanted["process_runs"],
        },
        **body([run["samples"] for run in runs]),
    }


def build_library(build: Path, arch: str) -> Path:
    """The shared library that tvm-ffi loads, compiled against the installed tvm-ffi."""
    from tvm_ffi import libinfo

    source = SOURCES / "ffi" / "ffi_launch.cu"
    return build_program(source, build, arch, library_flags(libinfo), suffix=".so")


def library_flags(libinfo: Any) -> list[str]:
    """nvcc's flags for a shared library that uses tvm-ffi."""
    library = Path(libinfo.find_libtvm_ffi())
    return [
        # So that the library is built again for another tvm-ffi in the same place.
        f"-DBUILT_FOR_TVM_FFI={package_version('apache-tvm-ffi')}",
        "-shared",
        "-Xcompiler=-fPIC",
        *(f"-I{folder}" for folder in libinfo.include_paths()),
        f"-L{library.parent}",
        "-ltvm_ffi",
    ]


def body(runs: list[dict[str, list[float]]]) -> dict[str, Any]:
    """Rows by path, and what tensor arguments add; one dictionary of samples a process run."""
    paths = list(runs[0])
    if any(list(run) != paths for run in runs):
        raise MeasureError("ffi_launch measured other paths in one process than in another.")
    samples = {path: [run[path] for run in runs] for path in paths}
    body: dict[str, Any] = {
        "rows": [
            {"path": path, "host_us": quantity(samples[path], stop=[_STOP] * len(runs))}
            for path in paths
        ],
        "tensor_arguments_extra_us": paired_difference(
            samples["python_tvm_ffi_tensors"], samples["python_tvm_ffi"], name="ffi_launch"
        ),
    }
    if "python_tvm_ffi_torch_tensors" not in paths:
        body["notes"] = ["torch with CUDA is not installed, so its tensors were not measured."]
    return body
