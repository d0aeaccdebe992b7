"""What a checkpoint keeps of a behavior: one list, which saving, resuming and rolling back go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.running.hyperparameters import HYPERPARAMETERS, LiveHyperparameters
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import LESSONS

TRAINER, POLICY, COUNTS, SELF_PLAY = "trainer", "policy", "counts", "self_play"


class Part(NamedTuple):
    """state: a copy, empty where there is nothing to keep. restore: called with what was kept."""

    name: str
    state: Callable[[], State]
    restore: Callable[[State], None]


class CheckpointParts:
    """Used in its learner's thread. What the trainer or a setting of it raises is a PluginError.

    trainer: whose state is the largest. hyperparameters: of the trainer. policy: the generator of the policy that acts,
    as of the newest experience. num_sampled: steps of all agents, also those that are not learned from.
    """

    def __init__(self, settings: LearnerSettings, trainer: Trainer, bus: EventBus):
        """Made before anything is set or loaded."""
        self.hyperparameters = LiveHyperparameters(settings.behavior, trainer, settings.config, bus)
        self.policy = State()
        self.num_sampled = 0
        self._settings = settings
        self.trainer = trainer

    def _parts(self, step: int = 0) -> Iterator[Part]:
        """Not kept: they refer to this object, and a cycle would keep learners in memory after the end of a run.

        step: of what is restored.
        """
        yield Part(TRAINER, self.trainer.state, self.trainer.load)
        yield Part(POLICY, lambda: self.policy, lambda state: setattr(self, "policy", state))
        yield Part(COUNTS, self._counts, partial(self._restore_counts, step))
        yield Part(HYPERPARAMETERS, self.hyperparameters.state, self.hyperparameters.restore)
        if (league := self._settings.league) is not None:
            yield Part(SELF_PLAY, league.state, league.restore)
        if (lessons := self._settings.lessons) is not None:
            max_steps = self._settings.config.max_steps
            follow = partial(lessons.follow, self._settings.behavior, step=step, max_steps=max_steps)
            yield Part(LESSONS, lessons.state, follow)

    def _counts(self) -> State:
        return State({}, {"num_sampled": self.num_sampled})

    def _restore_counts(self, step: int, state: State) -> None:
        """A checkpoint without counts is of a version that learned from every step."""
        self.num_sampled = int(state.number("num_sampled", absent=step))

    def state(self) -> State:
        """All of it."""
        states = {part.name: part.state() for part in self._parts()}
        return State.merge({name: state for name, state in states.items() if state.tensors or state.values})

    def restore(self, state: State, step: int) -> None:
        """Continue from what a checkpoint of that step keeps, which the caller has checked against `state`."""
        for part in self._parts(step):
            part.restore(state.part(part.name))
