"""Datasets of Minari, which its library reads: local ones only, nothing is downloaded.

Shapes: S steps in E episodes, T steps of one of them, B rows that are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl_tui.engine.demonstrations.misfit import require_fit
from rl_tui.engine.demonstrations.opened import OpenedDemonstrations, Origin
from rl_tui.engine.demonstrations.step_columns import StepColumns
from rl_tui.engine.errors import ConfigError, DemonstrationError, NotSupportedError
from rl_tui.engine.learning.recorded_episode import Episode, read_episode
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.process.installation import command_for_extra
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.observation_space import observation_leaves
from rl_tui.engine.sampling.environments.space_columns import SpaceColumns
from rl_tui.engine.sampling.environments.space_json import spaces_to_json
from rl_tui.engine.specs import BehaviorSpec, Int64, Observations


class MinariDemonstrations(OpenedDemonstrations):
    """Used by one thread.

    Every episode is read once at the start. Observations stay in memory if all of them take at most keep_bytes, else
    the episodes of the rows that are asked for are read again. Raises DemonstrationError.
    """

    def __init__(self, dataset: Any, spec: BehaviorSpec, keep_bytes: int) -> None:  # Any: a MinariDataset
        self.spec = spec
        self._dataset = dataset
        self._where = f"minari:{dataset.id}"
        self._columns = SpaceColumns(spec)
        row_bytes = sum(math.prod(one.shape) * np.dtype(one.dtype).itemsize for one in spec.observations)
        is_kept = (dataset.total_steps + dataset.total_episodes) * row_bytes <= keep_bytes
        kept: list[Observations] = []
        episodes: list[Episode] = []
        for episode in self._read(range(dataset.total_episodes)):
            if is_kept:
                kept.append(episode.observations)
            episodes.append(_without_observations(episode))
        if not episodes:
            raise DemonstrationError(f"{self._where}: there must be an episode, got none")
        self.steps = _steps(episodes)
        self._kept: Observations | None = None
        if is_kept:
            self._kept = tuple(np.concatenate(column) for column in zip(*kept, strict=True))  # each [S + E, ...]

    @property
    def origin(self) -> Origin:
        """The files of the dataset."""
        paths = sorted(path for path in Path(self._dataset.storage.data_path).rglob("*") if path.is_file())
        return Origin((self._dataset.id,), tuple(paths), self.num_steps + len(self.episodes))

    def transitions(self, rows: Int64, *, with_next: bool = True) -> Transitions:
        """See Demonstrations."""
        numbers = self.episodes[:, 1].searchsorted(rows, side="right")  # of their episodes
        if self._kept is not None:
            places = rows + numbers  # an episode has an observation more than steps
            columns = self._kept
        else:
            needed, which = np.unique(numbers, return_inverse=True)
            columns, begins = self._read_columns(needed)
            places = begins[which] + rows - self.episodes[numbers, 0]
        before = tuple(column.take(places, 0) for column in columns)
        after = tuple(column.take(places + 1, 0) for column in columns) if with_next else ()
        return self.steps.transitions(rows, before, after, self.spec.actions)

    def _read_columns(self, numbers: Int64) -> tuple[Observations, Int64]:
        """The observations of these episodes, one after another, and where each begins."""
        counts = self.steps.episode_lengths[numbers] + 1
        ends = np.cumsum(counts)
        total = int(counts.sum())
        columns = tuple(np.empty((total, *one.shape), one.dtype) for one in self.spec.observations)
        for episode, end, count in zip(self._read(numbers.tolist()), ends.tolist(), counts.tolist(), strict=True):
            if episode.length + 1 != count:
                raise DemonstrationError(f"{self._where}: the dataset has changed since it was opened")
            for column, values in zip(columns, episode.observations, strict=True):
                column[end - count : end] = values
        return columns, ends - counts

    def _read(self, numbers: Iterable[int]) -> Iterator[Episode]:
        """These episodes, one after another."""
        for number in numbers:
            try:
                [found] = self._dataset.iterate_episodes([number])
                yield read_episode(found, self.spec, self._columns)
            except (
                ConfigError,
                KeyError,
                OSError,
                RuntimeError,
                TypeError,
                ValueError,
            ) as error:  # most are its storage's
                raise DemonstrationError(f"{self._where}: episode {number}: {error}") from error


def open_minari(name: str, behavior: BehaviorSpec | None, keep_bytes: int) -> MinariDemonstrations:
    """The steps of a local dataset. Raises DemonstrationError, also where the library is missing."""
    where = f"minari:{name}"
    try:
        from minari import load_dataset
    except ImportError as error:
        text = f"needs the package minari ({error}): {command_for_extra('minari')}"
        raise DemonstrationError(f"{where}: {text}") from error
    try:
        dataset = load_dataset(name, download=False)
        spec = _spec_of(dataset)
    except FileNotFoundError as error:
        text = f"no such dataset on this machine; `minari download {name}` gets a public one"
        raise DemonstrationError(f"{where}: {text}") from error
    except (
        AssertionError,
        KeyError,
        NotSupportedError,
        OSError,
        TypeError,
        ValueError,
    ) as error:  # most are the library's
        raise DemonstrationError(f"{where}: cannot be read: {error}") from error
    if behavior is not None:
        require_fit(spec, behavior, where)
        for one, other in zip(spec.observations, behavior.observations, strict=True):
            if one.dtype != other.dtype:
                text = f"observation {other.name} must be of {other.dtype}, got {one.dtype}"
                raise DemonstrationError(f"{where}: {text}")
    return MinariDemonstrations(dataset, spec, keep_bytes)


def _spec_of(dataset: Any) -> BehaviorSpec:  # Any: a MinariDataset
    """What the spaces of a dataset are to a policy, as those of an environment would be."""
    name = dataset.id if dataset.env_spec is None else dataset.env_spec.id
    seen = tuple(leaf.spec for leaf in observation_leaves(dataset.observation_space, name))
    spaces = spaces_to_json(dataset.observation_space, dataset.action_space)
    return BehaviorSpec(name, seen, ActionCodec(dataset.action_space, name).spec, spaces)


def _without_observations(episode: Episode) -> Episode:
    return Episode(
        (), episode.actions, episode.rewards, episode.ending, episode.raw_actions, episode.log_probs, episode.masks
    )


def _steps(episodes: Sequence[Episode]) -> StepColumns:
    lengths = np.array([episode.length for episode in episodes], np.int64)
    ends = np.cumsum(lengths)
    endings = np.zeros(int(ends[-1]), np.int8)
    endings[ends - 1] = [episode.ending for episode in episodes]
    return StepColumns(
        np.stack([ends - lengths, ends], axis=1),
        np.concatenate([episode.rewards for episode in episodes]),
        endings,
        np.concatenate([episode.actions.continuous for episode in episodes]),
        np.concatenate([episode.actions.discrete for episode in episodes]),
        np.repeat(np.arange(len(episodes)), lengths),
        None,
    )
