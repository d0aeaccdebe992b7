"""The episodes of one agent that a person plays."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.session.watching import Scene, Seen
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Observations, Steps

SEEN_VALUES = 64  # of an observation: no one reads more numbers


class PlayedEpisodes:
    """Used by one thread. Counts what the agent does, and has the recorder keep its complete episodes."""

    def __init__(self, spec: BehaviorSpec, recorder: EpisodeRecorder) -> None:
        self._spec, self._recorder = spec, recorder
        self._waiting: DecisionSteps | None = None
        self._agent: int | None = None  # whose episode is under way
        self._step = 0
        self._total = self._reward = 0.0
        self._choice: int | None = None
        self._returns: list[float] = []
        self._lengths: list[int] = []

    @property
    def num_complete(self) -> int:
        """How many are kept."""
        return len(self._returns)

    @property
    def is_waiting(self) -> bool:
        """Whether there is an agent that waits for an action."""
        return self._waiting is not None

    @property
    def is_allowed(self) -> tuple[bool, ...]:
        """Of each choice."""
        mask = None if self._waiting is None else self._waiting.action_mask
        return (True,) * self._spec.actions.mask_size if mask is None else tuple(mask[0].tolist())

    def see(self, steps: Steps | None) -> None:
        """What followed the last action; None without the agent. Raises DemonstrationError, and NotSupportedError for
        several agents."""
        self._waiting = None
        if steps is None:
            return
        decisions, ended = steps.decisions, steps.terminals
        if len(decisions.agent_ids) > 1:
            must = "must have one agent to be played by a person"
            raise NotSupportedError(f"behavior {self._spec.name}: {must}, got {len(decisions.agent_ids)}")
        has_ended = ended is not None and self._agent in ended.agent_ids
        if ended is not None and has_ended:
            assert self._agent is not None
            row = ended.agent_ids.tolist().index(self._agent)
            self._add(float(ended.total_rewards[row]))
            self._recorder.count(self._agent)
        self._recorder.see(steps)
        if has_ended:
            self._returns.append(self._total)
            self._lengths.append(self._step)
        if not len(decisions.agent_ids):
            return
        if has_ended or self._agent != int(decisions.agent_ids[0]):
            self.discard()
            self._agent = int(decisions.agent_ids[0])
        elif self._choice is not None:
            self._add(float(decisions.total_rewards[0]))
        self._waiting = decisions

    def act(self, choice: int) -> Actions:
        """The agent's action, which is recorded."""
        assert self._waiting is not None
        actions = Actions(np.empty((1, 0), np.float32), np.array([[choice]], np.int64))
        self._recorder.act(self._waiting, actions)
        self._choice = choice
        return actions

    def discard(self) -> None:
        """The episode under way is over, and not kept; no agent waits until there are steps again."""
        self._waiting = None
        if self._agent is not None:
            self._recorder.abandon(np.array([self._agent]))
        self._agent, self._choice = None, None
        self._step, self._total, self._reward = 0, 0.0, 0.0

    def drop_last(self) -> bool:
        """The newest complete episode is not kept; returns whether there was one. Raises DemonstrationError."""
        if not self._returns:
            return False
        self._recorder.drop_last()
        self._returns.pop()
        self._lengths.pop()
        return True

    def scene(self) -> Scene:
        """The numbers of a scene."""
        return Scene(
            behavior=self._spec.name,
            at=0.0,
            state="playing",
            episode=self.num_complete + 1,
            step=self._step,
            total=self._total,
            reward=self._reward,
            discrete=() if self._choice is None else (self._choice,),
            seen=() if self._waiting is None else seen_of(self._spec, self._waiting.observations, 0),
            returns=tuple(self._returns),
            lengths=tuple(self._lengths),
        )

    def _add(self, reward: float) -> None:
        self._step += 1
        self._total += reward
        self._reward = reward


def seen_of(spec: BehaviorSpec, observations: Observations, row: int) -> tuple[Seen, ...]:
    """What the agent in that row observes, in numbers."""
    return tuple(
        Seen(one.name, one.shape, tuple(column[row].ravel()[:SEEN_VALUES].tolist()), column[row].size <= SEEN_VALUES)
        for one, column in zip(spec.observations, observations, strict=True)
    )
