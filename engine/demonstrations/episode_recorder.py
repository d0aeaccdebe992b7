"""Writes what a policy does in an environment to a .demo file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np

from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter, Episode
from rl_tui.engine.specs import (
    TERMINATED,
    TRUNCATED,
    Actions,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    Steps,
)


@dataclass(slots=True)
class _OpenEpisode:
    """What an agent has seen and done so far."""

    observations: list[Observations] = field(default_factory=list)
    continuous: list[Float32] = field(default_factory=list)
    discrete: list[Int64] = field(default_factory=list)
    masks: list[Bool | None] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class EpisodeRecorder:
    """A context, in which it sees the steps of one behavior and the actions of its agents, and keeps those that count.

    spec_of: returns the behavior, once there are steps of it. The file is published when the context ends without an
    error, if it has any episode. Rewards are an agent's own and its group's, whose sums are the returns that an
    evaluation reports.
    """

    def __init__(self, path: Path, spec_of: Callable[[], BehaviorSpec]) -> None:
        self._path, self._spec_of = path, spec_of
        self._leaving = ExitStack()
        self._writer: DemonstrationWriter | None = None
        self._open: dict[int, _OpenEpisode] = {}
        self._counted: set[int] = set()  # agents whose episodes have ended in the step that is seen next

    def __enter__(self) -> EpisodeRecorder:
        """Opens nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The file is complete, or there is none."""
        self._leaving.__exit__(kind, error, traceback)

    def close(self) -> None:
        """The file is complete, whatever has happened. Raises DemonstrationError."""
        self._leaving.close()

    def count(self, agent: int) -> None:
        """The episode of this agent, whose end is seen next, is written."""
        self._counted.add(agent)

    def abandon(self, agents: Int64) -> None:
        """The episodes of these agents are lost."""
        for agent in agents.tolist():
            self._open.pop(agent, None)

    def drop_last(self) -> None:
        """The newest episode is not written. Call it only where there is one. Raises DemonstrationError."""
        assert self._writer is not None, "an episode was written"
        self._writer.drop_last()

    def see(self, steps: Steps | None) -> None:
        """Agents got rewards, and some have ended their episodes. Raises DemonstrationError."""
        if steps is None:
            return
        if (ended := steps.terminals) is not None:
            rewards = ended.total_rewards.tolist()
            for row, agent in enumerate(ended.agent_ids.tolist()):
                episode = self._open.pop(agent, None)
                if episode is not None and agent in self._counted:
                    episode.rewards.append(rewards[row])
                    episode.observations.append(_row(ended.observations, row))
                    self._write(episode, int(TRUNCATED if ended.truncated[row] else TERMINATED))
        self._counted.clear()
        rewards = steps.decisions.total_rewards.tolist()
        for row, agent in enumerate(steps.decisions.agent_ids.tolist()):
            if agent in self._open:
                self._open[agent].rewards.append(rewards[row])

    def act(self, decisions: DecisionSteps, actions: Actions) -> None:
        """Agents that wait, and what they do. Copies what it keeps."""
        mask = decisions.action_mask
        for row, agent in enumerate(decisions.agent_ids.tolist()):
            episode = self._open.setdefault(agent, _OpenEpisode())
            episode.observations.append(_row(decisions.observations, row))
            episode.continuous.append(actions.continuous[row].copy())
            episode.discrete.append(actions.discrete[row].copy())
            episode.masks.append(None if mask is None else mask[row].copy())

    def _write(self, episode: _OpenEpisode, ending: int) -> None:
        spec = self._spec_of()
        if self._writer is None:
            writer = DemonstrationWriter(self._path, spec, self._path.stem)
            self._writer = self._leaving.enter_context(writer)
        allowed = np.ones(spec.actions.mask_size, np.bool_)
        masks = [allowed if mask is None else mask for mask in episode.masks]
        self._writer.write(
            Episode(
                observations=tuple(np.stack(column) for column in zip(*episode.observations, strict=True)),
                continuous=np.stack(episode.continuous),
                discrete=np.stack(episode.discrete),
                rewards=np.array(episode.rewards, np.float32),
                ending=ending,
                action_mask=np.stack(masks),
            )
        )


def _row(observations: Observations, row: int) -> Observations:
    return tuple(column[row].copy() for column in observations)
