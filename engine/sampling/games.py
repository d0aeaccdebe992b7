"""Which games have ended in a step of an environment, and who has played in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rl_tui.engine.specs import LEARNING, Game, GameSide

Assigned = Mapping[str, Mapping[int, int]]  # by behavior and team: the number of the policy


def find_games(sides: Sequence[GameSide], assigned: Assigned) -> Iterator[Game]:
    """The games among the sides that ended in one step of one instance, each as one that learns has played it.

    An instance may hold several games, and does not say which sides belong together: those of a team play in the order
    of those of another one, unless all of that team act by the same policy. assigned: who plays for teams of which no
    side ended in this step, since they were out before.
    """
    of_team: dict[tuple[str, int], list[GameSide]] = defaultdict(list)
    for side in sides:
        of_team[side.behavior, side.team].append(side)
    for own in of_team.values():
        for place, side in enumerate(own):
            if side.policy == LEARNING and side.is_whole:
                opponents = tuple(_opponents(side, place, len(own), of_team, assigned))
                if opponents and all(each.is_whole for each in opponents):
                    yield Game(side, opponents)


def _opponents(
    side: GameSide,
    place: int,
    num_alike: int,
    of_team: Mapping[tuple[str, int], Sequence[GameSide]],
    assigned: Assigned,
) -> Iterator[GameSide]:
    playing = {(behavior, team): number for behavior, teams in assigned.items() for team, number in teams.items()}
    for behavior, team in {**of_team, **playing}:
        if team == side.team:
            continue
        others = of_team.get((behavior, team), ())
        if not others:
            yield GameSide(behavior, team, playing[behavior, team], -side.reward, -side.total)
        elif len(others) == num_alike:
            yield others[place]
        elif len({other.policy for other in others}) == 1:
            yield others[0]
