"""torch: its own add, and the tvm-ffi function or compiled code as an operator of the dispatcher.

Operators are called as `torch.ops.NAMESPACE.NAME`, looked up once, as a module-level import would.
"""

from functools import cache
from typing import Any

import torch

from graphgain.experiments.paths import Issue, Operands, three_arguments

SCHEMA = "(Tensor x, Tensor y, Tensor(a!) out) -> ()"


def prepare_torch_add(operands: Operands) -> Issue:
    """torch.add with an output given, so that nothing is allocated."""
    add, x, y, out = torch.add, operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            add(x, y, out=out)

    return issue


def prepare_custom_op(operands: Operands) -> Issue:
    """The cached wrapper registered by torch.library.custom_op."""
    from graphgain.experiments.paths.tvm_ffi_module import cached_wrapper

    wrapper = cached_wrapper(operands)

    def add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        wrapper(x, y, out)

    torch.library.custom_op("graphgain_custom::add", add, mutates_args=("out",))
    return three_arguments(torch.ops.graphgain_custom.add, operands)


def prepare_library_impl(operands: Operands) -> Issue:
    """The cached wrapper registered by torch.library.Library.impl."""
    from graphgain.experiments.paths.tvm_ffi_module import cached_wrapper

    _library().impl("add", cached_wrapper(operands), operands.x.device.type.upper())
    return three_arguments(torch.ops.graphgain_jit.add, operands)


def prepare_library_nothing(operands: Operands) -> Issue:
    """The same registration around a Python function that does nothing."""
    _library().impl("nothing", lambda x, y, out: None, operands.x.device.type.upper())
    return three_arguments(torch.ops.graphgain_jit.nothing, operands)


def prepare_aot(operands: Operands) -> Issue:
    """TORCH_LIBRARY in C++, compiled ahead of time."""
    return three_arguments(_compiled(operands).add, operands)


def prepare_aot_accept(operands: Operands) -> Issue:
    """The same without the launch."""
    return three_arguments(_compiled(operands).accept, operands)


def prepare_aot_nothing(operands: Operands) -> Issue:
    """An operator without arguments that does nothing."""
    nothing = _compiled(operands).nothing

    def issue(launches: int) -> None:
        for _ in range(launches):
            nothing()

    return issue


def prepare_graph(operands: Operands) -> Issue:
    """One replay of a graph that holds a whole round of adds."""
    graph = torch.cuda.CUDAGraph()
    prepare_torch_add(operands)(1)  # what torch loads at its first add is not captured
    operands.stream.synchronize()
    with torch.cuda.graph(graph, stream=operands.stream):
        prepare_torch_add(operands)(operands.launches)

    def issue(_launches: int) -> None:
        graph.replay()

    return issue


@cache
def _library() -> Any:
    # Operators live as long as this object.
    library = torch.library.Library("graphgain_jit", "DEF")
    library.define(f"add{SCHEMA}")
    library.define(f"nothing{SCHEMA}")
    return library


def _compiled(operands: Operands) -> Any:
    torch.ops.load_library(str(operands.libraries["torch_add"]))
    return torch.ops.graphgain_aot


PREPARE = {
    "torch_add_out": prepare_torch_add,
    "jit_custom_op": prepare_custom_op,
    "jit_torch_op": prepare_library_impl,
    "jit_torch_op_nothing": prepare_library_nothing,
    "aot_torch_library": prepare_aot,
    "aot_accept": prepare_aot_accept,
    "aot_nothing": prepare_aot_nothing,
    "cuda_graph": prepare_graph,
}
