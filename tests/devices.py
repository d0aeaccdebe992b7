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
    with precision("highest", False):
        yield gpu() if name == "gpu" else torch.device(name)


@contextmanager
def precision(products: str, has_tf32: bool) -> Iterator[None]:
    """torch computes so: matrix products as `set_float32_matmul_precision` names it, cuDNN's convolutions and memories
    with or without TF32."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    _set_precision(products, has_tf32)
    try:
        yield
    finally:
        _set_precision(*before)


def _set_precision(products: str, has_tf32: bool) -> None:
    """Not with `torch.backends.cudnn.flags`, whose defaults turn cuDNN off."""
    torch.set_float32_matmul_precision(products)
    torch.backends.cudnn.allow_tf32 = has_tf32
