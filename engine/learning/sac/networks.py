"""The networks of soft actor-critic, and their parameters as they are trained."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.critics import StateCritic, TwinCritic
from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.specs import ActionSpec


@dataclass(frozen=True, slots=True)
class SoftNetworks:
    """The actor, the critics and the target.

    target: of `value`; of `q` where there is no value network (Haarnoja et al. 2018, second version).
    """

    actor: Actor
    q: TwinCritic
    value: StateCritic | None
    target: StateCritic | TwinCritic


@dataclass(frozen=True, slots=True)
class SoftParameters:
    """The trained parameters with their gradients, and the target. value: None without a value network."""

    actor: FlatParameters
    q: FlatParameters
    value: FlatParameters | None
    temperature: FlatParameters  # ln alpha, f32[1 + K]
    target: FlatParameters

    def trained(self) -> dict[str, FlatParameters]:
        """The trained ones by name, each with an optimizer of its own."""
        parts = {"actor": self.actor, "q": self.q, "value": self.value, "temperature": self.temperature}
        return {name: flat for name, flat in parts.items() if flat is not None}

    def has_finite_gradients(self) -> bool:
        """Whether gradients and their squares, which optimizers keep, are finite. Waits for the device."""
        return math.isfinite(sum(flat.gradient @ flat.gradient for flat in self.trained().values()))


def soft_networks(
    random: np.random.Generator,
    layout: FeatureLayout,
    actions: ActionSpec,
    network: NetworkSettings,
    streams: int,
    with_value: bool,
) -> SoftNetworks:
    """New networks; the target begins as a copy."""
    actor = Actor(random, layout, actions, network, is_squashed=True)
    q = TwinCritic(random, layout, actions, network, streams)
    value = StateCritic(random, layout, network, streams) if with_value else None
    return SoftNetworks(actor, q, value, copy.deepcopy(q if value is None else value))


def soft_parameters(
    networks: SoftNetworks, initial_temperature: float, num_branches: int, device: torch.device
) -> SoftParameters:
    """The networks' parameters on the device, each network in one array."""
    return SoftParameters(
        actor=FlatParameters(networks.actor, device),
        q=FlatParameters(networks.q, device),
        value=None if networks.value is None else FlatParameters(networks.value, device),
        temperature=FlatParameters(_Temperature(initial_temperature, num_branches), device),
        target=FlatParameters(networks.target.requires_grad_(False), device),
    )


class _Temperature(nn.Module):
    """ln alpha f32[1 + K] as a parameter, optimized and saved like those of networks."""

    def __init__(self, initial: float, num_branches: int):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((1 + num_branches,), math.log(initial)))
