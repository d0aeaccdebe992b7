"""A person who plays an environment of this test's process, without a screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from rl_tui.engine.running.playing.exchange import Exchange
from rl_tui.engine.running.playing.turns import PlayRequest, Turns
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.playing import Turn
from tests.deadline import DEADLINE_SECONDS

T = TypeVar("T")


class Person(Generic[T]):
    """A context: the play begins with it, and has ended after it. turn: the newest."""

    def __init__(
        self, exchange: Exchange[T], main: Callable[[], None], crashed: Callable[[BaseException], None]
    ) -> None:
        self.turn: T | None = None
        self._exchange = exchange
        self._thread = spawn("play", main, EventBus(), crashed)

    def __enter__(self) -> Self:
        self.until(lambda turn: True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish()

    def until(self, is_awaited: Callable[[T], bool]) -> T | None:
        """The first turn of which that is true; None if the play ends before."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            has_ended = self._exchange.has_ended
            turn = self._exchange.pop_turn()
            if turn is not None:
                self.turn = turn
                if is_awaited(turn):
                    return turn
            elif has_ended:
                return None
            else:
                self._thread.join(0.001)
        raise AssertionError(f"nothing came: {self.turn}")

    def act(self, *choices: int) -> T | None:
        """The turn after these actions, one after the other; None if the play has ended."""
        for choice in choices:
            self._exchange.act(choice)
            self.until(lambda turn: True)
        return None if self._exchange.has_ended else self.turn

    def say(self, command: Callable[[], Any]) -> T | None:
        """The turn after that."""
        command()
        return self.until(lambda turn: True)

    def finish(self) -> None:
        """The play has ended."""
        self._exchange.finish()
        self._thread.join(DEADLINE_SECONDS)
        assert self._exchange.has_ended


class ByHand(Person[Turn]):
    """Records what the person does."""

    def __init__(
        self, env: str, path: Path, num_episodes: int | None = None, *, most_choices: int = 9, **kwargs: object
    ) -> None:
        request = PlayRequest(env, kwargs, (), path, num_episodes, 1, most_choices)
        self.turns = Turns(request)
        super().__init__(self.turns, self.turns.main, self.turns.crashed)
