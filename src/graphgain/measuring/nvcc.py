"""Finding the CUDA compiler."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from graphgain.measuring.unavailable import Unavailable

WHERE_TO_GET = (
    "install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), "
    "then put nvcc on the PATH or set CUDA_HOME"
)
_TIMEOUT_S = 60


def find_nvcc() -> Path | None:
    """nvcc on the PATH, in CUDA_HOME or, where that is not set, in the toolkit's usual folder."""
    on_path = shutil.which("nvcc")
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    found = Path(on_path) if on_path else Path(home) / "bin" / "nvcc"
    return found if os.access(found, os.X_OK) else None


def toolkit_version() -> str:
    """The release that nvcc prints, such as "13.0"; raises Unavailable."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise Unavailable("nvcc was not found")
    match = re.search(r"release (\d+\.\d+)", version_text(nvcc))
    if not match:
        raise Unavailable(f"{nvcc} --version prints no release")
    return match[1]


def version_text(nvcc: Path) -> str:
    """All that `nvcc --version` prints; raises Unavailable."""
    try:
        done = subprocess.run(
            [nvcc, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{nvcc} --version does not run: {error}") from None
    return done.stdout
