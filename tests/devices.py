"""The devices that tests compute on: the CPU, one that is pretended, and a real one for the tests marked `gpu`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.pretended_device import DEVICE, PretendedDevice

VARIABLE = "RL_TUI_GPU"  # torch's name of the device for tests marked `gpu`: cuda, or cpu to try out the tests
GPU = pytest.param("gpu", marks=pytest.mark.gpu)


def gpu() -> torch.device:
    """The device of tests marked `gpu`; skips where it is not there."""
    device = torch.device(os.environ.get(VARIABLE) or "cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return device


@contextmanager
def opened(name: str) -> Iterator[torch.device]:
    """The device of that name. A real one computes in float32 with all its digits, as the CPU does."""
    if name == "pretended":
        with PretendedDevice().everywhere():
            yield DEVICE
        return
    device = gpu() if name == "gpu" else torch.device(name)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(allow_tf32=False):  # which torch uses in convolutions and memories
            yield device
    finally:
        torch.set_float32_matmul_precision(before)
