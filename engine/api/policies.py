"""Policies that a Python program acts with: what an environment observed goes in, what its `step` takes comes out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.errors import ConfigError, EnvironmentFailure, ExportError
from rl_tui.engine.export.policy_files import PolicyFile, read_policy_file
from rl_tui.engine.running.evaluation.player import Player
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.observation_space import observation_leaves, stack
from rl_tui.engine.sampling.environments.space_json import space_from_json
from rl_tui.engine.specs import Actions, BehaviorSpec, Bool, DecisionSteps, Int64, Observations, Policy
from rl_tui.engine.storage.behavior_folder import EXPORTED_KINDS, BehaviorFolder
from rl_tui.engine.storage.file_names import POLICIES
from rl_tui.engine.storage.run_folder import RunFolder

Kind: TypeAlias = Literal["greedy", "stochastic", "raw"]


class ActingPolicy:
    """Acts in the environments of one behavior. Used by one thread.

    behavior, step: what it is a policy of, and when. is_greedy: it takes the mean and the likeliest choices; else it
    samples, as in training. Memories are kept here, by row of a batch, until `reset`.
    """

    def __init__(self, policy: Policy, spec: BehaviorSpec, step: int, *, is_greedy: bool):
        self.behavior = spec.name
        self.step = step
        self.is_greedy = is_greedy
        self._player = Player(policy)
        self._spec = spec
        self._converter = None if spec.spaces is None else _Converter(spec)
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
        if isinstance(observation, DecisionSteps):
            return self._player.act(observation)
        if self._converter is None:
            raise ConfigError(
                f"observation: must be DecisionSteps, since {self.behavior} is of no Gymnasium environment, got"
                f" {type(observation).__name__}"
            )
        observations, mask, is_single = self._converter.columns(observation, action_mask)
        count = len(observations[0])
        if self._has_memory and self._num_rows not in (None, count):
            must = f"must have {self._num_rows} rows as before, which are remembered, got {count}"
            raise ConfigError(f"observation: {must}. Call reset() before others")
        self._num_rows = count
        decisions = DecisionSteps(np.arange(count), observations, np.zeros(count, np.float32), mask)
        return self._converter.action(self._player.act(decisions), is_single)

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


class _Converter:
    """Between the elements of Gymnasium spaces and columns."""

    def __init__(self, spec: BehaviorSpec):
        """Raises ExportError where the spaces are not those of the spec."""
        fields: Any = spec.spaces
        try:
            self._leaves = observation_leaves(space_from_json(fields["observation"]), spec.name)
            self._codec = ActionCodec(space_from_json(fields["action"]), spec.name)
        except (KeyError, TypeError, ValueError) as error:
            raise ExportError(f"{spec.name}: the spaces of its environment cannot be read: {error}") from error
        if (tuple(leaf.spec for leaf in self._leaves), self._codec.spec) != (spec.observations, spec.actions):
            raise ExportError(f"{spec.name}: the spaces of its environment are not those of its policy")

    def columns(self, observation: Any, mask: Any) -> tuple[Observations, Bool | None, bool]:  # Any: see `act`
        """Columns and action mask of one row or of several, and whether it is one row."""
        first = self._leaves[0]
        try:
            shape = np.shape(first.pick(observation))
            if shape == first.raw_shape:
                allowed = None if mask is None else self._codec.mask(mask)[None]
                return stack(self._leaves, [observation]), allowed, True
            if shape[1:] != first.raw_shape:
                raise EnvironmentFailure(first.misshaped(shape, first.raw_shape))
            columns = tuple(leaf.batch(observation, shape[0]) for leaf in self._leaves)
            return columns, None if mask is None else self._codec.mask_rows(list(mask)), False
        except (EnvironmentFailure, KeyError, IndexError, TypeError, ValueError) as error:
            text = str(error) if isinstance(error, EnvironmentFailure) else f"{type(error).__name__}: {error}"
            raise ConfigError(f"observation: must be an element of its space or a batch of them: {text}") from error

    def action(self, actions: Actions, is_single: bool) -> Any:  # Any: see `act`
        """One element of the action space, or a batch."""
        return self._codec.rows(actions)[0] if is_single else self._codec.batch(actions)


def load_policy(
    path: str | os.PathLike[str],
    kind: Kind | None = None,
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
    if kind is not None and kind not in EXPORTED_KINDS:
        raise ConfigError(f"kind: {must_be_one_of(EXPORTED_KINDS, kind)}")
    place = Path(path)
    if place.is_dir():
        place, greedy = _newest(_behavior_folder(place, behavior), kind, greedy)
        kind = None
    elif not place.exists():
        raise ConfigError(f"{place}: no such file or folder")
    found = read_policy_file(place, greedy, seed_or_random(seed))
    _require(place, found, kind, behavior)
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


def _require(path: Path, found: PolicyFile, kind: Kind | None, behavior: str | None) -> None:
    """The file is what the caller says. Raises ConfigError."""
    if kind is not None and found.kind != kind:
        raise ConfigError(f"kind: must be {found.kind}, which {path} is, got {kind}")
    if behavior is not None and found.spec.name != behavior:
        raise ConfigError(f"behavior: must be {found.spec.name}, of which {path} is, got {behavior}")


def _behavior_folder(run: Path, behavior: str | None) -> BehaviorFolder:
    """The folder of the requested behavior, or of the only one."""
    if behavior is not None:
        folder = RunFolder(run.absolute().parent, run.absolute().name).behavior(behavior)
        if folder.path.is_dir():
            return folder
    folders = [BehaviorFolder(entry.name, entry) for entry in sorted(run.iterdir()) if entry.is_dir()]
    names = [each.name for each in folders if (each.path / POLICIES).is_dir() or each.final_export.is_file()]
    if not names:
        raise ConfigError(
            f"{run}: no behavior in it has an exported policy. A run and a Learner export theirs with each checkpoint"
        )
    if behavior is not None:
        raise ConfigError(f"behavior: {must_be_one_of(names, behavior)}")
    if len(names) > 1:
        raise ConfigError(f"behavior: must be given, {one_of(names)}")
    return BehaviorFolder(names[0], run / names[0])


def _newest(folder: BehaviorFolder, kind: Kind | None, greedy: bool | None) -> tuple[Path, bool | None]:
    """The newest policy that acts so, and how it is to act. Raises ConfigError, naming the kinds that there are."""
    wanted = kind or "greedy"
    if found := folder.policies(wanted):
        return found[max(found)], greedy
    if wanted == "raw" or not folder.final_export.is_file():
        others = [other for other in EXPORTED_KINDS if folder.policies(other)]
        hint = f". Export it with export_policies: [{wanted}]"
        text = f"{folder.path / POLICIES} has no {wanted} policy; it has {', '.join(others) or 'none'}"
        raise ConfigError(f"kind: {text}{hint}")
    if kind is not None and greedy not in (None, kind == "greedy"):
        raise ConfigError(f"greedy: must be {kind == 'greedy'} with the kind {kind}, got {greedy}")
    return folder.final_export, wanted == "greedy" if greedy is None else greedy
