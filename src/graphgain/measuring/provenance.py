"""How, when and by which code a document was measured."""

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from graphgain.experiments import Experiment
from graphgain.measuring.gpu import LocalGpu
from graphgain.measuring.native import SOURCES, included_files
from graphgain.measuring.nvcc import toolkit_version
from graphgain.measuring.packages import package_version
from graphgain.measuring.unavailable import Unavailable
from graphgain.sources import PACKAGE, content_hash, imported_modules

ROOT = PACKAGE.parents[1]
"""The checkout: where `src`, `workflow` and `results` are."""

_NOT_MEASURING = frozenset(
    PACKAGE / name
    for name in ("__init__.py", "errors.py", "experiments/__init__.py", "measuring/lock.py")
)
"""Cannot change a number: the version, the errors, the lock, and the registry, whose defaults are
compared as parameters."""


def experiment_sources(experiment: Experiment) -> list[Path]:
    """The files that decide what an experiment measures: its modules and its native sources."""
    modules = {experiment.source, *imported_modules(experiment.source)} - _NOT_MEASURING
    return sorted(modules | set(_native_sources(experiment)))


def source_hash(experiment: Experiment) -> str:
    """The hash over names and contents of `experiment_sources`."""
    return content_hash(experiment_sources(experiment), ROOT)


def now_utc() -> str:
    """Now, to the second, as ISO 8601 in UTC."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0).isoformat()


def git_state(files: Iterable[Path], root: Path = ROOT) -> tuple[str | None, bool | None]:
    """The commit, and whether any of `files` differs from it; nulls outside a checkout."""
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    paths = [str(path.relative_to(root)) for path in files]
    status = _git(root, "status", "--porcelain", "--", *paths)
    return commit, None if status is None else bool(status)


def software_versions(
    packages: Iterable[str], gpu: LocalGpu | None, more: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Versions of all that can change a measured number; null: not there."""
    try:
        nvcc = toolkit_version()
    except Unavailable:
        nvcc = None
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "driver": gpu.driver if gpu else None,
        "driver_cuda": gpu.driver_cuda if gpu else None,
        "nvcc": nvcc,
        "torch": package_version("torch"),
        **{package: package_version(package) for package in packages},
        **more,
    }


def command_line() -> list[str]:
    """This command, without the folder in which the program happens to be installed."""
    return ["graphgain", *sys.argv[1:]]


def _native_sources(experiment: Experiment) -> list[Path]:
    sources = [
        SOURCES / (name if Path(name).suffix else f"{name}.cu") for name in experiment.native
    ]
    # A library in a folder of its own includes headers from the folder above.
    return [Path(os.path.normpath(file)) for source in sources for file in included_files(source)]


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", root, *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
