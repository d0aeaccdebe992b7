"""One recorded episode, read and checked.

Shapes: T steps, A continuous dimensions, K branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rl_tui.engine.config.diagnostics import must_be_one_of
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.specs import (
    CUT,
    TERMINATED,
    TRUNCATED,
    Actions,
    BehaviorSpec,
    Bool,
    Float32,
    Observations,
)

NAMES: Mapping[str, Sequence[str]] = {  # of Minari, d3rlpy, imitation and Tianshou, too
    "observations": ("obs",),
    "next_observations": ("obs_next",),
    "actions": ("acts", "act"),
    "rewards": ("rews", "rew"),
    "terminated": ("terminations", "terminals", "terminal"),
    "truncated": ("truncations", "timeouts"),
    "raw_actions": ("raw_action",),
    "log_probs": ("log_prob",),
    "action_masks": ("action_mask",),
}
UNUSED = ("infos", "info", "id", "seed", "options")


class EpisodeColumns(Protocol):
    """Reads what an episode has. Raises ConfigError for what is not of the behavior's spaces."""

    def num_rows(self, observations: Any) -> int:
        """How many observations these are."""

    def observations(self, batch: Any, count: int) -> Observations:
        """The columns of so many."""

    def actions(self, batch: Any, count: int | None) -> Actions:
        """The columns of so many actions of the environment."""

    def masks(self, masks: Any) -> Bool | None:
        """bool[T, sum of branches]."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One that was read. observations: each [T + 1, ...]. masks: bool[T + 1, ...]. raw_actions, log_probs: f32[T, A]
    and f32[T, A + K], None where they are not known."""

    observations: Observations
    actions: Actions
    rewards: Float32
    ending: np.int8
    raw_actions: Float32 | None
    log_probs: Float32 | None
    masks: Bool | None

    @property
    def length(self) -> int:
        """T."""
        return len(self.rewards)


def read_episode(episode: Any, spec: BehaviorSpec, columns: EpisodeColumns) -> Episode:  # Any: see NAMES
    """Raises ConfigError, naming what is wrong of it."""
    fields = _fields(episode)
    rewards = _numbers("rewards", fields["rewards"])
    rewards = rewards[:, 0] if rewards.shape[1:] == (1,) else rewards  # as d3rlpy has them
    if rewards.ndim != 1 or not len(rewards):
        raise ConfigError(f"rewards: must be of one step or more, with the shape (T,), got {rewards.shape}")
    steps, actions = len(rewards), spec.actions
    with _naming("observations"):
        observations = _observations(fields, steps, columns)
    with _naming("actions"):
        taken = columns.actions(fields["actions"], steps)
    ending, masks = _ending(fields, steps), None
    if fields["action_masks"] is not None:
        with _naming("action_masks"):
            masks = _read_masks(fields["action_masks"], steps, columns, is_cut=ending == CUT)
    if not np.isfinite(taken.continuous).all():
        raise ConfigError("actions: must be finite numbers, got others")
    shapes = {"raw_actions": (steps, actions.continuous), "log_probs": (steps, actions.num_columns)}
    known = {
        name: None if fields[name] is None else _of_steps(name, fields[name], shape) for name, shape in shapes.items()
    }
    return Episode(observations, taken, rewards, ending, known["raw_actions"], known["log_probs"], masks)


def _fields(episode: Any) -> dict[str, Any]:
    """What it has, by name; None for what it has not."""
    if isinstance(episode, Mapping):
        spellings = {each for name, others in NAMES.items() for each in (name, *others)}
        for key in episode:
            if key not in spellings and key not in UNUSED:
                raise ConfigError(f"{key}: {must_be_one_of(tuple(NAMES), key)}")

    def found(name: str) -> Any:
        if isinstance(episode, Mapping):
            return episode.get(name)
        return getattr(episode, name, None)

    fields = {
        name: next((value for each in (name, *others) if (value := found(each)) is not None), None)
        for name, others in NAMES.items()
    }
    if missing := [name for name in ("observations", "actions", "rewards") if fields[name] is None]:
        raise ConfigError(f"must have {' and '.join(missing)}, got a {type(episode).__name__} without")
    return fields


def _observations(fields: Mapping[str, Any], steps: int, columns: EpisodeColumns) -> Observations:
    """T + 1 of them, the last one from `next_observations` where `observations` has T."""
    before, after = fields["observations"], fields["next_observations"]
    rows = columns.num_rows(before)
    if rows == steps + 1:
        return columns.observations(before, rows)
    if rows != steps:
        raise ConfigError(f"must have {steps + 1} rows, one more than rewards, got {rows}")
    if after is None:
        text = f"must have {steps + 1} rows, the last one observed after the last action, or else next_observations"
        raise ConfigError(f"{text} must be there too, got {rows} rows")
    with _naming("next_observations"):
        last = columns.observations(after, steps)
    return tuple(np.append(a, b[-1:], 0) for a, b in zip(columns.observations(before, steps), last, strict=True))


def _ending(fields: Mapping[str, Any], steps: int) -> np.int8:
    """How it ended: terminated rather than truncated where it is both; cut where it did not end."""
    if _has(fields, "truncated", steps):
        return np.int8(TERMINATED if _has(fields, "terminated", steps) else TRUNCATED)
    return np.int8(TERMINATED if _has(fields, "terminated", steps) else CUT)


def _has(fields: Mapping[str, Any], name: str, steps: int) -> bool:
    """Whether the last step has this flag, which no other has."""
    flags = np.asarray(False if fields[name] is None else fields[name])
    if flags.shape not in ((), (1,), (steps,), (steps, 1)) or not np.isin(flags, (0, 1)).all():
        raise ConfigError(f"{name}: must be True or False, of the episode or of each of its {steps} steps")
    if (flags := flags.ravel())[:-1].any():
        raise ConfigError(f"{name}: must be False before the last step, got True at step {flags.argmax()}")
    return bool(flags[-1])


def _read_masks(given: Any, steps: int, columns: EpisodeColumns, is_cut: bool) -> Bool | None:
    """bool[T + 1, sum of branches]; after the end of an episode all is allowed."""
    masks = columns.masks(given)
    allowed = (steps + 1,) if is_cut else (steps, steps + 1)
    if masks is None or len(masks) in allowed:
        return masks if masks is None or len(masks) > steps else np.append(masks, np.ones_like(masks[:1]), 0)
    needed = " or ".join(map(str, allowed))
    raise ConfigError(f"must have {needed} rows{' where the episode goes on' if is_cut else ''}, got {len(masks)}")


def _of_steps(name: str, values: Any, shape: tuple[int, int]) -> Float32:
    """f32[T, W]; where W is 1, the axis may be missing."""
    numbers = _numbers(name, values)
    if shape[1] == 1 and numbers.shape == shape[:1]:
        numbers = numbers[:, None]
    if numbers.shape != shape:
        each = "dimension of continuous actions" + (" and each choice" if name == "log_probs" else "")
        raise ConfigError(f"{name}: must have the shape {shape}, a column for each {each}, got {numbers.shape}")
    return numbers


def _numbers(name: str, values: Any) -> Float32:
    try:
        numbers = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: must be numbers: {error}") from error
    if not np.isfinite(numbers).all():
        raise ConfigError(f"{name}: must be finite numbers, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


@contextmanager
def _naming(field: str) -> Iterator[None]:
    """What is raised within begins with the field."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{field}: {error}") from error


class PlainColumns:
    """Implements EpisodeColumns for a behavior that is of no Gymnasium environment: a tuple with an array for each
    observation, and `Actions`."""

    def __init__(self, spec: BehaviorSpec):
        self._spec = spec

    def num_rows(self, observations: Any) -> int:
        """See EpisodeColumns."""
        if not isinstance(observations, tuple) or len(observations) != len(self._spec.observations):
            raise ConfigError(f"must be a tuple of {len(self._spec.observations)} arrays")
        return len(observations[0])

    def observations(self, batch: Any, count: int) -> Observations:
        """See EpisodeColumns."""
        self.num_rows(batch)
        arrays = tuple(np.asarray(array, own.dtype) for array, own in zip(batch, self._spec.observations, strict=True))
        for own, array in zip(self._spec.observations, arrays, strict=True):
            if array.shape != (count, *own.shape):
                raise ConfigError(f"{own.name} must have the shape {(count, *own.shape)}, got {array.shape}")
        return arrays

    def actions(self, batch: Any, count: int | None) -> Actions:
        """See EpisodeColumns."""
        own, rows = self._spec.actions, 1 if count is None else count
        if not isinstance(batch, Actions):
            raise ConfigError(f"must be Actions, got a {type(batch).__name__}")
        shapes = np.shape(batch.continuous), np.shape(batch.discrete)
        if shapes != (expected := ((rows, own.continuous), (rows, len(own.branches)))):
            raise ConfigError(f"must have the shapes {expected}, continuous and discrete, got {shapes}")
        discrete = np.asarray(batch.discrete, np.int64)
        if np.any((discrete < 0) | (discrete >= np.array(own.branches))):
            raise ConfigError("must be in the action space, got other choices")
        return Actions(np.asarray(batch.continuous, np.float32), discrete)

    def masks(self, masks: Any) -> Bool | None:
        """See EpisodeColumns."""
        found = np.asarray(masks, np.bool_)
        if found.ndim != 2 or found.shape[1] != self._spec.actions.mask_size:
            raise ConfigError(f"must have the shape (T, {self._spec.actions.mask_size}), got {found.shape}")
        return found
