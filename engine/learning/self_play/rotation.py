"""Which team learns, of all behaviors that play with each other in an environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import cast

from rl_tui.engine.specs import State


class TeamRotation:
    """The teams take turns in the order in which they were added; the first one begins.

    learning: None before there is one. num_changes: so far.
    """

    def __init__(self) -> None:
        self.learning: int | None = None
        self.num_changes = 0
        self._waiting: deque[int] = deque()

    @property
    def teams(self) -> frozenset[int]:
        """All that were added."""
        return frozenset(self._waiting if self.learning is None else (self.learning, *self._waiting))

    def add(self, teams: Iterable[int]) -> None:
        """More teams, each of which waits for its turn."""
        for team in teams:
            if self.learning is None:
                self.learning = team
            elif team not in self.teams:
                self._waiting.append(team)

    def change(self) -> None:
        """Let the next team learn."""
        assert self.learning is not None, "a team was added"
        self._waiting.append(self.learning)
        self.learning = self._waiting.popleft()
        self.num_changes += 1

    def state(self) -> State:
        """What `load` needs."""
        return State(
            values={"learning": self.learning, "waiting": list(self._waiting), "num_changes": self.num_changes}
        )

    def load(self, state: State) -> None:
        """Go on from there, with the teams that have appeared since then behind the others."""
        known = self.teams
        learning = state.values.get("learning")
        self.learning = None if learning is None else int(cast(int, learning))
        self._waiting = deque(cast("list[int]", state.values.get("waiting", [])))
        self.num_changes = int(state.number("num_changes", absent=0))
        self.add(sorted(known))
