"""One process of `launch_paths`: prepares every path, checks its sum, and times them in turn.

Paths take turns round by round; a round issues `launches` calls inside the clock and synchronises
outside it. Prints {"samples": {path: [µs a call]}, "failed": {path: why it was not timed}}.
"""

import importlib
import json
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgain.experiments.paths import ELEMENTS, Issue, Operands

if TYPE_CHECKING:
    # Imported by name below; here so that they count among the sources.
    from graphgain.experiments.paths import (
        cuda_bindings,  # noqa: F401
        cuda_core,  # noqa: F401
        cupy_raw,  # noqa: F401
        cute_dsl,  # noqa: F401
        native_loop,  # noqa: F401
        numba_jit,  # noqa: F401
        torch_ops,  # noqa: F401
        triton_jit,  # noqa: F401
        tvm_ffi_module,  # noqa: F401
    )

# Those that leave a stage out and compute nothing.
EMPTY = ("_nothing", "_accept")
COLOR = re.compile(r"\x1b\[[\d;]*m")
SHOWN_CHARACTERS = 200


def main(argument: str) -> None:
    """Run the parameters given as JSON and print one document."""
    wanted = json.loads(argument)
    operands = make_operands(wanted["launches"], wanted["libraries"])
    prepared: dict[str, Issue] = {}
    failed: dict[str, str] = {}
    for name, stack in wanted["paths"].items():
        # The last line of standard error is what the parent shows if a package crashes.
        print(f"preparing {name}", file=sys.stderr, flush=True)
        try:
            issue = prepare(stack, name, operands)
            check(issue, operands, computes=not name.endswith(EMPTY))
        except ModuleNotFoundError as error:
            failed[name] = f"{error.name} is not installed"
        except Exception as error:  # whatever a package raises concerns its path alone
            failed[name] = f"did not work here: {type(error).__name__}: {first_line(error)}"
        else:
            prepared[name] = issue
    print("timing", file=sys.stderr, flush=True)
    samples = time_in_turn(prepared, operands, wanted["rounds"], wanted["warmup"])
    print(json.dumps({"samples": samples, "failed": failed}))


def make_operands(launches: int, libraries: dict[str, str]) -> Operands:
    """Tensors with known contents, and a stream that is torch's current one from now on."""
    import torch

    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    x = torch.arange(ELEMENTS, dtype=torch.float32, device="cuda")
    paths = {name: Path(path) for name, path in libraries.items()}
    return Operands(x, 2 * x + 1, torch.empty_like(x), stream, launches, paths)


def prepare(stack: str, name: str, operands: Operands) -> Issue:
    """What issues a path's launches, with everything compiled and cached."""
    module = importlib.import_module(f"graphgain.experiments.paths.{stack}")
    found: Issue = module.PREPARE[name](operands)
    return found


def check(issue: Issue, operands: Operands, *, computes: bool) -> None:
    """Launch once and look at the output, which held NaN; raises ArithmeticError if it is wrong.

    A variant that leaves the launch out has to leave the output alone.
    """
    operands.out.fill_(float("nan"))
    operands.stream.synchronize()
    issue(1)
    operands.stream.synchronize()
    if computes and not bool((operands.out == operands.x + operands.y).all()):
        raise ArithmeticError("the output is not the sum of the inputs")
    if not computes and not bool(operands.out.isnan().all()):
        raise ArithmeticError("a variant without a launch changed the output")


def time_in_turn(
    paths: dict[str, Issue], operands: Any, rounds: int, warmup: int
) -> dict[str, list[float]]:
    """Samples of every path in µs a launch, one a round, without the `warmup` rounds."""
    clock, launches = time.perf_counter_ns, operands.launches
    synchronize = operands.stream.synchronize
    samples: dict[str, list[float]] = {name: [] for name in paths}
    for index in range(warmup + rounds):
        for name, issue in paths.items():
            start = clock()
            issue(launches)
            us = (clock() - start) / 1000
            synchronize()
            if index >= warmup:
                samples[name].append(us / launches)
    return samples


def first_line(error: BaseException) -> str:
    """The first line that says something, of what may be a coloured page."""
    lines = (line.strip() for line in COLOR.sub("", str(error)).splitlines())
    return next(filter(None, lines), "no reason given")[:SHOWN_CHARACTERS]


if __name__ == "__main__":
    main(sys.argv[1])
