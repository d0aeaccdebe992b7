"""Canaries for undocumented parts of torch: a test that fails names the symbol and the version of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning import torch_private

BACKWARD = {  # by symbol: the activation, and whether its slope follows from what it gave, and more arguments
    "silu_backward": (functional.silu, False, ()),
    "tanh_backward": (torch.tanh, True, ()),
    "threshold_backward": (torch.relu, True, (0,)),
}


def require(symbol: str, call: Callable[[], Tensor], expected: Tensor) -> None:
    """The call gives what is expected, or the test fails with the name of the symbol and of the release."""
    broken = f"torch_private.{symbol}: torch {torch.__version__} changed it"
    try:
        found = call()
    except (TypeError, RuntimeError) as error:  # another signature
        pytest.fail(f"{broken}: {error!r}")
    torch.testing.assert_close(found, expected, msg=lambda difference: f"{broken}: {difference}")


@pytest.mark.parametrize("symbol", BACKWARD)
def test_the_backward_pass_of_an_activation_is_still_there(symbol: str) -> None:
    activation, is_of_result, more = BACKWARD[symbol]
    rows = torch.linspace(-3, 3, 64, requires_grad=True)
    result = activation(rows)
    gradient = torch.linspace(1, 2, 64)
    (expected,) = torch.autograd.grad(result, rows, gradient)
    known = result.detach() if is_of_result else rows.detach()

    def call() -> Tensor:
        out = gradient.clone()
        getattr(torch_private, symbol)(out, known, *more, grad_input=out)  # in place, as layers need it
        return out

    require(symbol, call, expected)


def test_fused_adam_is_still_there() -> None:
    start, gradient = torch.linspace(-1, 1, 64), torch.linspace(2, -1, 64)
    moments: Any = torch.full((64,), 0.1), torch.full((64,), 0.2)
    mean, variance = 0.9 * moments[0] + 0.1 * gradient, 0.999 * moments[1] + 0.001 * gradient**2
    corrected = mean / (1 - 0.9**3), variance / (1 - 0.999**3)

    def call() -> Tensor:
        flat = start.clone()
        torch_private.fused_adam_(
            [flat],
            [gradient],
            [moments[0]],
            [moments[1]],
            [],
            [torch.tensor(3.0)],
            lr=0.01,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
        return flat

    require("fused_adam_", call, start - 0.01 * corrected[0] / (corrected[1].sqrt() + 1e-8))


def test_a_symbol_that_is_gone_is_named_with_the_version_of_torch() -> None:
    with pytest.raises(ImportError, match=rf"torch {torch.__version__.split('+')[0]}.* has no torch\.ops\.aten\.gone"):
        torch_private._symbol("ops.aten.gone.grad_input")
