"""What a user should know of goals before a long training begins."""

from __future__ import annotations

from rl_tui.engine.config.behavior import NetworkSettings
from rl_tui.engine.specs import BehaviorSpec

_ORDINARY = "network_settings.goal_conditioning_type: none"


def goal_warning(spec: BehaviorSpec, network: NetworkSettings, num_parameters: int, is_chosen: bool) -> str | None:
    """What to say of a behavior's goals, if anything; is_chosen: the file itself says what becomes of them."""
    goals = [seen for seen in spec.observations if seen.is_goal]
    if not goals or network.goal_conditioning_type == "none":
        return None
    names = ", ".join(goal.name for goal in goals)
    if all(goal.kind == "entities" for goal in goals):
        text = "a set of entities cannot compute the weights of a layer and is used as an ordinary observation"
        return f"goal {names}: {text}, as in ML-Agents. Write {_ORDINARY} to avoid this warning"
    if is_chosen:
        return None
    return (
        f"goal {names}: the default goal_conditioning_type, hyper, computes the weights of a layer from it:"
        f" {num_parameters:,} parameters in all, and training is many times slower. Write {_ORDINARY} to make it an"
        " ordinary observation, or goal_conditioning_type: hyper to keep it without this warning"
    )
