"""Every undocumented symbol of torch that is used. test_torch_private.py names the one that a new release breaks."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch


def _symbol(path: str) -> Any:
    try:
        return attrgetter(path)(torch)
    except AttributeError:
        raise ImportError(f"torch {torch.__version__} has no torch.{path}, which rl-tui needs") from None


# Adam in one pass. torch.optim would call the same, after 1.3 s of imports.
fused_adam_ = _symbol("_fused_adam_")
# (gradient, what the slope follows from, ..., grad_input=): an activation's backward pass into a given tensor.
silu_backward = _symbol("ops.aten.silu_backward.grad_input")
tanh_backward = _symbol("ops.aten.tanh_backward.grad_input")
threshold_backward = _symbol("ops.aten.threshold_backward.grad_input")
