"""Which games of one side count, and how each has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rl_tui.engine.running.games.rules import PlayedGame
from rl_tui.engine.running.games.seats import Seat
from rl_tui.engine.sampling.pools.numbering import ids_of_instance
from rl_tui.engine.specs import DecisionSteps, Steps, TerminalSteps

NO_GROUP = -1


@dataclass(slots=True, eq=False)
class _Game:
    """members: agents in it whose episodes go on. ended: what is known of it once there are none."""

    is_counted: bool
    members: set[int] = field(default_factory=set)
    ended: PlayedGame | None = None


@dataclass(slots=True)
class _Player:
    """An agent in an episode."""

    game: _Game
    total: float = 0.0
    length: int = 0

    def earn(self, reward: float) -> None:
        """What followed its last action."""
        self.total += reward
        self.length += 1


@dataclass(frozen=True, slots=True)
class _Final:
    """An agent whose episode ends in this step."""

    reward: float
    total: float
    length: int
    is_truncated: bool


class GameTally:
    """The games of one seat that count: the first ones to begin, in all copies of the environment.

    A game is one episode of a group, or of an agent without one. Counting the first ones to end would favor short ones.
    num_awaited: steps before the first one.
    """

    def __init__(self, seat: Seat, num_games: int) -> None:
        self.num_awaited = 0
        self._seat, self._num_games = seat, num_games
        self._num_left = num_games  # to begin
        self._players: dict[int, _Player] = {}  # by agent
        self._of_group: dict[int, _Game] = {}
        self._counted: list[_Game] = []
        self._num_open = num_games  # to end

    @property
    def is_complete(self) -> bool:
        """Whether all that count have ended."""
        return self._num_open == 0

    @property
    def num_ended(self) -> int:
        """Of those that count."""
        return self._num_games - self._num_open

    @property
    def games(self) -> list[PlayedGame]:
        """Those that count and have ended, in the order in which they began."""
        return [game.ended for game in self._counted if game.ended is not None]

    def add(self, steps: Steps | None) -> None:
        """The seat's behavior in an instance that has stepped; None where it has no agents."""
        if steps is not None:
            self._end(steps.terminals)
            self._go_on(steps.decisions)
        self.num_awaited += not self._counted

    def abandon(self, instance: int, num_instances: int) -> None:
        """An instance was lost with its games; others count in their place."""
        agents = ids_of_instance(np.array(list(self._players), np.int64), instance, num_instances)
        lost = {self._players.pop(agent).game for agent in agents.tolist()}
        self._num_left += sum(game.is_counted for game in lost)
        self._counted = [game for game in self._counted if game not in lost]
        self._of_group = {group: game for group, game in self._of_group.items() if game not in lost}

    def _end(self, terminals: TerminalSteps | None) -> None:
        """A game is over once no agent is left in it. An agent that never acted was in none."""
        if terminals is None:
            return
        finals: dict[_Game, list[_Final]] = {}
        truncated = terminals.truncated.tolist()
        for row, agent, reward, _ in self._rows(terminals):
            player = self._players.pop(agent, None)
            if player is not None:
                player.earn(reward)
                player.game.members.discard(agent)
                final = _Final(reward, player.total, player.length, truncated[row])
                finals.setdefault(player.game, []).append(final)
        for game, last in finals.items():
            if not game.members:
                game.ended = _played(last)
                self._num_open -= game.is_counted
        self._of_group = {group: game for group, game in self._of_group.items() if game.ended is None}

    def _go_on(self, decisions: DecisionSteps) -> None:
        for _, agent, reward, group in self._rows(decisions):
            if agent in self._players:
                self._players[agent].earn(reward)
                continue
            game = self._game_of(group)
            game.members.add(agent)
            self._players[agent] = _Player(game)

    def _game_of(self, group: int) -> _Game:
        """The one that its group plays, or a new one."""
        if group in self._of_group:
            return self._of_group[group]
        game = _Game(is_counted=self._num_left > 0)
        if game.is_counted:
            self._num_left -= 1
            self._counted.append(game)
        if group != NO_GROUP:
            self._of_group[group] = game
        return game

    def _rows(self, steps: DecisionSteps | TerminalSteps) -> Iterator[tuple[int, int, float, int]]:
        """Row, agent, reward and group of those in the seat."""
        groups = steps.group_ids if steps.group_ids is not None else np.full(len(steps.agent_ids), NO_GROUP)
        rows = self._seat.rows(steps)
        columns = rows, steps.agent_ids[rows], steps.total_rewards[rows], groups[rows]
        yield from zip(*(column.tolist() for column in columns), strict=True)


def _played(last: list[_Final]) -> PlayedGame:
    return PlayedGame(
        reward=float(np.mean([final.reward for final in last])),
        total=float(np.mean([final.total for final in last])),
        length=max(final.length for final in last),
        is_interrupted=any(final.is_truncated for final in last),
    )
