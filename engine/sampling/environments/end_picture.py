"""How the last episode ended, drawn before the environment began the next one."""

from __future__ import annotations

from collections.abc import Callable

from rl_tui.engine.sampling.environments.rendering import Frame


class EndPicture:
    """Of one copy. draw: what it looks like now. Without `is_on`, that is all that is ever drawn."""

    def __init__(self, draw: Callable[[], Frame | str | None]) -> None:
        self.is_on = False
        self._draw = draw
        self._can_draw = False
        self._kept: Frame | str | None = None

    def keep(self) -> None:
        """An episode has ended, and the copy is about to be reset.

        Nothing is drawn where nothing was before: that it cannot be is reported by `render`, and must not fail a step.
        """
        if self.is_on and self._can_draw:
            self._kept = self._draw()

    def forget(self) -> None:
        """The copy is about to be stepped, or reset from outside."""
        self._kept = None

    def render(self) -> Frame | str | None:
        """The end that was kept, or else what the copy looks like now."""
        if self._kept is not None:
            return self._kept
        drawn = self._draw()
        self._can_draw = drawn is not None
        return drawn
