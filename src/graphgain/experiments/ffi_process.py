"""One process of `ffi_launch`: times launches that start in Python and prints them as series.

Reads the library that `workflow/native/ffi/ffi_launch.cu` was built into. Paths take turns round by
round; a round issues `launches` launches inside the clock and synchronises outside it.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

TENSOR_ELEMENTS = 1024


def main(library: str, argument: str) -> None:
    """Run the parameters given as JSON and print one document."""
    import tvm_ffi

    wanted = json.loads(argument)
    launches: int = wanted["launches"]
    module = tvm_ffi.load_module(library)
    paths = timed_paths(module, launches)
    samples: dict[str, list[float]] = {path: [] for path in paths}
    for index in range(wanted["warmup"] + wanted["rounds"]):
        for path, issue_us in paths.items():
            us = issue_us()
            module.synchronize()
            if index >= wanted["warmup"]:
                samples[path].append(us / launches)
    print(
        json.dumps(
            {
                "runtime_version": str(module.runtime_version()),
                "torch_tensors": "python_tvm_ffi_torch_tensors" in paths,
                "samples": samples,
            }
        )
    )


def timed_paths(module: Any, launches: int) -> dict[str, Callable[[], float]]:
    """By path, a function that issues `launches` launches and returns the host's µs."""
    tensors = [module.make_tensor(TENSOR_ELEMENTS) for _ in range(2)]
    module.prepare_graph(launches)
    paths = {
        "python_tvm_ffi": python_loop(module.launch, (), launches),
        "python_tvm_ffi_tensors": python_loop(module.launch_with_tensors, tensors, launches),
    }
    torch_tensors = make_torch_tensors()
    if torch_tensors:
        paths["python_tvm_ffi_torch_tensors"] = python_loop(
            module.launch_with_tensors, torch_tensors, launches
        )
    paths["cpp_loop"] = lambda: float(module.loop_us(launches))
    paths["graph"] = lambda: float(module.graph_us())
    return paths


def python_loop(function: Callable[..., Any], arguments: Any, launches: int) -> Callable[[], float]:
    """A function that times `launches` calls of `function(*arguments)` from Python, in µs."""
    clock = time.perf_counter_ns

    def without_arguments() -> float:
        start = clock()
        for _ in range(launches):
            function()
        return (clock() - start) / 1000

    def with_two() -> float:
        x, y = arguments
        start = clock()
        for _ in range(launches):
            function(x, y)
        return (clock() - start) / 1000

    return with_two if arguments else without_arguments


def make_torch_tensors() -> list[Any]:
    """Two torch tensors on the GPU, or none where torch or its CUDA is missing."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    return [torch.zeros(TENSOR_ELEMENTS, device="cuda") for _ in range(2)]


if __name__ == "__main__":
    main(*sys.argv[1:])
