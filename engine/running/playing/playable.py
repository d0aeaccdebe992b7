"""Which environments a person can play turn by turn, and whom in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.environments import has_agents, require_wrappable
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
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
    if reason := _why_not(spec.actions, most_choices):
        raise NotSupportedError(f"{env}: {reason}")
    return spec


def environment_to_play(config: RunConfig, behavior: str | None, seed: int) -> EnvironmentSource:
    """The environment of a run, or with several that of the behavior. Raises RlTuiError if it is not drawn here."""
    environments, names = named_environments(config, seed), list(config.behaviors)
    if len(environments) > 1 and behavior not in names:
        found = f"must be given: {one_of(names)}" if behavior is None else must_be_one_of(names, behavior)
        raise ConfigError(f"--behavior: {found}")
    source = next(each for each in environments if len(environments) == 1 or behavior in each.behaviors).source
    if is_of_unity(source.env):
        raise NotSupportedError(f"{source.env}: a Unity player cannot be played here: it does not draw in the terminal")
    if not has_agents(source.env):
        raise ConfigError(f"{source.env}: has no agent to play")
    return source


def with_all_players(source: EnvironmentSource) -> EnvironmentSource:
    """The same environment, where agents that acted at random in the run wait for actions, too: for a person to play
    the policy that learned against them. As it is where patterns of names give agents their behaviors."""
    adaptation = source.adaptation
    return source if adaptation.behaviors else replace(source, adaptation=replace(adaptation, random_agents=()))


def playable_behaviors(
    env: str, specs: Mapping[str, BehaviorSpec], behavior: str | None, most_choices: int
) -> dict[str, BehaviorSpec]:
    """Those whose agents have one choice among no more than `most_choices`, or the one that was requested.

    Raises ConfigError where it does not exist, and NotSupportedError where no agent can be played.
    """
    if behavior is not None and behavior not in specs:
        raise ConfigError(f"--behavior: {must_be_one_of(list(specs), behavior)}")
    asked = specs if behavior is None else {behavior: specs[behavior]}
    found = {name: spec for name, spec in asked.items() if not _why_not(spec.actions, most_choices)}
    if asked and not found:
        reasons = {_why_not(spec.actions, most_choices) for spec in asked.values()}
        raise NotSupportedError(f"{env}: {'; '.join(sorted(reasons))}")
    if not found:
        raise NotSupportedError(f"{env}: must have agents from the start to be played by a person")
    return found


def _why_not(actions: ActionSpec, most_choices: int) -> str:
    """Why no person can choose these actions; "" where one can."""
    if actions.continuous or len(actions.branches) != 1:
        must = "must have actions that are one choice among several to be played by a person"
        return f"{must}, got {_actions_in_words(actions)}"
    if actions.branches[0] > most_choices:
        return f"must have at most {most_choices} choices to be played by a person, got {actions.branches[0]}"
    return ""


def _actions_in_words(actions: ActionSpec) -> str:
    numbers = [counted(actions.continuous, "number")] if actions.continuous else []
    choices = [counted(len(actions.branches), "choice")] if actions.branches else []
    words = " and ".join([*numbers, *choices])
    return f"{words} at once" if actions.num_columns > 1 else words or "none"
