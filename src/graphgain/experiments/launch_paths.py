"""`launch_paths`: host cost of one elementwise add by the way in which Python launches it."""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphgain.errors import ConfigError, MeasureError
from graphgain.experiments import Context, launch_paths_process
from graphgain.experiments.ffi_launch import library_flags
from graphgain.measuring.native import SOURCES, build_program
from graphgain.measuring.packages import is_importable, package_version
from graphgain.measuring.process import python_module, run_json
from graphgain.measuring.summary import paired_difference, quantity

_TIMEOUT_S = 900
_STOP = "round_limit"

Samples = dict[str, list[list[float]]]


@dataclass(frozen=True)
class Way:
    """One way: what it is called, its call chain, and the packages that it needs besides torch.

    `stack` is the module of `experiments.paths` that prepares it, `library` the native source that
    has to be compiled for it.
    """

    label: str
    call_chain: str
    stack: str
    packages: tuple[str, ...] = ()
    library: str | None = None


@dataclass(frozen=True)
class Variant:
    """A way with stages left out, measured in turn with the others; it is no way of its own."""

    stack: str
    library: str | None = None


TVM_FFI = ("apache-tvm-ffi",)
PATHS = {
    "cpp_loop": Way("C++ loop", "kernel<<<…>>>", "native_loop", library="loop"),
    "tvm_ffi": Way("tvm-ffi", "module.add(x, y, out)", "tvm_ffi_module", TVM_FFI, "tvm_ffi_add"),
    "jit_cached": Way(
        "JIT direct call",
        "Python wrapper → @cache_once cache lookup → tvm-ffi",
        "tvm_ffi_module",
        TVM_FFI,
        "tvm_ffi_add",
    ),
    "jit_torch_op": Way(
        "JIT wrapped as torch op",
        "torch.ops.sgl.add → dispatcher → Python impl → tvm-ffi",
        "torch_ops",
        TVM_FFI,
        "tvm_ffi_add",
    ),
    "jit_custom_op": Way(
        "JIT wrapped by torch.library.custom_op",
        "torch.ops.sgl.add → dispatcher → custom_op → Python impl → tvm-ffi",
        "torch_ops",
        TVM_FFI,
        "tvm_ffi_add",
    ),
    "aot_torch_library": Way(
        "AOT", "torch.ops.sgl_aot.add → dispatcher → C++", "torch_ops", library="torch_add"
    ),
    "torch_add_out": Way("torch's own add", "torch.add(x, y, out=out)", "torch_ops"),
    "triton_jit": Way("Triton", "kernel[grid](x, y, out, n, BLOCK)", "triton_jit", ("triton",)),
    "triton_jit_pdl": Way(
        "Triton with PDL",
        "kernel[grid](x, y, out, n, BLOCK, launch_pdl=True)",
        "triton_jit",
        ("triton",),
    ),
    "cute_dsl": Way(
        "CuTe DSL",
        "compiled(x, y, out, stream)",
        "cute_dsl",
        ("nvidia-cutlass-dsl", "cuda-bindings"),
    ),
    "cupy_raw": Way(
        "CuPy raw kernel", "kernel(grid, block, (x, y, out, n))", "cupy_raw", ("cupy",), "cubin"
    ),
    "numba_cuda": Way(
        "Numba-CUDA",
        "kernel[grid, block, stream](x, y, out)",
        "numba_jit",
        ("numba", "numba-cuda"),
    ),
    "cuda_core": Way(
        "cuda.core",
        "launch(stream, config, kernel, *arguments)",
        "cuda_core",
        ("cuda-core",),
        "cubin",
    ),
    "cuda_bindings": Way(
        "cuda.bindings",
        "cuLaunchKernel(kernel, *geometry, (values, types))",
        "cuda_bindings",
        ("cuda-bindings",),
        "cubin",
    ),
    "cuda_graph": Way("CUDA graph", "torch.cuda.CUDAGraph.replay(), per kernel", "torch_ops"),
}
"""Every way, in the order of the document. All but the first take torch's tensors."""

VARIANTS = {
    "tvm_ffi_nothing": Variant("tvm_ffi_module", "tvm_ffi_add"),
    "tvm_ffi_accept": Variant("tvm_ffi_module", "tvm_ffi_add"),
    "jit_torch_op_nothing": Variant("torch_ops"),
    "aot_nothing": Variant("torch_ops", "torch_add"),
    "aot_accept": Variant("torch_ops", "torch_add"),
}

_OF_TVM_FFI = (
    ("call", "tvm_ffi_nothing", None),
    ("arguments", "tvm_ffi_accept", "tvm_ffi_nothing"),
    ("launch", "tvm_ffi", "tvm_ffi_accept"),
)
_OF_WRAPPER = (*_OF_TVM_FFI, ("python_wrapper", "jit_cached", "tvm_ffi"))
_OF_TORCH_OP = (*_OF_WRAPPER, ("dispatcher", "jit_torch_op", "jit_cached"))
STAGES: dict[str, tuple[tuple[str, str, str | None], ...]] = {
    "tvm_ffi": _OF_TVM_FFI,
    "jit_cached": _OF_WRAPPER,
    "jit_torch_op": _OF_TORCH_OP,
    "jit_custom_op": (*_OF_TORCH_OP, ("custom_op", "jit_custom_op", "jit_torch_op")),
    "aot_torch_library": (
        ("call", "aot_nothing", None),
        ("arguments", "aot_accept", "aot_nothing"),
        ("launch", "aot_torch_library", "aot_accept"),
    ),
}
"""By path, its stages: each is the first named variant's time less the second's."""


def measure(context: Context) -> dict[str, Any]:
    """Build the libraries, run the paths in independent processes; the parts of the document."""
    wanted = context.parameters
    unknown = [name for name in wanted["paths"] if name not in PATHS]
    if unknown:
        raise ConfigError(
            f"launch_paths: there is no path {', '.join(unknown)}; there are {', '.join(PATHS)}."
        )
    libraries, unbuilt = build_libraries(context.build, context.arch)
    argument = json.dumps(
        {
            **{name: wanted[name] for name in ("launches", "rounds", "warmup")},
            "libraries": {name: str(path) for name, path in libraries.items()},
            "paths": {
                name: way.stack
                for name, way in asked(wanted["paths"]).items()
                if way.library not in unbuilt
            },
        }
    )
    runs = [
        run_json(
            python_module(launch_paths_process.__name__, argument),
            name="launch_paths",
            timeout_s=_TIMEOUT_S,
        )
        for _ in range(wanted["process_runs"])
    ]
    context.versions.update(versions())
    return {
        "parameters": {
            "launches": wanted["launches"],
            "rounds": wanted["rounds"] + wanted["warmup"],
            "warmup_rounds": wanted["warmup"],
            "process_runs": wanted["process_runs"],
        },
        **body(runs, wanted["paths"], unbuilt),
    }


def asked(paths: list[str]) -> dict[str, Way | Variant]:
    """The ways of these names, and the variants that their stages are computed with."""
    needed = {part for name in paths for stage in STAGES.get(name, ()) for part in stage[1:]}
    return {
        **{name: PATHS[name] for name in paths},
        **{name: variant for name, variant in VARIANTS.items() if name in needed},
    }


def body(runs: list[dict[str, Any]], paths: list[str], unbuilt: dict[str, str]) -> dict[str, Any]:
    """Rows, stages and notes from what the processes printed.

    Each printed the samples of what it could prepare, and why it could not prepare the rest;
    `unbuilt` tells by library why it was not compiled.
    """
    prepared = list(runs[0]["samples"])
    if any(list(run["samples"]) != prepared for run in runs):
        raise MeasureError("launch_paths measured other paths in one process than in another.")
    samples: Samples = {name: [run["samples"][name] for run in runs] for name in prepared}
    failed = runs[0]["failed"] | {
        name: unbuilt[library]
        for name in paths
        if (library := PATHS[name].library) is not None and library in unbuilt
    }
    rows = [_row(name, samples.get(name), failed.get(name)) for name in paths]
    if all(row["host_us"] is None for row in rows):
        raise MeasureError(
            "launch_paths could not prepare a single path: "
            + "; ".join(f"{row['path']}: {row['skipped']}" for row in rows)
        )
    return {
        "rows": rows,
        "stages": [
            {"path": path, "stage": stage, "host_us": _difference(samples, minuend, subtrahend)}
            for path, stages in STAGES.items()
            if path in paths and _all_measured(samples, stages)
            for stage, minuend, subtrahend in stages
        ],
        "variants": [
            {"variant": name, "host_us": quantity(samples[name], keep_samples=False)}
            for name in VARIANTS
            if name in samples
        ],
        "notes": [
            "Before it was timed, each path filled an output that held NaN with the right sum."
        ],
    }


def build_libraries(build: Path, arch: str) -> tuple[dict[str, Path], dict[str, str]]:
    """The compiled native sources by name, and by name why one of them was not compiled."""
    flags: dict[str, Callable[[], list[str]]] = {
        "loop": lambda: _SHARED,
        "cubin": lambda: ["-cubin"],
        "torch_add": lambda: [*_SHARED, *torch_flags()],
        "tvm_ffi_add": tvm_ffi_flags,
    }
    libraries: dict[str, Path] = {}
    unbuilt: dict[str, str] = {}
    for name, make_flags in flags.items():
        source = SOURCES / "paths" / f"{name}.cu"
        suffix = ".cubin" if name == "cubin" else ".so"
        try:
            libraries[name] = build_program(source, build, arch, make_flags(), suffix=suffix)
        except MeasureError as error:
            unbuilt[name] = f"not compiled: {' '.join(str(error).split())}"
    return libraries, unbuilt


def tvm_ffi_flags() -> list[str]:
    """nvcc's flags for a tvm-ffi module; raises MeasureError where tvm-ffi is missing."""
    if not is_importable("tvm_ffi"):
        raise MeasureError("apache-tvm-ffi is not installed.")
    from tvm_ffi import libinfo

    return library_flags(libinfo)


_SHARED = ["-shared", "-Xcompiler=-fPIC"]


def torch_flags() -> list[str]:
    """nvcc's flags for a shared library that registers torch operators; torch is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise MeasureError("torch is not installed as a package, so its headers were not found.")
    root = Path(spec.submodule_search_locations[0])
    return [
        # So that the library is built again for another torch in the same place.
        f"-DBUILT_FOR_TORCH={package_version('torch')}",
        f"-I{root / 'include'}",
        f"-I{root / 'include' / 'torch' / 'csrc' / 'api' / 'include'}",
        f"-L{root / 'lib'}",
        *(f"-l{name}" for name in ("c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda")),
    ]


def versions() -> dict[str, str | None]:
    """The packages behind all paths; null: not installed."""
    packages = {package for way in PATHS.values() for package in way.packages}
    return {name: _version(name) for name in sorted(packages)}


def _version(package: str) -> str | None:
    # CuPy's distribution is named after the CUDA that it is built for.
    names = ("cupy-cuda13x", "cupy-cuda12x", "cupy") if package == "cupy" else (package,)
    return next((version for name in names if (version := package_version(name))), None)


def _row(name: str, samples: list[list[float]] | None, failed: str | None) -> dict[str, Any]:
    way = PATHS[name]
    packages = (() if way.library == "loop" else ("torch",)) + way.packages
    known = [f"{package} {version}" for package in packages if (version := _version(package))]
    return {
        "path": name,
        "label": way.label,
        "call_chain": way.call_chain,
        "host_us": quantity(samples, stop=[_STOP] * len(samples)) if samples else None,
        "skipped": None if samples else failed,
        "version": ", ".join(known) or None,
    }


def _all_measured(samples: Samples, stages: tuple[tuple[str, str, str | None], ...]) -> bool:
    return all(part in samples for stage in stages for part in stage[1:] if part is not None)


def _difference(samples: Samples, minuend: str, subtrahend: str | None) -> dict[str, Any]:
    if subtrahend is None:
        return quantity(samples[minuend], keep_samples=False)
    return paired_difference(samples[minuend], samples[subtrahend], name="launch_paths")
