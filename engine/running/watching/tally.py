"""Statistics of the one agent that is watched."""

from __future__ import annotations

from collections import deque

import numpy as np

from rl_tui.engine.running.watching.policy import WatchedPolicy
from rl_tui.engine.session.watching import Scene, Seen
from rl_tui.engine.specs import DecisionSteps, Int64, Steps

KEPT_EPISODES = 50
SEEN_VALUES = 64  # of an observation: no user reads more numbers
SILENT_STEPS = 1000  # without the agent, after which another one is watched


class WatchedTally:
    """Owned by the viewer. Counts the episodes of the first agent, or of the next one where that has left."""

    def __init__(self) -> None:
        self._agent: int | None = None
        self._num_silent = 0
        self._episode = self._step = 0
        self._total = self._reward = 0.0
        self._continuous: tuple[float, ...] = ()
        self._discrete: tuple[int, ...] = ()
        self._seen: tuple[Seen, ...] = ()
        self._returns: deque[float] = deque(maxlen=KEPT_EPISODES)
        self._lengths: deque[int] = deque(maxlen=KEPT_EPISODES)

    def abandon(self) -> None:
        """The episode ends here and does not count."""
        self._agent = None

    def add(self, steps: Steps, policy: WatchedPolicy) -> bool:
        """Count the results of the last actions; returns whether an episode begins."""
        ended = None if steps.terminals is None else _row(steps.terminals.agent_ids, self._agent)
        waiting = _row(steps.decisions.agent_ids, self._agent)
        if ended is not None:
            assert steps.terminals is not None
            self._add(float(steps.terminals.total_rewards[ended]), policy)
            self._returns.append(self._total)
            self._lengths.append(self._step)
        elif waiting is not None:
            self._add(float(steps.decisions.total_rewards[waiting]), policy)
        begins = self._begins(steps.decisions, has_ended=ended is not None, waits=waiting is not None)
        waiting = _row(steps.decisions.agent_ids, self._agent)
        if waiting is not None:
            self._seen = _seen(steps.decisions, waiting, policy)
        return begins

    def scene(self, behavior: str) -> Scene:
        """The numbers of a scene."""
        return Scene(
            behavior=behavior,
            at=0.0,
            episode=self._episode,
            step=self._step,
            total=self._total,
            reward=self._reward,
            continuous=self._continuous,
            discrete=self._discrete,
            seen=self._seen,
            returns=tuple(self._returns),
            lengths=tuple(self._lengths),
        )

    def _begins(self, decisions: DecisionSteps, *, has_ended: bool, waits: bool) -> bool:
        """Whether the agent, or another in its place, begins an episode; its count is then at zero."""
        self._num_silent = 0 if waits or has_ended else self._num_silent + 1
        if self._agent is not None and not has_ended and self._num_silent < SILENT_STEPS:
            return False
        if not waits:
            self._agent = None
            if not len(decisions.agent_ids):
                return False
            self._agent = int(decisions.agent_ids[0])
        self._num_silent = 0
        self._episode += 1
        self._step, self._total, self._reward = 0, 0.0, 0.0
        self._continuous, self._discrete = (), ()
        return True

    def _add(self, reward: float, policy: WatchedPolicy) -> None:
        self._step += 1
        self._total += reward
        self._reward = reward
        row = None if policy.last is None else _row(policy.last[0], self._agent)
        if policy.last is not None and row is not None:
            actions = policy.last[1]
            self._continuous = tuple(actions.continuous[row].tolist())
            self._discrete = tuple(actions.discrete[row].tolist())


def _row(agents: Int64, agent: int | None) -> int | None:
    found: list[int] = [] if agent is None else np.flatnonzero(agents == agent).tolist()
    return found[0] if found else None


def _seen(decisions: DecisionSteps, row: int, policy: WatchedPolicy) -> tuple[Seen, ...]:
    return tuple(
        Seen(
            spec.name, spec.shape, tuple(columns[row].ravel()[:SEEN_VALUES].tolist()), columns[row].size <= SEEN_VALUES
        )
        for spec, columns in zip(policy.observations, decisions.observations, strict=True)
    )
