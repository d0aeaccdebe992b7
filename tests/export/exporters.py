"""Exporters of the policies that an actor has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.exporter import PolicyExporter
from rl_tui.engine.learning.actor_module import ActorModule
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.specs import BehaviorSpec, Weights


def actor_exporter(
    spec: BehaviorSpec, network: NetworkSettings, is_squashed: bool, policies: Sequence[ExportedKind] = ()
) -> PolicyExporter:
    """What PPO and SAC have."""
    settings = spec, network, is_squashed
    return PolicyExporter("ppo", ActorModule(*settings), partial(make_policy, *settings, 0), policies)


def exported_actor(spec: BehaviorSpec, network: NetworkSettings, is_squashed: bool, weights: Weights) -> ExportedPolicy:
    """With these weights."""
    module = ActorModule(spec, network, is_squashed)
    module.load(weights)
    return ExportedPolicy(module)
