"""Which games have ended in a step of an environment, and who has played in them.  Shapes: N agents, G sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import LEARNING, Bool, Float32, Game, GameSide, Int64

Place: TypeAlias = tuple[str, int]  # a behavior and one of its teams


def joined_groups(
    groups: Int64,
    teams: Int64,
    policies: Int64,
    rewards: Float32,
    returns: NDArray[np.float64],
    is_interrupted: Bool,
    is_whole: Bool,
) -> list[NDArray[Any]]:
    """All but the first, each [N], with one value for each group and for each agent without one: [G], in the order of
    their first agents. groups: -1 without one. A group has the mean of rewards and returns, is interrupted where an
    agent is, and whole where all are by one policy."""
    count = len(groups)
    parts = np.where(groups < 0, -1 - np.arange(count), groups)
    _, first, inverse, sizes = np.unique(parts, return_index=True, return_inverse=True, return_counts=True)

    def total(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(inverse, values, len(first))

    is_odd = ~is_whole | (policies != policies[first][inverse])
    joined: list[NDArray[Any]] = [teams[first], policies[first], total(rewards) / sizes, total(returns) / sizes]
    joined += [total(is_interrupted) > 0, total(is_odd) == 0]
    order = first.argsort()
    return [values[order] for values in joined]


def find_games(sides: Sequence[GameSide], earlier: Mapping[Place, GameSide]) -> Iterator[Game]:
    """The games among the sides that ended in one step of one instance, each as one that learns has played it.

    An instance may hold several games, and does not say which sides belong together: those of a team play in the order
    of those of another one, unless all of that team act by the same policy. earlier: the last side of each team that
    ended in a step before, for teams of which none ended in this one, since they were out.
    """
    of_team: dict[Place, list[GameSide]] = defaultdict(list)
    for side in sides:
        of_team[side.behavior, side.team].append(side)
    for own in of_team.values():
        for place, side in enumerate(own):
            if side.policy == LEARNING and side.is_whole:
                opponents = tuple(_opponents(side, place, len(own), of_team, earlier))
                if opponents and all(each.is_whole for each in opponents):
                    yield Game(side, opponents)


def _opponents(
    side: GameSide,
    place: int,
    num_alike: int,
    of_team: Mapping[Place, Sequence[GameSide]],
    earlier: Mapping[Place, GameSide],
) -> Iterator[GameSide]:
    for behavior, team in {**of_team, **earlier}:
        if team == side.team:
            continue
        others = of_team.get((behavior, team), ())
        if not others:
            yield earlier[behavior, team]
        elif len(others) == num_alike:
            yield others[place]
        elif len({other.policy for other in others}) == 1:
            yield others[0]
