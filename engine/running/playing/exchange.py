"""What the thread of a play and its front end say to each other."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from rl_tui.engine.running.threads import Mailbox

WAIT_SECONDS = 0.1  # between checks whether the play is over
DRAW = "draw"

T = TypeVar("T")


class Exchange(Generic[T]):
    """Implements Playing, for a thread that takes the commands and shows the turns. T: what the person sees of one.

    A command is the number of an action, "draw" for another picture of the same turn, or a word of this kind of play.
    is_begun: whether there was a turn. is_busy, has_ended: see Playing. is_finished: no more is to be played. size: of
    the picture, in pixels.
    """

    def __init__(self) -> None:
        self.is_begun = self.is_busy = self.has_ended = self.is_finished = False
        self.size = (1, 1)
        self._on_turn: Callable[[], None] = _ignore
        self._turns: Mailbox[T] = Mailbox()
        self._commands: queue.SimpleQueue[int | str] = queue.SimpleQueue()

    def listen(self, call: Callable[[], None]) -> None:
        """See Playing."""
        self._on_turn = call

    def pop_turn(self) -> T | None:
        """The newest turn, once."""
        return self._turns.pop()

    def act(self, choice: int) -> None:
        """See Playing."""
        self._commands.put(choice)

    def say(self, command: str) -> None:
        """A word of this kind of play."""
        self._commands.put(command)

    def resize(self, size: tuple[int, int]) -> None:
        """See Playing."""
        self.size = size
        self._commands.put(DRAW)

    def finish(self) -> None:
        """See Playing."""
        self.is_finished = True
        self._commands.put(DRAW)

    def show(self, turn: T) -> None:
        """The environment has answered, and the person sees this. In the thread of the play, as the rest."""
        self.is_busy = False
        self._turns.put(turn)
        self.is_begun = True
        self._on_turn()

    def end(self) -> None:
        """Nothing is played any more."""
        self.has_ended = True
        self._on_turn()

    def commands_until_end(self) -> Iterator[int | str]:
        """What the person says, as it comes."""
        while not self.is_finished:
            with contextlib.suppress(queue.Empty):
                yield self._commands.get(timeout=WAIT_SECONDS)

    def commands_by_now(self) -> Iterator[int | str]:
        """What the person has said, without waiting for more."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._commands.get_nowait()


def _ignore() -> None:
    """No one listens yet."""
