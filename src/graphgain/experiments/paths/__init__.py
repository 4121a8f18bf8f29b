"""The ways in which Python launches the same kernel, an elementwise add; one module a stack.

Each module imports its package at the top, so that a missing package is known before anything of
it runs, and has `PREPARE`: by name, a function that gets the operands and returns an `Issue`.
Everything that a program does once (compiling, looking up, wrapping tensors where the stack's own
idiom does that once) happens in it; the `Issue` repeats what a program does for every launch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ELEMENTS = 4096
BLOCK = 256

Issue = Callable[[int], object]
"""Issues so many launches from a Python loop, without waiting for the GPU."""


@dataclass(frozen=True)
class Operands:
    """What every way works on: out = x + y on a stream.

    `x`, `y` and `out` are float32 torch tensors of `ELEMENTS` on the GPU, `stream` is the current
    torch stream and not the default one. `launches` is how many a timed round issues, `libraries`
    are the compiled native sources by name.
    """

    x: Any
    y: Any
    out: Any
    stream: Any
    launches: int
    libraries: dict[str, Path]

    @property
    def handle(self) -> int:
        """The stream as a CUstream."""
        return int(self.stream.cuda_stream)


def blocks() -> int:
    """Blocks that cover the operands."""
    return -(-ELEMENTS // BLOCK)


def three_arguments(function: Callable[..., Any], operands: Operands) -> Issue:
    """A loop over `function(x, y, out)`."""
    x, y, out = operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            function(x, y, out)

    return issue
