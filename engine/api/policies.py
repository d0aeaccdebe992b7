"""Policies that a Python program acts with: what an environment observed goes in, what its `step` takes comes out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.export.exported_policies import find_policy
from rl_tui.engine.learning.acting.policy import ActorPolicy
from rl_tui.engine.learning.episodes import read_episodes
from rl_tui.engine.learning.player import Player
from rl_tui.engine.learning.recorded_episode import PlainColumns
from rl_tui.engine.learning.value_function import Values
from rl_tui.engine.sampling.environments.space_columns import SpaceColumns
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    Policy,
    Trajectories,
)


@dataclass(frozen=True, slots=True)
class EvaluatedAction:
    """An action, or B of a batch, and how likely the policy finds it when it samples.

    action: what `step` takes. log_prob: f32[B], of the whole action. log_probs: f32[B, A + K], of each continuous
    dimension, then of each choice. raw_action: f32[B, A], the continuous dimensions as training learns from them: of
    PPO what was drawn, which is clipped to +-3 and rescaled to the space, and whose density counts; of SAC from -1 to 1
    after squashing. A single action has no axis B.
    """

    action: Any  # an element of the action space
    log_prob: Float32
    log_probs: Float32
    raw_action: Float32


class ActingPolicy:
    """Acts in the environments of one behavior. Used by one thread.

    behavior, step: what it is a policy of, and when. is_greedy: it takes the mean and the likeliest choices; else it
    samples, as in training. Memories are kept here, by row of a batch, until `reset`.
    """

    def __init__(self, policy: Policy, spec: BehaviorSpec, step: int, *, is_greedy: bool, values: Values | None = None):
        self.behavior = spec.name
        self.step = step
        self.is_greedy = is_greedy
        self._player = Player(policy)
        self._policy, self._spec, self._values = policy, spec, values
        self._columns = None if spec.spaces is None else SpaceColumns(spec)
        self._num_rows: int | None = None  # of the last batch; None after `reset`
        self._has_memory = policy.memory_size > 0

    def __repr__(self) -> str:
        return f"<{'greedy' if self.is_greedy else 'sampling'} ActingPolicy of {self.behavior} at step {self.step:,}>"

    def act(self, observation: Any, action_mask: Any = None) -> Any:  # Any: elements of the environment's spaces
        """The action for an observation as Gymnasium's `reset` and `step` return it, or for a batch of them.

        action_mask: `info["action_mask"]`, where the environment has one. For an Environment of rl-tui, observation is
        the behavior's DecisionSteps, and the result Actions. Raises ConfigError for what is not of its spaces, and with
        memory for a batch of another size than the last one, without `reset` between them.
        """
        decisions, is_single = self._decisions(observation, action_mask)
        return self._taken(self._player.act(decisions), is_single)

    def evaluate(self, observation: Any, action: Any = None, action_mask: Any = None) -> EvaluatedAction:
        """`act`, with log-probabilities; of a given action where there is one, which then counts as taken.

        Raises ConfigError as `act` does, and NotSupportedError for an ONNX file, which has actions only.
        """
        policy, (decisions, is_single) = self._evaluating, self._decisions(observation, action_mask)
        if action is None:
            choice = self._player.choose(decisions, policy.act)
            taken = self._taken(choice.actions, is_single)
        else:
            given = self._given(action, None if is_single else len(decisions.agent_ids))
            choice, taken = self._player.choose(decisions, partial(policy.evaluate, actions=given)), action
        rows = choice.log_probs.sum(1), choice.log_probs, choice.continuous
        return EvaluatedAction(taken, *(tuple(row[0, ...] for row in rows) if is_single else rows))

    def value(self, observation: Any) -> Float32:
        """f32[B], or f32[] of a single one: the critic's estimate of the return that follows, as of this policy's step;
        f32[B, S] with several reward signals.

        Raises ConfigError as `act` does, and NotSupportedError where there is no critic that could say it: in a file,
        with memory, and with SAC where target_q is set.
        """
        if self._values is None:
            raise NotSupportedError(f"{self.behavior}: a policy of a file has no critic, only learner.policy() has")
        decisions, is_single = self._decisions(observation, None)
        values = self._values(decisions.observations)
        rows = values[:, 0] if values.shape[1] == 1 else values
        return rows[0, ...] if is_single else rows

    def read_episodes(self, episodes: Iterable[Any]) -> Trajectories:
        """See Trajectories.from_episodes."""
        return read_episodes(episodes, self._spec, self._evaluating, self._columns or PlainColumns(self._spec))

    @property
    def _evaluating(self) -> ActorPolicy:
        if isinstance(self._policy, ActorPolicy):
            return self._policy
        text = "this policy knows no log-probabilities: use learner.policy() of PPO or SAC, or a file of the kind raw"
        raise NotSupportedError(f"{self.behavior}: {text}")

    def _decisions(self, observation: Any, action_mask: Any) -> tuple[DecisionSteps, bool]:
        """As agents that wait for an action, and whether it is a single observation."""
        if isinstance(observation, DecisionSteps):
            return observation, False
        if self._columns is None:
            raise ConfigError(
                f"observation: must be DecisionSteps, since {self.behavior} is of no Gymnasium environment, got"
                f" {type(observation).__name__}"
            )
        observations, mask, is_single = self._columns.seen(observation, action_mask)
        count = len(observations[0])
        if self._has_memory and self._num_rows not in (None, count):
            must = f"must have {self._num_rows} rows as before, which are remembered, got {count}"
            raise ConfigError(f"observation: {must}. Call reset() before others")
        self._num_rows = count
        return DecisionSteps(np.arange(count), observations, np.zeros(count, np.float32), mask), is_single

    def _given(self, action: Any, count: int | None) -> Actions:
        try:
            return (self._columns or PlainColumns(self._spec)).actions(action, count)
        except ConfigError as error:
            raise ConfigError(f"action: {error}") from error

    def _taken(self, actions: Actions, is_single: bool) -> Any:  # Any: see `act`
        return actions if self._columns is None else self._columns.taken(actions, is_single)

    def reset(self, rows: NDArray[Any] | Sequence[int] | None = None) -> None:
        """Forget what was remembered: of all, or of the rows of a batch whose episodes ended, as numbers or a mask.

        For an Environment of rl-tui, rows are the ids of agents. Without memory it does nothing. Raises ConfigError for
        rows that the last batch did not have.
        """
        if rows is None:
            self._num_rows = None
            self._player.forget()
            return
        self._player.forget(self._row_numbers(np.asarray(rows)))

    def _row_numbers(self, rows: NDArray[Any]) -> Int64:
        count, is_mask = self._num_rows, rows.dtype == np.bool_
        if rows.ndim != 1 or not (is_mask or rows.size == 0 or np.issubdtype(rows.dtype, np.integer)):
            raise ConfigError(f"rows: must be a list of whole numbers or a mask, got {rows.tolist()!r}")
        if is_mask and count not in (None, len(rows)):
            raise ConfigError(
                f"rows: a mask must have {count} entries, as many as the last batch has rows, got {len(rows)}"
            )
        numbers: Int64 = np.flatnonzero(rows) if is_mask else rows.astype(np.int64)
        if count is not None and numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            raise ConfigError(f"rows: must be from 0 to {count - 1}, the rows of the last batch, got {rows.tolist()!r}")
        return numbers


def load_policy(
    path: str | os.PathLike[str],
    kind: ExportedKind | None = None,
    *,
    behavior: str | None = None,
    greedy: bool | None = None,
    seed: int | None = None,
) -> ActingPolicy:
    """The policy in an exported file, or the newest one of a run's folder.

    kind: which of the files in policies/, of a folder; "greedy" by default. Where no greedy or stochastic one was
    exported, the file for Unity takes its place. behavior: of a folder with several. greedy: whether a file that can do
    both, raw or for Unity, takes the likeliest actions (the default) or samples them. seed: of what a raw policy
    samples. Raises ConfigError and ExportError.
    """
    found = find_policy(Path(path), kind, behavior, greedy, seed_or_random(seed))
    return ActingPolicy(found.policy, found.spec, found.step, is_greedy=found.is_greedy)


def seed_or_random(seed: int | None) -> int:
    """A random one for None. Raises ConfigError for what is no seed."""
    if seed is None:
        return secrets.randbits(64)
    if not is_whole(seed) or seed < 0:
        raise ConfigError(f"seed: must be a whole number of at least 0, got {seed!r}")
    return int(seed)


def is_whole(number: object) -> bool:
    """Whether it is a whole number, of Python or of numpy."""
    return not isinstance(number, bool) and isinstance(number, Integral)
