"""A person who plays an environment of this test's process, without a screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from rl_tui.engine.running.playing.turns import PlayRequest, Turns
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.playing import Turn
from tests.deadline import DEADLINE_SECONDS


class ByHand:
    """A context: the play begins with it, and has ended after it. turn: the newest."""

    def __init__(
        self, env: str, path: Path, num_episodes: int | None = None, *, most_choices: int = 9, **kwargs: object
    ) -> None:
        request = PlayRequest(env, kwargs, (), path, num_episodes, 1, most_choices)
        self.turns = Turns(request)
        self.turn: Turn | None = None
        self._thread = spawn("play", self.turns.main, EventBus(), self.turns.crashed)

    def __enter__(self) -> ByHand:
        self.until(lambda turn: True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish()

    def until(self, is_awaited: Callable[[Turn], bool]) -> Turn | None:
        """The first turn of which that is true; None if the play ends before."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            has_ended = self.turns.has_ended
            turn = self.turns.pop_turn()
            if turn is not None:
                self.turn = turn
                if is_awaited(turn):
                    return turn
            elif has_ended:
                return None
            else:
                self._thread.join(0.001)
        raise AssertionError(f"nothing came: {self.turn}")

    def act(self, *choices: int) -> Turn | None:
        """The turn after these actions, one after the other; None if the play has ended."""
        for choice in choices:
            self.turns.act(choice)
            self.until(lambda turn: True)
        return None if self.turns.has_ended else self.turn

    def say(self, command: Callable[[], Any]) -> Turn | None:
        """The turn after that."""
        command()
        return self.until(lambda turn: True)

    def finish(self) -> None:
        """The play has ended."""
        self.turns.finish()
        self._thread.join(DEADLINE_SECONDS)
        assert self.turns.has_ended
