"""The floor: the launches come from a loop in C++, entered once a round."""

import ctypes

from graphgain.experiments.paths import BLOCK, ELEMENTS, Issue, Operands


def prepare_loop(operands: Operands) -> Issue:
    """One ctypes call that issues all launches of a round."""
    function = ctypes.CDLL(str(operands.libraries["loop"])).loop_us
    function.restype = ctypes.c_double
    function.argtypes = [
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
        *(ctypes.c_void_p, ctypes.c_int),
    ]
    pointers = [tensor.data_ptr() for tensor in (operands.x, operands.y, operands.out)]
    stream = operands.handle

    def issue(launches: int) -> None:
        function(*pointers, ELEMENTS, BLOCK, stream, launches)

    return issue


PREPARE = {"cpp_loop": prepare_loop}
