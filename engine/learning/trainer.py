"""The interface of a training algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.specs import Policy, State, Trajectories, Weights

Metrics: TypeAlias = Mapping[str, float]  # by ML-Agents' tag
Samples: TypeAlias = Mapping[str, Sequence[float]]  # the same, each number counting as much as any other


def always() -> bool:
    """The default `should_continue`: an update is never ended early."""
    return True


def require_finite(block: Trajectories) -> None:
    """Raise NonFiniteError naming the agent if a reward is not a finite number."""
    rewards = block.total_rewards
    if not np.isfinite(rewards).all():
        row = int(np.flatnonzero(~np.isfinite(rewards))[0])
        agent = int(np.repeat(block.agent_ids, block.lengths)[row])
        raise NonFiniteError(f"agent {agent} got the reward {rewards[row]}; the policy was not changed")


class Trainer(Protocol):
    """Trains one behavior. Used by one thread; knows no thread, file, clock or event."""

    is_on_policy: bool  # experience must come from the newest policy, unless the user allows otherwise
    rows_per_update: int  # an update is due after at least this many rows
    time_horizon: int  # the longest segment, in steps
    replay_bytes: int  # memory of the replay buffer when it is full; 0 without one

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training, over all resumes."""

    def hyperparameters(self) -> Mapping[str, float]:
        """Values that `set_hyperparameter` may change, by their names in the configuration.

        Of a scheduled value it is the one that the schedule starts from.
        """

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. It is not part of `state()`: the caller has to save it.

        Raises ConfigError for an unknown name, or a value that a configuration file could not have.
        """

    def add(self, block: Trajectories) -> Samples:
        """Add experience; returns samples of metrics. Raises NonFiniteError naming what is not finite."""

    def is_ready(self) -> bool:
        """Whether `update` has enough to learn from."""

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Learn from what was added, with schedules read at `step`; returns metrics.

        should_continue: called after each mini-batch, where other threads may use the interpreter. When it returns
        False, the update ends with what it has learned so far.

        Raises NonFiniteError after restoring the state before the update.
        """

    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience. Changes nothing and draws nothing."""

    def make_policy(self, seed: int) -> Policy:
        """A new policy that acts with `weights()`, drawing from its own generator."""

    def weights(self) -> Weights:
        """A copy of the policy's parameters."""

    def state(self) -> State:
        """A copy of everything that `load` needs to continue as if training had never stopped."""

    def load(self, state: State) -> None:
        """Restore `state`, which the caller has checked against `state()`.

        Drops rows that wait for an update, and whatever the replay buffer holds that is newer than `state`.
        """

    def replay(self) -> State | None:
        """A copy of the replay buffer, None if there is none or `save_replay_buffer` is off."""

    def load_replay(self, replay: State) -> None:
        """Restore a replay buffer. Raises CheckpointError, and changes nothing, when it does not fit."""
