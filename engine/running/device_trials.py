"""How long a behavior updates and acts on a device, measured with throw-away trainers and random experience."""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from statistics import median
from typing import Final, TypeAlias

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NotSupportedError, RlTuiError
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.policies import CPU
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.sampling.random_experience import random_decisions, random_experience
from rl_tui.engine.specs import BehaviorSpec, Policy, Trajectories

PARTS = (1 / 64, 1 / 16, 1 / 4)  # of a mini-batch, or of the agents, which show whether all of it would take too long
ALL: Final = 1.0
MINIBATCHES, UPDATES, STEPS = 6, 5, 20  # at most: of a timed update, timed updates, and timed steps of all agents
SEGMENT_STEPS, BLOCK_ROWS, MOST_BLOCKS = 16, 2048, 64  # of the experience
CLEAR = 2.0  # times as fast, or as slow: no need to time it again

MakeTrainer: TypeAlias = Callable[[BehaviorConfig, torch.device], Trainer]


@dataclass(frozen=True, slots=True)
class Timing:
    """The median of what was timed. is_estimate: from a small part, since all of it would have taken too long.
    failure: why it could not be timed, "" where it was."""

    seconds: float = math.inf
    is_estimate: bool = False
    failure: str = ""


class DeviceTrials:
    """Times one behavior, a device at a time. Nothing is kept of what it makes, and no generator of others is moved."""

    def __init__(
        self,
        spec: BehaviorSpec,
        config: BehaviorConfig,
        num_agents: int,
        make: MakeTrainer,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """num_agents: that act together. make: a trainer that is ready to learn."""
        self._spec = spec
        self._config = config
        self._num_agents = num_agents
        self._make = make
        self._clock = clock

    def time_updates(self, device: torch.device, limit: float, best: float | None = None) -> Timing:
        """A mini-batch, with its part of the rest of an update. limit: seconds, besides the first use of a GPU. best:
        seconds on another device."""
        with _apart(device):
            return self._attempt(lambda: self._time_updates(device, limit, best), device)

    def time_acting(self, device: torch.device, limit: float, best: float | None = None) -> Timing:
        """A step of all agents, from observations to actions. limit, best: as of `time_updates`."""
        with _apart(device):
            return self._attempt(lambda: self._time_acting(device, limit, best), device)

    def _attempt(self, measure: Callable[[], Timing], device: torch.device) -> Timing:
        try:
            with needing_memory(f"what is timed on {device}"):
                return measure()
        except (RlTuiError, RuntimeError) as error:  # RuntimeError: torch's, of what the device cannot do
            failure = str(error).partition("\n")[0] or type(error).__name__
        return Timing(failure=failure)  # outside: the frames of the error would keep what they have allocated

    def _time_updates(self, device: torch.device, limit: float, best: float | None) -> Timing:
        hyper = self._config.hyperparameters

        def learning_from(share: float) -> _Learning:
            config = self._config.model_copy(update={"hyperparameters": hyper.for_timing(share)})
            return _Learning(self._spec, self._make(config, device), device, self._clock)

        if device.type == "cpu" and hyper.for_timing(ALL) is not hyper:
            estimate = _estimate(lambda share: partial(learning_from(share).update, 1), limit, self._clock)
            if estimate is not None:
                return estimate
        learning = learning_from(ALL)
        first, end = learning.update(1), self._clock() + limit
        return self._median(first, lambda: learning.update(MINIBATCHES, end), UPDATES, end, best)

    def _time_acting(self, device: torch.device, limit: float, best: float | None) -> Timing:
        num_agents = self._num_agents
        self._acting_trainer.act_on(device)
        acting = _Acting(self._spec, self._acting_trainer.make_policy(0), self._clock)
        if device.type == "cpu" and num_agents * PARTS[0] >= 1:
            estimate = _estimate(lambda share: partial(acting.act, round(num_agents * share)), limit, self._clock)
            if estimate is not None:
                return estimate
        first, end = acting.act(num_agents), self._clock() + limit
        return self._median(first, lambda: acting.act(num_agents), STEPS, end, best)

    @cached_property
    def _acting_trainer(self) -> Trainer:
        """It makes the policies that are timed."""
        hyper = self._config.hyperparameters.for_timing(PARTS[0])
        return self._make(self._config.model_copy(update={"hyperparameters": hyper}), CPU)

    def _median(self, first: float, measure: Callable[[], float], most: int, end: float, best: float | None) -> Timing:
        """Of at most so many, until the clock shows `end` or the difference is clear.

        first: seconds of one before them, with cold caches, which counts where there is no time for another.
        """
        found: list[float] = []
        while len(found) < most and self._clock() + min([first, *found]) < end:
            found.append(measure())
            if best is not None and not best / CLEAR < found[-1] < best * CLEAR:
                break
        return Timing(median(found or [first]))


def _estimate(
    prepare: Callable[[float], Callable[[], float]], limit: float, clock: Callable[[], float]
) -> Timing | None:
    """From parts that grow while the next one promises to take less than `limit` seconds; None where all of it does.

    prepare: what measures a part of that size, in seconds.
    """
    start, sizes, found = 0.0, [0.0], [0.0]
    for share, following in pairwise((*PARTS, ALL)):
        measure = prepare(share)
        seconds = measure()
        if is_first := len(sizes) == 1:  # libraries were loaded
            start, seconds = clock(), measure()
        sizes.append(share)
        found.append(seconds if seconds > limit / 4 else min(seconds, measure()))
        slope = max(0.0, found[-1] - found[-2]) / (sizes[-1] - sizes[-2])
        expected = found[-1] + slope * (following - share)
        if expected > limit * (1 + is_first) or clock() - start > 2 * limit:  # a first part may be overhead alone
            return Timing(found[-1] + slope * (ALL - share), is_estimate=True)
    return None


class _Learning:
    """A trainer that learns from the same experience again and again."""

    def __init__(self, spec: BehaviorSpec, trainer: Trainer, device: torch.device, clock: Callable[[], float]):
        self._trainer = trainer
        self._device = device
        self._clock = clock
        self._block = _experience_for(spec, trainer) if not trainer.is_ready() else None

    def update(self, most: int, end: float = math.inf) -> float:
        """Seconds for a mini-batch in an update of at most so many, none of which begins once the clock shows `end`."""
        if self._block is not None:
            self._fill(self._block)
        count = 0

        def should_continue() -> bool:
            nonlocal count
            count += 1
            return count < most and self._clock() < end

        start = self._clock()
        self._trainer.update(0, should_continue)
        wait_for(self._device)
        return (self._clock() - start) / max(1, count)

    def _fill(self, block: Trajectories) -> None:
        for _ in range(MOST_BLOCKS):
            if self._trainer.is_ready():
                return
            self._trainer.add(block)
        raise NotSupportedError(f"no update is due after {MOST_BLOCKS * block.num_rows:,} steps")


class _Acting:
    """A policy that acts for random observations."""

    def __init__(self, spec: BehaviorSpec, policy: Policy, clock: Callable[[], float]):
        self._spec = spec
        self._policy = policy
        self._clock = clock
        self._random = np.random.default_rng(0)

    def act(self, num_agents: int) -> float:
        """Seconds for one action of each."""
        waiting = random_decisions(self._spec, num_agents, self._random)
        size = self._policy.memory_size
        memories = np.zeros((num_agents, size), np.float32) if size else None
        start = self._clock()
        self._policy.act(waiting, memories)
        return self._clock() - start


def _experience_for(spec: BehaviorSpec, trainer: Trainer) -> Trajectories:
    """A block, which may have to be added several times."""
    num_rows, num_steps = min(max(1, trainer.rows_per_update), BLOCK_ROWS), min(trainer.time_horizon, SEGMENT_STEPS)
    memory_size = trainer.make_policy(0).memory_size
    return random_experience(spec, num_rows, num_steps, memory_size)


def wait_for(device: torch.device) -> None:
    """All that the device was given to compute is done."""
    torch.zeros(1, device=device).cpu()


@contextmanager
def _apart(device: torch.device) -> Iterator[None]:
    """What is drawn from generators that all share is drawn again afterwards; a GPU's memory is free again."""
    is_gpu = device.type == "cuda" and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # of torch
    ours, numbers, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()
    of_gpu = torch.cuda.get_rng_state(device) if is_gpu else None
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numbers)
        torch.set_rng_state(tensors)
        if of_gpu is not None:
            torch.cuda.set_rng_state(of_gpu, device)
        if is_gpu:
            gc.collect()  # networks are in cycles with their hooks
            torch.cuda.empty_cache()
