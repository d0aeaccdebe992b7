"""Whether behaviors that play themselves have opponents."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.games.seats import only_one_team, teams_of

MLAGENTS = "mlagents:"  # environments whose teams appear with their first agents, as those of players do


def require_opponents(env: str, behaviors: Mapping[str, Behavior]) -> None:
    """Behaviors that play themselves have two teams in all, where the environment names all of its agents before the
    first step. Raises ConfigError."""
    playing = [behavior for behavior in behaviors.values() if behavior.league is not None]
    if not playing or is_of_unity(env) or env.startswith(MLAGENTS):
        return
    if len({team for behavior in playing for team in teams_of(behavior.spec)}) < 2:
        name = playing[0].spec.name
        one = only_one_team(each.spec.name for each in playing)
        raise ConfigError(f"behaviors.{name}.self_play: {env} has {one}. Without self_play it is trained as usual")
