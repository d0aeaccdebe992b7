"""Terms of a loss that need no derivative by hand: autograd finds it, also where the networks compute in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.learning.on_policy.actor_critic import ActorCritic, Outputs
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Minibatch

Array: TypeAlias = Any  # numpy array or torch tensor
AnyOutputs = TypeVar("AnyOutputs", bound=Outputs)


@dataclass(frozen=True, slots=True)
class AddedTerm:
    """A term, which is multiplied by its coefficient and added to the loss.

    tag: the metric that shows it, without the coefficient. of: f32[] of the networks' outputs and a mini-batch, both in
    tensors. It may use the networks' parameters, too.
    """

    tag: str
    of: Callable[[Any, Minibatch], Tensor]
    coefficient: float = 1.0


def with_added(
    loss: Loss, outputs: Outputs, minibatch: Minibatch, terms: Sequence[AddedTerm]
) -> tuple[Loss, list[Array]]:
    """The loss with these terms in its total, but not in its gradients, and the terms themselves."""
    tensors = _mapped(outputs, torch.as_tensor)
    with torch.no_grad():
        _, total, found = _evaluated(loss, tensors, minibatch, terms)
    return replace(loss, total=total), found


def backward(
    network: ActorCritic, loss: Loss, outputs: Outputs, minibatch: Minibatch, terms: Sequence[AddedTerm]
) -> tuple[Loss, list[Array]]:
    """Write the network's gradient of the loss and these terms; returns both as `with_added` does.

    outputs: of the network's last `forward`. Terms are differentiated down to these, from where the network goes on
    with its own backward pass, and for parameters that they use directly.
    """
    leaves = _mapped(outputs, _leaf)
    gradient = torch.as_tensor(network.gradient)  # the same memory, and that of the parameters' `grad`
    gradient.zero_()
    added, total, found = _evaluated(loss, leaves, minibatch, terms)
    if added.requires_grad:
        torch.autograd.backward(added)
    of_parameters = gradient.clone()
    sums = {f.name: _sum(getattr(loss.gradients, f.name), getattr(leaves, f.name)) for f in fields(leaves)}
    network.backward(replace(loss.gradients, **sums))
    gradient.add_(of_parameters)
    return replace(loss, total=total), found


def _evaluated(
    loss: Loss, outputs: Outputs, minibatch: Minibatch, terms: Sequence[AddedTerm]
) -> tuple[Tensor, Array, list[Array]]:
    """What the terms add, to be differentiated; the loss with it; the terms in the form of the loss."""
    tensors = minibatch.as_tensors()
    found = [term.of(outputs, tensors) for term in terms]
    added = torch.stack([term.coefficient * one for term, one in zip(terms, found, strict=True)]).sum()
    like = loss.gradients.head
    return added, loss.total + _like(like, added.detach()), [_like(like, one.detach()) for one in found]


def _mapped(outputs: AnyOutputs, change: Callable[[Array], Tensor]) -> AnyOutputs:
    """The same outputs, each changed."""
    arrays = {field.name: getattr(outputs, field.name) for field in fields(outputs)}
    return replace(outputs, **{name: None if of is None else change(of) for name, of in arrays.items()})


def _leaf(array: Array) -> Tensor:
    """A copy that autograd differentiates for; the network may use the array again."""
    return torch.as_tensor(array).detach().clone().requires_grad_()


def _sum(gradient: Array, leaf: Tensor | None) -> Array:
    return gradient if leaf is None or leaf.grad is None else gradient + _like(gradient, leaf.grad)


def _like(array: Array, tensor: Tensor) -> Array:
    return tensor.numpy() if isinstance(array, np.ndarray) else tensor
