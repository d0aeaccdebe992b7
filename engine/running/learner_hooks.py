"""A user's functions that one learner calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.loss_inputs import CustomLoss, require_scalar
from rl_tui.engine.learning.train_step import TrainStep, TrainStepHook
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.running.hooks import Hooks, Milestone, MilestoneHook, call_hook, hook_name
from rl_tui.engine.running.triggers import Action, Trigger


class LearnerHooks:
    """Used in its learner's thread."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._losses: list[tuple[CustomLoss, CustomLoss]] = []  # with how the trainer calls them
        self._every: list[tuple[Trigger[int], MilestoneHook]] = []
        self._after_train_steps: list[TrainStepHook] = []
        self._has_registered = False  # these with the trainer

    def add(self, hooks: Hooks, step: int, *, learns: bool) -> None:
        """Call these from now on, too. learns: whether there are train steps. Raises NotSupportedError where the
        trainer calls none."""
        for interval, hook in hooks.every:
            trigger = Trigger(interval)
            trigger.restart(step)
            self._every.append((trigger, hook))
        for each in hooks.on_train_step if learns else ():
            if not self._has_registered:
                self._trainer.on_train_step(partial(_call_each, self._after_train_steps))
                self._has_registered = True
            self._after_train_steps.append(each)

    def add_loss(self, loss: CustomLoss) -> str:
        """Add this loss to every mini-batch's; its name. Raises ConfigError, NotSupportedError."""
        name = hook_name(loss, "on_loss")
        called = partial(call_hook, require_scalar(loss))
        self._trainer.on_loss(called)
        self._losses.append((loss, called))
        return name

    def remove(self, hook: object) -> None:
        """Call it no more, whatever it was added for. Raises ConfigError where it was not added."""
        every = [own for own in self._every if own[1] != hook]
        after = [own for own in self._after_train_steps if own != hook]
        gone = [own for own in self._losses if own[0] == hook]
        if not gone and len(every) + len(after) == len(self._every) + len(self._after_train_steps):
            raise ConfigError(f"hook: must be one that was added, got {hook!r}")
        for own in gone:
            self._losses.remove(own)
            self._trainer.remove_loss(own[1])
        self._every[:], self._after_train_steps[:] = every, after

    def periodic(self, milestone: Callable[[int], Milestone]) -> Iterator[tuple[Trigger[int], Action]]:
        """Those that are called at intervals. milestone: what is passed for a multiple."""
        for trigger, hook in tuple(self._every):
            if (trigger, hook) in self._every:  # an earlier one may have removed it
                yield trigger, partial(_call, trigger, hook, milestone)


def _call(trigger: Trigger[int], hook: MilestoneHook, milestone: Callable[[int], Milestone], multiple: int) -> None:
    reached = milestone(multiple)
    trigger.restart(reached.step)  # one that raises is not called again for the same multiple
    call_hook(hook, reached)


def _call_each(hooks: list[TrainStepHook], step: TrainStep) -> None:
    """Call them. No method: a trainer that refers to its learner would keep it in memory after the end of a run."""
    for hook in tuple(hooks):
        if hook in hooks:  # an earlier one may have removed it
            call_hook(hook, step)
