"""Whether behaviors that play themselves have opponents."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.games.seats import teams_of

MLAGENTS = "mlagents:"  # environments whose teams appear with their first agents, as those of players do


def require_opponents(env: str, behaviors: Mapping[str, Behavior]) -> None:
    """Behaviors that play themselves have two teams in all, where the environment names all of its agents before the
    first step. Raises ConfigError."""
    playing = [behavior for behavior in behaviors.values() if behavior.league is not None]
    if not playing or is_of_unity(env) or env.startswith(MLAGENTS):
        return
    if len({team for behavior in playing for team in teams_of(behavior.spec)}) < 2:
        name = playing[0].spec.name
        raise ConfigError(f"behaviors.{name}.self_play: {only_one_team(env, [each.spec.name for each in playing])}")


def only_one_team(env: str, names: list[str]) -> str:
    """Why they have no opponent, and what to do."""
    name = names[0]
    text = f"{env} has only one team of {' and '.join(names)}, which has no opponent. The environment must name"
    return f"{text} {name}?team=0, {name}?team=1 and so on; for agents of PettingZoo env_settings.behaviors does"
