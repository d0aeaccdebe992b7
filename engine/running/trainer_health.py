"""What the settings of a trainer say for the rules about a run's health."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rl_tui.engine import registry
from rl_tui.engine.config.hyperparameters import hyperparameters_of, is_trainer
from rl_tui.engine.session.health.rules import Rule, TrainerHealth


def trainer_health(algorithm: str) -> TrainerHealth:
    """The rules and the advice of that trainer; none of its own for an unknown one. Its rules are not imported yet."""
    if not is_trainer(algorithm):
        return TrainerHealth()
    settings = hyperparameters_of(algorithm)
    rules: dict[str, Callable[[], Rule] | None] = {
        kind: partial(_make_rule, target) if target else None for kind, target in settings.health_rules.items()
    }
    return TrainerHealth(rules, settings.advice, settings.entropy_target)


def _make_rule(target: str) -> Rule:
    rule: Rule = registry.resolve(target)()
    return rule
