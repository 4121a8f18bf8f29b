"""Finding other CPythons on this machine: on the PATH, of pyenv, of uv."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ASK = (
    "import json, platform, sysconfig; print(json.dumps([platform.python_version(), "
    "bool(sysconfig.get_config_var('Py_GIL_DISABLED')), platform.python_implementation()]))"
)
_TIMEOUT_S = 20


@dataclass(frozen=True)
class Interpreter:
    """One CPython: where it is, its full version, and whether it is a free-threaded build."""

    path: str
    version: str
    free_threaded: bool

    @property
    def release(self) -> str:
        """Its release as it is asked for: 3.13, or 3.13t for a free-threaded build."""
        major, minor = re.findall(r"\d+", self.version)[:2]
        return f"{major}.{minor}{'t' * self.free_threaded}"


def find_interpreters(releases: Iterable[str]) -> dict[str, Interpreter | None]:
    """By release such as "3.13" or "3.13t", the first CPython of it that runs here, or None.

    Of the release of the running Python it is that one.
    """
    return {release: _find(release) for release in releases}


def ask(path: str | Path) -> Interpreter | None:
    """What an interpreter says that it is; None where it does not run or is not CPython."""
    try:
        done = subprocess.run(
            [path, "-c", ASK], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
        version, free_threaded, implementation = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if implementation != "CPython":
        return None
    return Interpreter(str(path), version, free_threaded)


def _find(release: str) -> Interpreter | None:
    for path in [Path(sys.executable), *_candidates(release)]:
        found = ask(path)
        if found and found.release == release:
            return found
    return None


def _candidates(release: str) -> list[Path]:
    on_path = shutil.which(f"python{release}")
    number, name = release.rstrip("t"), f"python{release}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    uv = (
        os.environ.get("UV_PYTHON_INSTALL_DIR")
        or Path.home() / ".local" / "share" / "uv" / "python"
    )
    installed = [
        *sorted(pyenv.glob(f"{number}.*"), reverse=True),
        *sorted(Path(uv).glob(f"cpython-{number}.*"), reverse=True),
    ]
    found = [folder / "bin" / name for folder in installed]
    return [
        *([Path(on_path)] if on_path else []),
        *(path for path in found if path.exists()),
    ]
