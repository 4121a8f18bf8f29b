"""A forward as the measuring side sees it: a function that always uses the same memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def _nothing() -> None:
    """Nothing to do."""


@dataclass(frozen=True)
class Forward:
    """One decode step or one prefill, ready to run any number of times.

    `run` issues it on the current stream and returns the tensor that holds its result. `state` are
    the tensors that it changes and reads again the next time (what a result depends on besides the
    inputs); `before` puts Python's side of that state back, where there is one.
    """

    model: str
    run: "Callable[[], torch.Tensor]"
    state: "tuple[torch.Tensor, ...]" = ()
    before: Callable[[], None] = _nothing
