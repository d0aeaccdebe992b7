"""All reward streams of a behavior.  Shapes: N rows of a block, E episodes that end in it, S streams."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.rewards.base import RewardSignal, RewardSignalKind
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.specs import Bool, Ending, Float32, State, Trajectories


class RewardStreams:
    """One signal per entry of `reward_signals`, in the file's order."""

    def __init__(self, config: BehaviorConfig):
        """Raises NotSupportedError for a signal that is not registered."""
        self._signals: list[RewardSignal] = []
        for name, settings in config.reward_signals.items():
            kind = cast(type[RewardSignalKind], registry.implementation("reward_signals", name))
            self._signals.append(kind.make(settings, config))
        self.gammas: Float32 = np.array([signal.gamma for signal in self._signals], np.float32)
        self.masks_terminal: Bool = np.array([not signal.ignores_dones for signal in self._signals], np.bool_)
        self._sums = EpisodeSums(len(self._signals))

    def __len__(self) -> int:
        return len(self._signals)

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N, S], each stream multiplied by its strength."""
        return _evaluated(self._signals, block)

    def peek(self, block: Trajectories) -> Float32:
        """The same without a change to the signals' state."""
        return _evaluated(copy.deepcopy(self._signals), block)

    def episodes(self, block: Trajectories, rewards: Float32) -> Samples:
        """What each stream paid in every episode that ended in a block with rewards f32[N, S].

        Call it once for each block: unfinished episodes are carried over."""
        sums = self._sums(block, rewards)
        if not len(sums):
            return {}
        return {f"Policy/{s.name.capitalize()} Reward": sums[:, i].tolist() for i, s in enumerate(self._signals)}

    def named(self, values: Sequence[float], what: str) -> Metrics:
        """One number per stream by metric, e.g. "Policy/Extrinsic Value" for what = "Value"."""
        return {f"Policy/{s.name.capitalize()} {what}": value for s, value in zip(self._signals, values, strict=True)}

    def state(self) -> dict[str, State]:
        """Each signal's state by its part of the trainer's state."""
        return {f"reward_{signal.name}": signal.state() for signal in self._signals}

    def load(self, state: State) -> None:
        """Restore the trainer's state and drop unfinished episodes."""
        self._sums = EpisodeSums(len(self._signals))
        for signal in self._signals:
            signal.load(state.part(f"reward_{signal.name}"))


class EpisodeSums:
    """Sums of rewards over whole episodes, across segments and blocks."""

    def __init__(self, num_streams: int):
        self._unfinished = AgentState.empty(num_streams, np.float64)

    def __call__(self, block: Trajectories, rewards: Float32) -> NDArray[np.float64]:
        """f64[E, S]: the sums of f32[N, S] over the episodes that ended in the block, each from its beginning."""
        of_segments = np.add.reduceat(rewards, np.cumsum(block.lengths) - block.lengths, dtype=np.float64)
        has_ended = block.endings != Ending.CUT
        begins = np.ones(block.num_segments, np.bool_)  # an agent's first segment of an episode in this block
        is_first = begins.copy()  # an agent's first segment in this block
        is_first[1:] = block.agent_ids[1:] != block.agent_ids[:-1]
        begins[1:] = is_first[1:] | has_ended[:-1]
        of_segments[is_first] += self._unfinished.lookup(block.agent_ids[is_first])
        starts = begins.nonzero()[0]
        sums = np.add.reduceat(of_segments, starts)
        ends = np.append(starts[1:], block.num_segments) - 1
        ids, endings = block.agent_ids[ends], block.endings[ends]
        self._unfinished = self._unfinished.updated(ids, endings, sums, block.departed)
        ended: NDArray[np.float64] = sums[has_ended[ends]]
        return ended


def _evaluated(signals: Sequence[RewardSignal], block: Trajectories) -> Float32:
    return np.stack([signal.evaluate(block) * np.float32(signal.strength) for signal in signals], axis=1)
