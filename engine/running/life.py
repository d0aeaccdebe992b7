"""Whether a behavior learns, and how it ended."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rl_tui.engine.errors import NonFiniteError, RlTuiError

Stage: TypeAlias = Literal["playing", "learning", "finished", "stopped", "failed", "unsavable"]
OVER: frozenset[Stage] = frozenset({"finished", "stopped", "failed", "unsavable"})


class Life:
    """Written in its learner's thread, or by the coordinator once that is lost; read by any.

    stage: playing, a policy that does not learn; learning; finished, at max_steps; stopped, by a hook; failed, because
    of `failure`; unsavable, the same while the trainer holds half a state. is_closed: whether its end was saved and
    published. has_learned: in this process, which its newest checkpoint may lack.
    """

    def __init__(self, step: int, max_steps: int | None):
        """Where it begins, and where it ends; None for a policy that only plays."""
        self.stage: Stage = "playing" if max_steps is None else "learning"
        self._max_steps = max_steps
        self.reach(step)
        self.failure: RlTuiError | None = None
        self.is_closed = False
        self.has_learned = self.stage == "learning"

    @property
    def is_over(self) -> bool:
        """Whether it learns no more."""
        return self.stage in OVER

    @property
    def has_diverged(self) -> bool:
        """Whether it failed by numbers, and could resume from earlier ones."""
        return self.stage == "failed" and isinstance(self.failure, NonFiniteError)

    def reach(self, step: int) -> None:
        """So many steps are made."""
        if self._max_steps is not None and not self.is_over:
            self.stage = "finished" if step >= self._max_steps else "learning"

    def fail(self, error: RlTuiError, *, is_half_loaded: bool = False) -> None:
        """The first failure counts."""
        self.failure = self.failure or error
        self.stage = "unsavable" if is_half_loaded else "failed"

    def stop(self) -> None:
        """A hook has ended the run."""
        if not self.is_over:
            self.stage = "stopped"

    def begin_again(self) -> None:
        """It was rolled back."""
        self.stage, self.failure, self.is_closed = "learning", None, False
