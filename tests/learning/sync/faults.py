"""What goes wrong on one rank, while others learn."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rl_tui.engine.errors import NonFiniteError, RlTuiError
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Trainer, always, make_trainer
from rl_tui.engine.specs import Trajectories
from tests.learning.sync.training import CPU, SEED, Case, digest


@dataclass(frozen=True)
class Outcome:
    """Of the update in which something goes wrong, and of the next one.

    before, after: digests of the state. num_steps: gradient steps that were taken.
    """

    error: Exception | None
    seconds: float
    before: str
    after: str
    num_updates: int
    num_steps: int
    next_error: Exception | None
    in_the_end: str


def learn_with_a_fault(sync: Sync, case: Case, of_rank: int, fault: str) -> Outcome:
    """Two updates that succeed, one in which `fault` happens to a rank, and one more."""
    trainer, blocks = make_trainer(case.spec, case.settings, SEED, CPU, sync), case.blocks(sync.rank)
    for update in range(2):
        add(trainer, next(blocks))
        trainer.update(update)
    before, num_steps = digest(trainer.state()), steps_of(trainer)
    own = FAULTS[fault]() if sync.rank == of_rank else Fault()
    add(trainer, [own.spoil(block) for block in next(blocks)])
    if own.hook is not None:
        trainer.on_train_step(own.hook)
    start = time.perf_counter()
    own.begin(trainer)
    error = attempt(trainer, 2, own.should_continue)
    seconds = time.perf_counter() - start
    after, updates, taken = digest(trainer.state()), trainer.num_updates, steps_of(trainer) - num_steps
    add(trainer, next(blocks))
    next_error = attempt(trainer, 3)
    return Outcome(error, seconds, before, after, updates, taken, next_error, digest(trainer.state()))


def add(trainer: Trainer, blocks: list[Trajectories]) -> None:
    for block in blocks:
        trainer.add(block)


def attempt(trainer: Trainer, step: int, should_continue: Callable[[], bool] = always) -> Exception | None:
    """Update; what it raised."""
    try:
        trainer.update(step, should_continue)
    except (RlTuiError, ZeroDivisionError) as error:
        return error
    return None


def steps_of(trainer: Trainer) -> int:
    state = trainer.state()
    found: Any = next(state.part(part).values for part in ("network", "q") if "adam_steps" in state.part(part).values)
    return int(found["adam_steps"])


class Fault:
    """Nothing goes wrong."""

    hook: Callable[[TrainStep], None] | None = None

    def spoil(self, block: Trajectories) -> Trajectories:
        """What the rank collects."""
        return block

    def begin(self, trainer: Trainer) -> None:
        """Called before the update."""

    def should_continue(self) -> bool:
        """Called after every mini-batch."""
        return True


class Exits(Fault):
    """The process ends before the update."""

    def begin(self, trainer: Trainer) -> None:
        os._exit(0)


class IsKilled(Fault):
    """The process is killed after a mini-batch."""

    def should_continue(self) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True


class IsSilent(Fault):
    """The rank comes when the others no longer wait."""

    def begin(self, trainer: Trainer) -> None:
        time.sleep(4)


class Raises(Fault):
    """A hook of the user's raises after a mini-batch."""

    def __init__(self) -> None:
        self.hook = lambda step: print(1 / 0)


class PaysNaN(Fault):
    """A reward is not a number."""

    def spoil(self, block: Trajectories) -> Trajectories:
        rewards = block.rewards.copy()
        rewards[3] = np.nan
        return replace(block, rewards=rewards)


class PaysInfinity(Fault):
    """A reward signal refuses its rewards, after the normalizer has seen the block."""

    def begin(self, trainer: Trainer) -> None:
        streams: Any = trainer._streams  # type: ignore[attr-defined]  # of ActorTrainer

        def refuse(block: Trajectories) -> None:
            del streams.evaluate
            raise NonFiniteError("a reward must be a finite number, got inf")

        streams.evaluate = refuse


class Diverges(Fault):
    """Numbers that are so large that the losses of SAC overflow."""

    def spoil(self, block: Trajectories) -> Trajectories:
        return replace(block, continuous_actions=block.continuous_actions * np.float32(1e38))


class HasDiverged(Fault):
    """Actions were so unlikely that PPO's ratio overflows."""

    def spoil(self, block: Trajectories) -> Trajectories:
        return replace(block, log_probs=block.log_probs - np.float32(1e38))


class Stops(Fault):
    """Votes to end the update after the second mini-batch."""

    def __init__(self) -> None:
        self.should_continue = partial(next, iter([True, False]))  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], Fault]] = {
    "exits": Exits,
    "is killed": IsKilled,
    "is silent": IsSilent,
    "raises": Raises,
    "pays NaN": PaysNaN,
    "pays infinity": PaysInfinity,
    "sac diverges": Diverges,
    "ppo diverges": HasDiverged,
    "stops": Stops,
}
