"""Recorded episodes, of whatever program, as a block of experience.

Shapes: N rows of all E episodes, A continuous dimensions, K branches, M memory columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.acting.policy import ActorPolicy
from rl_tui.engine.learning.recorded_episode import Episode, EpisodeColumns, read_episode
from rl_tui.engine.specs import (
    CUT,
    Actions,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    Trajectories,
)

ROWS_AT_ONCE = 2048  # of which a policy evaluates the actions
MOST_REPORTED = 10  # episodes in an error message


def read_episodes(
    episodes: Iterable[Any], spec: BehaviorSpec, policy: ActorPolicy, columns: EpisodeColumns
) -> Trajectories:
    """A block with a segment for each episode. policy: whose log-probabilities are used where an episode has none.

    Raises ConfigError with a line for each episode that is wrong.
    """
    if isinstance(episodes, Mapping | str) or not isinstance(episodes, Iterable):
        raise ConfigError(f"episodes: must be a list of episodes, got a {type(episodes).__name__}")
    found, wrong = list[Episode](), list[str]()
    for number, episode in enumerate(episodes):
        try:
            found.append(read_episode(episode, spec, columns))
        except ConfigError as error:
            wrong.append(f"episodes[{number}]: {error}")
    if wrong:
        more = [f"and {len(wrong) - MOST_REPORTED} more"] if len(wrong) > MOST_REPORTED else []
        raise ConfigError("\n".join(wrong[:MOST_REPORTED] + more))
    if not found:
        raise ConfigError("episodes: must have at least one episode, got none")
    return _block(found, spec, policy)


def _block(episodes: list[Episode], spec: BehaviorSpec, policy: ActorPolicy) -> Trajectories:
    lengths = np.array([episode.length for episode in episodes], np.int64)
    endings = np.array([episode.ending for episode in episodes], np.int8)
    has_ended, agent_ids = endings != CUT, -1 - np.arange(len(episodes))  # those of environments are not negative
    following = zip(*(episode.observations for episode in episodes), strict=True)  # by observation, then by episode
    observations, last = zip(*(_without_last(rows) for rows in following), strict=True)
    every = [np.ones((episode.length + 1, spec.actions.mask_size), np.bool_) for episode in episodes]
    given = [episode.masks for episode in episodes]
    masks, next_masks = None, None
    if any(mask is not None for mask in given):
        masks, next_masks = _without_last([a if m is None else m for m, a in zip(given, every, strict=True)])
    raw = [episode.raw_actions for episode in episodes]
    bounded = [policy.before_bounds(episode.actions.continuous) for episode in episodes]
    acted = _Acted(
        observations=observations,
        masks=masks,
        actions=_joined([episode.actions for episode in episodes]),
        continuous=np.concatenate([b if r is None else r for r, b in zip(raw, bounded, strict=True)]),
    )
    log_probs, memories = _evaluated(policy, acted, lengths)
    for episode, end in zip(episodes, np.cumsum(lengths).tolist(), strict=True):
        if episode.log_probs is not None:
            log_probs[end - episode.length : end] = episode.log_probs
    returns = np.array([episode.rewards.sum(dtype=np.float64) for episode in episodes], np.float32)
    return Trajectories(
        observations=observations,
        continuous_actions=acted.continuous,
        discrete_actions=acted.actions.discrete,
        log_probs=log_probs,
        action_mask=masks,
        rewards=np.concatenate([episode.rewards for episode in episodes]),
        lengths=lengths,
        begins=np.ones(len(episodes), np.bool_),
        endings=endings,
        next_observations=last,
        agent_ids=agent_ids,
        episode_returns=returns[has_ended],
        episode_lengths=lengths[has_ended],
        policy_version=policy.version,
        memories=memories,
        next_action_mask=next_masks,
        departed=agent_ids[~has_ended],  # nothing is kept for a continuation
    )


def _without_last(episodes: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """[N, ...] and [E, ...]: what is known before each step, and after the last one of each episode."""
    return np.concatenate([rows[:-1] for rows in episodes]), np.concatenate([rows[-1:] for rows in episodes])


def _joined(actions: Sequence[Actions]) -> Actions:
    continuous, discrete = zip(*((each.continuous, each.discrete) for each in actions), strict=True)
    return Actions(np.concatenate(continuous), np.concatenate(discrete))


@dataclass(frozen=True, slots=True)
class _Acted:
    """N rows: what was observed and allowed, and the actions, with what they were before any bounds, f32[N, A]."""

    observations: Observations
    masks: Bool | None
    actions: Actions
    continuous: Float32


def _evaluated(policy: ActorPolicy, acted: _Acted, lengths: Int64) -> tuple[Float32, Float32 | None]:
    """f32[N, A + K], log-probabilities, and f32[N, M], the memory before each row; None without memory."""
    count, ends = int(lengths.sum()), np.cumsum(lengths)
    log_probs = np.empty((count, acted.continuous.shape[1] + acted.actions.discrete.shape[1]), np.float32)
    memories = np.zeros((count, policy.memory_size), np.float32) if policy.memory_size else None
    goes_on = np.ones(count, np.bool_)
    goes_on[ends - 1] = False
    for rows in _parts(ends - lengths, lengths, has_memory=memories is not None):
        seen = DecisionSteps(
            rows,
            tuple(column[rows] for column in acted.observations),
            np.zeros(len(rows), np.float32),
            None if acted.masks is None else acted.masks[rows],
        )
        actions = Actions(acted.actions.continuous[rows], acted.actions.discrete[rows])
        before = None if memories is None else memories[rows]
        choice = policy.evaluate(seen, actions, before, acted.continuous[rows])
        log_probs[rows] = choice.log_probs
        if memories is not None and choice.memories is not None:
            memories[rows[goes_on[rows]] + 1] = choice.memories[goes_on[rows]]
    return log_probs, memories


def _parts(starts: Int64, lengths: Int64, has_memory: bool) -> Iterator[Int64]:
    """Rows to evaluate at once: with memory a step of every episode, after the step before it."""
    if has_memory:
        yield from (starts[lengths > step] + step for step in range(int(lengths.max())))
        return
    count = int(lengths.sum())
    yield from (np.arange(begin, min(begin + ROWS_AT_ONCE, count)) for begin in range(0, count, ROWS_AT_ONCE))
