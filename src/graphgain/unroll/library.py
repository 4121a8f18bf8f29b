"""The C++ library `workflow/native/unroll`, built on first use and called through ctypes."""

import ctypes
from pathlib import Path

from graphgain.errors import MeasureError
from graphgain.measuring.native import SOURCES, build_program

SOURCE = SOURCES / "unroll" / "unroll.cu"
_FLAGS = ("-shared", "-Xcompiler=-fPIC")
_ARCH = "sm_90"
"""The library holds no device code, so that any architecture which nvcc knows will do."""


class Library:
    """The functions of the library. A failure is raised as a MeasureError with its sentence."""

    def __init__(self, path: Path) -> None:
        """Load a built library; raises MeasureError."""
        try:
            self._loaded = ctypes.CDLL(str(path))
        except OSError as error:
            raise MeasureError(
                f"{path}: cannot be loaded ({error}); remove it, then retry."
            ) from None
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        signatures = {
            "error": (text, []),
            "read": (pointer, [pointer]),
            "free": (None, [pointer]),
            "describe": (text, [pointer]),
            "issue": (ctypes.c_double, [pointer, pointer, ctypes.c_int, *[ctypes.c_ulong] * 2]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self._loaded, f"graphgain_unroll_{name}")
            function.restype, function.argtypes = result, arguments
        # Looked up once: `issue` is on the path that is timed.
        self._issue = self._loaded.graphgain_unroll_issue

    def read(self, graph: int) -> int:
        """Take a `cudaGraph_t` apart; returns a handle for the other functions."""
        handle = self._loaded.graphgain_unroll_read(graph)
        if not handle:
            raise MeasureError(self._error())
        return int(handle)

    def free(self, handle: int) -> None:
        """Give a handle back."""
        self._loaded.graphgain_unroll_free(handle)

    def describe(self, handle: int) -> str:
        """The nodes as JSON."""
        described: bytes = self._loaded.graphgain_unroll_describe(handle)
        return described.decode()

    def issue(self, handle: int, stream: int, pdl: bool, first: int, last: int) -> float:
        """Issue the nodes from `first` to before `last`; returns the loop's own host µs."""
        us = float(self._issue(handle, stream, pdl, first, last))
        if us < 0:
            raise MeasureError(self._error())
        return us

    def _error(self) -> str:
        message: bytes = self._loaded.graphgain_unroll_error()
        return message.decode()


def build_library(build: Path) -> Path:
    """Compile the library with nvcc's host compiler, or find it compiled.

    Raises MissingToolError without nvcc, MeasureError with the compiler's first errors.
    """
    return build_program(SOURCE, build, _ARCH, _FLAGS, suffix=".so")
