"""Which environments a person can play turn by turn."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.environments import has_agents, require_wrappable
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import ActionSpec, BehaviorSpec


def require_kind(env: str, *, has_wrappers: bool) -> None:
    """Its kind has environments that can be played here, in wrappers where it has any. env: with its kind.

    Raises RlTuiError.
    """
    if is_of_unity(env):
        text = "a Unity player cannot be played here: it does not draw in the terminal, and Unity records what a person"
        recorder = "plays, with the component Demonstration Recorder. Environments of Gymnasium are gymnasium:ID"
        raise NotSupportedError(f"{env}: {text} {recorder}")
    if not has_agents(env):
        raise ConfigError(f"{env}: has no agent to play")
    if has_wrappers:
        require_wrappable(env)


def require_playable(
    env: str, specs: Mapping[str, BehaviorSpec], num_agents: Mapping[str, int], most_choices: int
) -> BehaviorSpec:
    """Its only behavior, whose one agent has one choice among no more than `most_choices`. Raises NotSupportedError."""
    if len(specs) != 1:
        found = ", ".join(specs) or "none"
        raise NotSupportedError(f"{env}: must have one behavior to be played by a person, got {found}")
    (spec,) = specs.values()
    if num_agents[spec.name] > 1:
        raise NotSupportedError(f"{env}: must have one agent to be played by a person, got {num_agents[spec.name]}")
    if spec.actions.continuous or len(spec.actions.branches) != 1:
        must = "must have actions that are one choice among several to be played by a person"
        raise NotSupportedError(f"{env}: {must}, got {_actions_in_words(spec.actions)}")
    if spec.actions.branches[0] > most_choices:
        must = f"must have at most {most_choices} choices to be played by a person"
        raise NotSupportedError(f"{env}: {must}, got {spec.actions.branches[0]}")
    return spec


def _actions_in_words(actions: ActionSpec) -> str:
    numbers = [counted(actions.continuous, "number")] if actions.continuous else []
    choices = [counted(len(actions.branches), "choice")] if actions.branches else []
    words = " and ".join([*numbers, *choices])
    return f"{words} at once" if actions.num_columns > 1 else words or "none"
