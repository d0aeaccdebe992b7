"""The gradients of soft actor-critic's losses: the choice of numpy or torch, and torch's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.flat import on_host
from rl_tui.engine.learning.sac.batch import SoftBatch
from rl_tui.engine.learning.sac.gradients_numpy import NumpySoftGradients
from rl_tui.engine.learning.sac.losses import SoftLosses, soft_losses
from rl_tui.engine.learning.sac.networks import SoftNetworks, SoftParameters
from rl_tui.engine.specs import ActionSpec

Array: TypeAlias = Any  # numpy array or torch tensor


class SoftGradients(Protocol):
    """Computes losses and writes their gradients into `SoftParameters`."""

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array on the device of the networks."""

    def place_all(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Array]:
        """`place` of each, in one copy to a GPU."""

    def __call__(self, batch: SoftBatch, target_entropy: float) -> SoftLosses:
        """The losses of placed rows."""

    def mean(self, rows: Sequence[Sequence[Array]]) -> list[float]:
        """Numbers of several calls, averaged over the calls."""


def soft_gradients(
    networks: SoftNetworks,
    parameters: SoftParameters,
    layout: FeatureLayout,
    actions: ActionSpec,
    network: NetworkSettings,
) -> SoftGradients:
    """In numpy for vectors on the CPU without memory, in two thirds of torch's time; in torch otherwise."""
    is_on_cpu = parameters.actor.parameters.device.type == "cpu"
    if is_on_cpu and layout.is_plain(network) and network.memory is None:
        return NumpySoftGradients(parameters, actions, network.activation)
    return TorchSoftGradients(networks, parameters, actions)


class TorchSoftGradients:
    """Any networks on any device, with torch's autograd."""

    def __init__(self, networks: SoftNetworks, parameters: SoftParameters, actions: ActionSpec):
        self._networks = networks
        self._actions = actions
        self._parameters = parameters
        self.place, self.place_all = parameters.target.place, parameters.target.place_all

    def __call__(self, batch: SoftBatch, target_entropy: float) -> SoftLosses:
        """See SoftGradients."""
        for flat in self._parameters.trained().values():
            flat.gradient.zero_()
        temperature = self._parameters.temperature
        alpha = temperature.parameters.exp()
        losses = soft_losses(self._networks, batch, self._actions, alpha, target_entropy)
        losses.total.backward()
        temperature.gradient.copy_(losses.grad_log_alpha)
        value = None if losses.value is None else losses.value.detach()
        return replace(losses, policy=losses.policy.detach(), q=losses.q.detach(), value=value)

    def mean(self, rows: Sequence[Sequence[Array]]) -> list[float]:
        """See SoftGradients. Waits for the device once."""
        numbers = on_host([number for row in rows for number in row])
        means: list[float] = np.reshape(numbers, (len(rows), -1)).mean(0).tolist()
        return means
