"""Whether this machine has a GPU that the CUDA driver can use."""

import pytest

from graphgain.measuring.cuda import first_device
from graphgain.measuring.unavailable import Unavailable


def has_gpu() -> bool:
    """Whether the driver finds a device."""
    try:
        return first_device() is not None
    except Unavailable:
        return False


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU")
