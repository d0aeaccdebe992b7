"""All reward streams of a behavior.  Shapes: N rows of a block, B steps, E episodes that end in it, S streams."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.reward_signals import KIND, RewardSignalSettings, changeable_name
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.installed_plugin import checked
from rl_tui.engine.learning.rewards.base import Numbers, RewardContext, RewardSignal
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.trainer import Metrics, Samples, abstract_methods
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import CUT, BehaviorSpec, Bool, Float32, State, Trajectories

Snapshots: TypeAlias = Sequence[tuple[RewardSignal, Any]]  # of some signals


@dataclass(slots=True)
class Stream:
    """A signal by its key under `reward_signals`. Its settings are those of now."""

    name: str
    settings: RewardSignalSettings
    signal: RewardSignal
    num_parameters: int
    evaluates_blocks: bool  # in a way of its own

    @staticmethod
    def make(name: str, settings: RewardSignalSettings, context: RewardContext) -> Stream:
        """The stream of a signal with these settings. Raises NotSupportedError, PluginError."""
        kind = require_signal(name, settings)
        with registry.blaming(KIND, name, "its constructor"):
            signal = kind(settings, context)
        signal = checked(KIND, name, signal, RewardSignal, ["num_parameters"])
        return Stream(name, settings, signal, signal.num_parameters, kind.evaluate is not RewardSignal.evaluate)

    @property
    def title(self) -> str:
        """Its name in the tags of metrics."""
        return self.settings.title or self.name.capitalize()

    def changeable_values(self) -> dict[str, float]:
        """What may be changed while it learns, by its name in the behavior."""
        return {changeable_name(self.name, key): value for key, value in self.settings.changeable_values().items()}

    def set_value(self, name: str, value: float) -> None:
        """Change one of these from the next update on. Raises ConfigError for a wrong value, PluginError."""
        path = changeable_name(self.name, "")
        changed = self.settings.with_value(name.removeprefix(path), value, path)
        self.signal.change_settings(changed)
        self.settings = changed

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N]. Raises NonFiniteError, PluginError."""
        return self._evaluate(self.signal, block)

    def peek(self, block: Trajectories) -> Float32:
        """The same without a change to the signal."""
        if self.settings.is_reevaluated:
            return self.reevaluate(Transitions.of(block))
        return self._evaluate(copy.deepcopy(self.signal), block)

    def _evaluate(self, signal: RewardSignal, block: Trajectories) -> Float32:
        if self.evaluates_blocks:
            return self._paid(signal.evaluate(block))
        return self._paid(signal.evaluate_transitions(Transitions.of(block)))

    def reevaluate(self, transitions: Transitions) -> Float32:
        """f32[B]. Raises NonFiniteError, PluginError."""
        return self._paid(self.signal.evaluate_transitions(transitions))

    def update(self, transitions: Transitions) -> Numbers:
        """Let the signal learn; returns its metrics, without what they were computed from. Raises PluginError."""
        numbers = self.signal.update(transitions)
        return {tag: n.detach() if isinstance(n, torch.Tensor) else n for tag, n in numbers.items()}

    def state(self) -> State:
        """The state of the signal. Raises PluginError."""
        return self.signal.state()

    def load(self, state: State) -> None:
        """Restore `state`. Raises PluginError."""
        self.signal.load(state)

    def evaluate_mates(self, rewards: Float32) -> Float32:
        """f32[N]. Raises NonFiniteError, PluginError."""
        return self._paid(self.signal.evaluate_mates(rewards))

    def _paid(self, rewards: Float32) -> Float32:
        """What the signal pays for each of some steps, multiplied by `strength`."""
        weighted: Float32 = rewards.astype(np.float32, copy=False) * np.float32(self.settings.strength)
        if not np.isfinite(weighted).all():
            wrong = weighted[~np.isfinite(weighted)][0]
            raise NonFiniteError(f"{KIND}.{self.name}: a reward must be a finite number, got {wrong}")
        return weighted


class RewardStreams:
    """One signal per entry of `reward_signals`, in the file's order."""

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        """seed: of the trainer; every signal gets one of its own, the same on all ranks.

        Raises NotSupportedError, PluginError.
        """
        signals = config.reward_signals.items()
        seeds = np.random.SeedSequence(seed).generate_state(len(signals)).tolist()
        self._streams = [
            Stream.make(name, settings, RewardContext(spec, config, own, device, sync))
            for (name, settings), own in zip(signals, seeds, strict=True)
        ]
        self._learning = [stream for stream in self._streams if stream.settings.learns]
        self._reevaluated = [i for i, stream in enumerate(self._streams) if stream.settings.is_reevaluated]
        self._reported: list[Numbers] = []  # by each signal that learns, for each mini-batch
        self.gammas: Float32 = np.array([stream.settings.gamma for stream in self._streams], np.float32)
        self.masks_terminal: Bool = np.array([stream.settings.masks_terminal for stream in self._streams], np.bool_)
        self._sums = EpisodeSums(len(self._streams))

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def learn(self) -> bool:
        """Whether `update` does anything."""
        return bool(self._learning)

    @property
    def are_reevaluated(self) -> bool:
        """Whether `reevaluate` changes anything."""
        return bool(self._reevaluated)

    @property
    def num_parameters(self) -> int:
        """How many numbers the signals train."""
        return sum(stream.num_parameters for stream in self._learning)

    def changeable_values(self) -> dict[str, float]:
        """What may be changed of the signals, by its name in the behavior."""
        return {name: value for stream in self._streams for name, value in stream.changeable_values().items()}

    def set_value(self, name: str, value: float) -> None:
        """Change one of these from the next update on. Raises ConfigError for a wrong value, PluginError."""
        (stream,) = (stream for stream in self._streams if name in stream.changeable_values())
        stream.set_value(name, value)

    def use_demonstrations(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """Give each signal those that it learns from, by their paths. Raises PluginError."""
        for stream in self._streams:
            if (path := stream.settings.demonstration_path) is not None:
                stream.signal.use_demonstrations(demonstrations[path])

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N, S], each stream multiplied by its strength. Raises NonFiniteError, PluginError."""
        return np.stack([stream.evaluate(block) for stream in self._streams], axis=1)

    def evaluate_mates(self, rewards: Float32) -> Float32:
        """f32[N, S]: what each stream pays for the rewards f32[N] that mates earned themselves."""
        return np.stack([stream.evaluate_mates(rewards) for stream in self._streams], axis=1)

    def peek(self, block: Trajectories) -> Float32:
        """The same without a change to the signals' state."""
        return np.stack([stream.peek(block) for stream in self._streams], axis=1)

    def reevaluate(self, transitions: Transitions, rewards: Float32) -> Float32:
        """f32[B, S]: `rewards`, those of these steps when they were new, as far as they are still valid."""
        rewards = rewards.copy()
        for index in self._reevaluated:
            rewards[:, index] = self._streams[index].reevaluate(transitions)
        return rewards

    def update(self, transitions: Transitions) -> None:
        """Let every signal that learns do so, once for each mini-batch."""
        self._reported += [stream.update(transitions) for stream in self._learning]

    def snapshot(self) -> Snapshots:
        """Copies for `restore`; none, and free, where no signal learns."""
        return [(stream.signal, stream.signal.snapshot()) for stream in self._learning]

    def snapshot_of_all(self) -> Snapshots:
        """The same, also of signals that only keep statistics."""
        return [(stream.signal, stream.signal.snapshot()) for stream in self._streams]

    def restore(self, snapshots: Snapshots) -> None:
        """Undo every update since `snapshots`, and what was evaluated since then by the signals that these are of."""
        self._reported.clear()
        for signal, snapshot in snapshots:
            signal.restore(snapshot)

    def forget_episodes(self) -> None:
        """Drop the returns of unfinished episodes."""
        self._sums = EpisodeSums(len(self._streams))

    def metrics(self) -> Metrics:
        """What the signals reported in every update since the last call, averaged. Raises NonFiniteError."""
        reported, self._reported = self._reported, []
        means = {tag: _mean([numbers[tag] for numbers in reported if tag in numbers]) for tag in _tags(reported)}
        wrong = [tag for tag, value in means.items() if not math.isfinite(value)]
        if reported:
            wrong += [f"what {stream.name} learned" for stream in self._learning if not stream.signal.is_finite]
        if wrong:
            raise NonFiniteError(f"{KIND}: {wrong[0]} is not finite; the state before this update was kept")
        return means

    def episodes(self, block: Trajectories, rewards: Float32) -> Samples:
        """Each stream's return of every episode that ended in a block with rewards f32[N, S].

        Call it once for each block: unfinished episodes are carried over."""
        sums = self._sums(block, rewards)
        if not len(sums):
            return {}
        return {f"Policy/{s.title} Reward": sums[:, i].tolist() for i, s in enumerate(self._streams)}

    def named(self, values: Sequence[Any], what: str) -> dict[str, Any]:
        """One number per stream by metric, e.g. "Policy/Extrinsic Value" for what = "Value"."""
        return {f"Policy/{s.title} {what}": value for s, value in zip(self._streams, values, strict=True)}

    def state(self) -> dict[str, State]:
        """Each signal's state by its part of the trainer's state."""
        return {f"reward_{stream.name}": stream.state() for stream in self._streams}

    def load(self, state: State) -> None:
        """Restore the trainer's state and drop unfinished episodes."""
        self.forget_episodes()
        for stream in self._streams:
            stream.load(state.part(f"reward_{stream.name}"))


class EpisodeSums:
    """Sums of rewards over whole episodes, across segments and blocks."""

    def __init__(self, num_streams: int):
        self._unfinished = AgentState.empty(num_streams, np.float64)

    def __call__(self, block: Trajectories, rewards: Float32) -> NDArray[np.float64]:
        """f64[E, S]: the sums of f32[N, S] over the episodes that ended in the block, each from its beginning."""
        of_segments = np.add.reduceat(rewards, np.cumsum(block.lengths) - block.lengths, dtype=np.float64)
        has_ended = block.endings != CUT
        is_first = np.ones(block.num_segments, np.bool_)  # an agent's first segment in this block
        is_first[1:] = block.agent_ids[1:] != block.agent_ids[:-1]
        of_segments[is_first] += self._unfinished.lookup(block.agent_ids[is_first], block.begins[is_first])
        starts = (is_first | block.begins).nonzero()[0]
        sums = np.add.reduceat(of_segments, starts)
        ends = np.append(starts[1:], block.num_segments) - 1
        ids, endings = block.agent_ids[ends], block.endings[ends]
        self._unfinished = self._unfinished.updated(ids, endings, sums, block.departed)
        ended: NDArray[np.float64] = sums[has_ended[ends]]
        return ended


def require_signal(name: str, settings: RewardSignalSettings) -> type[RewardSignal]:
    """The class of a signal with these settings, which defines all that it must. Raises PluginError."""
    kind = registry.implementation(KIND, name)
    if not issubclass(kind, RewardSignal):
        raise registry.refused(KIND, name, f"{kind.__name__} must be a subclass of RewardSignal")
    if lacks := _lacking(kind, settings):
        raise registry.refused(KIND, name, f"{kind.__name__} must define {lacks}")
    return kind


def _lacking(kind: type[RewardSignal], settings: RewardSignalSettings) -> str:
    """What the class of a signal must define and does not; "" if it is complete."""
    base = RewardSignal
    if missing := abstract_methods(kind):
        return ", ".join(f"`{method}`" for method in sorted(missing))
    if settings.learns != (kind.update is not base.update):
        return "`update` if and only if `learns` of its settings is True"
    needed = {
        "change_settings": ("`changeable` of its settings has something", bool(settings.changeable)),
        "use_demonstrations": ("its settings have a `demonstration_path`", settings.demonstration_path is not None),
    }
    for method, (reason, is_needed) in needed.items():
        if is_needed and getattr(kind, method) is getattr(base, method):
            return f"`{method}`, since {reason}"
    if kind.evaluate_transitions is not base.evaluate_transitions:
        return ""
    if settings.is_reevaluated:
        return "`evaluate_transitions`, since `is_reevaluated` of its settings is True"
    return "`evaluate` or `evaluate_transitions`" if kind.evaluate is base.evaluate else ""


def _tags(reported: Sequence[Numbers]) -> list[str]:
    return list(dict.fromkeys(tag for numbers in reported for tag in numbers))


def _mean(numbers: Sequence[Any]) -> float:
    """Of floats or tensors of one element, which are waited for once."""
    if isinstance(numbers[0], torch.Tensor):
        return float(torch.stack([number.reshape(()) for number in numbers]).mean())
    return float(sum(numbers) / len(numbers))
