"""Small libraries in C for ctypes, compiled with the system's C compiler where there is one."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from graphgain.errors import MeasureError
from graphgain.measuring.process import run_to_end

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-std=c11", "-shared", "-fPIC")
_TIMEOUT_S = 120


def find_cc() -> str | None:
    """The C compiler on the PATH, or None."""
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def build_c_library(source: Path, build: Path) -> Path | None:
    """Compile a C source into a shared library, or find it compiled; None without a compiler.

    The name holds a hash of the source, the flags and the compiler's path. Raises MeasureError with
    what the compiler says.
    """
    compiler = find_cc()
    if compiler is None:
        return None
    key = "\0".join([source.read_text(encoding="utf-8"), *FLAGS, compiler])
    folder = build / "native"
    target = folder / f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{source.stem}-", dir=folder) as scratch:
        made = Path(scratch) / target.name
        ended = run_to_end(
            [compiler, *FLAGS, "-o", made, source],
            name=f"{compiler} for {source.name}",
            timeout_s=_TIMEOUT_S,
        )
        if ended.returncode != 0 or not made.exists():
            raise MeasureError(f"{compiler} could not compile {source}:\n{ended.stderr.strip()}")
        made.replace(target)
    return target
