"""tvm-ffi: a module's function called with torch tensors, directly and behind a cached look-up."""

import functools
from collections.abc import Callable
from typing import Any

import tvm_ffi

from graphgain.experiments.paths import Issue, Operands, three_arguments


def load(operands: Operands) -> Any:
    """The compiled module."""
    return tvm_ffi.load_module(str(operands.libraries["tvm_ffi_add"]))


def cache_once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Call `make` once for each combination of arguments, and look the result up afterwards."""
    made: dict[Any, Any] = {}

    @functools.wraps(make)
    def look_up(*arguments: Any) -> Any:
        if arguments not in made:
            made[arguments] = make(*arguments)
        return made[arguments]

    return look_up


def cached_wrapper(operands: Operands) -> Callable[[Any, Any, Any], None]:
    """What a just-in-time kernel looks like to its callers: a function that finds its module."""

    @cache_once
    def module_for(dtype: Any) -> Any:
        return load(operands)

    def add(x: Any, y: Any, out: Any) -> None:
        module = module_for(x.dtype)
        module.add(x, y, out)

    return add


def prepare_call(operands: Operands) -> Issue:
    """module.add(x, y, out), with the attribute looked up in every call."""
    module = load(operands)
    x, y, out = operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            module.add(x, y, out)

    return issue


def prepare_cached(operands: Operands) -> Issue:
    """The Python wrapper."""
    return three_arguments(cached_wrapper(operands), operands)


def prepare_accept(operands: Operands) -> Issue:
    """The call with its tensors, without the launch."""
    module = load(operands)
    x, y, out = operands.x, operands.y, operands.out

    def issue(launches: int) -> None:
        for _ in range(launches):
            module.accept(x, y, out)

    return issue


def prepare_nothing(operands: Operands) -> Issue:
    """The call alone."""
    module = load(operands)

    def issue(launches: int) -> None:
        for _ in range(launches):
            module.nothing()

    return issue


PREPARE = {
    "tvm_ffi": prepare_call,
    "jit_cached": prepare_cached,
    "tvm_ffi_accept": prepare_accept,
    "tvm_ffi_nothing": prepare_nothing,
}
