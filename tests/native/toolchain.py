"""How the tests compile the native sources: the compilers they need, or why they cannot run."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "workflow" / "native"
PROBES = ROOT / "tests" / "native"
WARNINGS = ["-Wall", "-Wextra"]


def compile_plain(source: Path, target: Path) -> Path:
    """Compile a C++ file that needs no CUDA, with warnings as errors."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    command = [compiler, "-std=c++17", "-O2", *WARNINGS, "-Werror", f"-I{SOURCES}"]
    _run([*command, str(source), "-o", str(target)])
    return target


def compile_cuda(source: Path, target: Path, architecture: str = "sm_90") -> str:
    """Compile a `.cu` file with the libraries its `// link:` line names; what nvcc had to say."""
    nvcc = shutil.which("nvcc") or _in_cuda_home()
    if nvcc is None:
        pytest.skip("no nvcc on the PATH or in CUDA_HOME")
    command = [nvcc, "-std=c++17", "-O2", f"-arch={architecture}", "-Xcompiler", ",".join(WARNINGS)]
    libraries = link_flags(source)
    if "-lcublas" in libraries:
        libraries = _cublas_flags(Path(nvcc), libraries)
    return _run([*command, str(source), "-o", str(target), *libraries])


def link_flags(source: Path) -> list[str]:
    """The flags of the first `// link:` line; an empty list where there is none."""
    for line in source.read_text(encoding="utf-8").splitlines()[:5]:
        if line.startswith("// link:"):
            return line.removeprefix("// link:").split()
    return []


def _in_cuda_home() -> str | None:
    home = os.environ.get("CUDA_HOME")
    nvcc = Path(home, "bin", "nvcc") if home else None
    return str(nvcc) if nvcc and nvcc.is_file() else None


def _cublas_flags(nvcc: Path, libraries: list[str]) -> list[str]:
    """cuBLAS of the toolkit, or of the `nvidia-cublas` wheel, which has no unversioned names."""
    found = subprocess.run(
        [str(nvcc), "-E", "-x", "cu", "-include", "cublas_v2.h", os.devnull],
        capture_output=True,
        check=False,
    )
    if found.returncode == 0:
        return libraries
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or []) if package else []:
        home = Path(folder, "cu13")
        if (home / "include" / "cublas_v2.h").is_file():
            named = [flag.replace("-l", "-l:lib", 1) + ".so.13" for flag in libraries]
            search = [f"-I{home / 'include'}", f"-L{home / 'lib'}"]
            return [*search, *named, "-Xlinker", f"-rpath={home / 'lib'}"]
    pytest.skip("no cuBLAS headers in the CUDA toolkit or in a `nvidia-cublas` package")


def _run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    said = result.stdout + result.stderr
    assert result.returncode == 0, f"{' '.join(command)}\n{said}"
    return said
