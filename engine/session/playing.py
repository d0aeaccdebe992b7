"""A person who plays an environment turn by turn, as a front end sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rl_tui.engine.session.watching import Scene

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the person sees before the next action.

    scene: `returns` and `lengths` are those of every complete episode so far, all of which are kept. choices: a name
    for each, "" where what it means is not known; is_allowed: of each choice.
    """

    scene: Scene
    choices: tuple[str, ...]
    is_allowed: tuple[bool, ...]

    @property
    def num_steps(self) -> int:
        """How many steps the complete episodes have."""
        return sum(self.scene.lengths)


class Playing(Protocol[T_co]):
    """One environment at play. Every call returns at once; one thread calls. T_co: what the person sees of a turn."""

    def listen(self, call: Callable[[], None]) -> None:
        """In another thread, `call` is called whenever there is a new turn, and at the end."""

    def pop_turn(self) -> T_co | None:
        """The newest turn, once."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing is played any more, and what was played is in the file, where there is one."""

    @property
    def is_busy(self) -> bool:
        """Whether the environment has not answered yet."""

    def act(self, choice: int) -> None:
        """Take that action, which is allowed."""

    def resize(self, size: tuple[int, int]) -> None:
        """Draw at most that many pixels from now on: width and height."""

    def finish(self) -> None:
        """Play no more: complete episodes are written, and the one under way is not kept."""


class Recorded(Playing[Turn], Protocol):
    """Whose complete episodes are written to a file."""

    def discard(self) -> None:
        """The episode under way is not kept, and another one begins; after a failure, in a new environment."""

    def drop_last(self) -> None:
        """The newest complete episode is not kept."""
