"""Gymnasium environments as instances of one behavior: a tight loop over copies.

Shapes: N copies, one agent each. The vectorized form is in gymnasium_vector.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, SupportsFloat, TypeAlias

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.choice_names import choice_names
from rl_tui.engine.sampling.environments.end_picture import EndPicture
from rl_tui.engine.sampling.environments.measuring import Tally
from rl_tui.engine.sampling.environments.observation_space import Bounds, bounds_of, observation_leaves, stack
from rl_tui.engine.sampling.environments.parameter_setting import ParameterSetter
from rl_tui.engine.sampling.environments.rendering import Frame, frames_per_second, rendered
from rl_tui.engine.sampling.environments.returned import NUMBERS, as_flag, as_reward
from rl_tui.engine.sampling.environments.space_json import spaces_to_json
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import Actions, BehaviorSpec, Bool, DecisionSteps, Float32, Int64, Steps, TerminalSteps

Env: TypeAlias = gymnasium.Env[Any, Any]  # Any: only its spaces know observations and actions

TIME_LIMIT = "_max_episode_steps"  # of gymnasium.wrappers.TimeLimit around an environment without a spec
KIND_OF_COPIES = "gymnasium.Env"
RESET = "observation, info"
STEP = "observation, reward, terminated, truncated, info"


def reward_threshold(spec: EnvSpec | None) -> float | None:
    """The mean return with which a registered environment counts as solved; None where wrappers may change rewards."""
    return None if spec is None or spec.additional_wrappers else spec.reward_threshold


class NamedCopy(AbstractContextManager["NamedCopy"]):
    """Adds to any exception that leaves the block which of several copies raised it."""

    def __init__(self, count: int) -> None:
        self.index = 0
        self._count = count

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._count > 1:
            with suppress(TypeError):  # where its notes are no list
                BaseException.add_note(error, f"copy {self.index}")


class GymnasiumLoop:
    """Copies of one Gymnasium environment, agents 0..N-1 of one behavior. Takes ownership of the copies.

    A copy is reset as soon as its episode ends: its agent is then in the terminals with its final observation and in
    the decisions with its new first one. The next step overwrites the arrays of a step.
    """

    def __init__(self, behavior: str, copies: Sequence[Env], attributes: Mapping[str, str] | None = None) -> None:
        """attributes: that environment parameters set, by parameter."""
        self._behavior = behavior
        self._copies = list(copies)
        self._leaves = observation_leaves(copies[0].observation_space, behavior)
        self._codec = ActionCodec(copies[0].action_space, behavior)
        self._refuse_differing_copies()
        self._current = NamedCopy(len(copies))
        self._ids: Int64 = np.arange(len(copies), dtype=np.int64)
        self._raws = [leaf.empty(len(copies)) for leaf in self._leaves]
        self._rewards: Float32 = np.zeros(len(copies), np.float32)
        only = self._leaves[0]
        self._bare_shape = only.raw_shape if only.path == () and only.spec.dtype == "float32" else None
        self._steps = [copy.step for copy in copies]
        self._picture = EndPicture(self._draw)
        self._masks: dict[int, Any] = {}  # Any: action masks as the copies give them
        self._tally: Tally | None = None
        self._setter = ParameterSetter(copies, attributes or {})
        spaces = spaces_to_json(copies[0].observation_space, copies[0].action_space)
        seen = tuple(leaf.spec for leaf in self._leaves)
        threshold = reward_threshold(copies[0].spec)
        names = choice_names(copies[0], self._codec.spec)
        spec = BehaviorSpec(behavior, seen, self._codec.spec, spaces, None, threshold, names)
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: len(copies)}

    @property
    def observation_bounds(self) -> tuple[Bounds | None, ...]:
        """The bounds of each observation, as its space gives them."""
        return bounds_of(self._copies[0].observation_space)

    @property
    def max_episode_steps(self) -> int | None:
        """The time limit that its id is registered with, or that a wrapper adds; None for none."""
        copy = self._copies[0]
        if copy.spec is not None:
            return copy.spec.max_episode_steps
        limit = copy.get_wrapper_attr(TIME_LIMIT) if copy.has_wrapper_attr(TIME_LIMIT) else None
        return limit if isinstance(limit, int) else None

    def measure(self, keys: Sequence[str]) -> None:
        """Steps include the numbers that `info` has under these keys, except those of a reset."""
        self._tally = Tally(keys)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Reset all copies, each with a seed of its own that is derived from `seed`."""
        seeds: list[int | None] = [None] * len(self._copies)
        if seed is not None:  # not seed + copy: two instances with neighboring seeds would share episodes
            seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(len(self._copies))]
        self._masks.clear()
        self._picture.forget()
        with self._current as current:
            for index, copy_seed in enumerate(seeds):
                current.index = index
                observation, infos = _begun(self._reset_copy(index, seed=copy_seed))
                self._store(index, observation, infos)
        self._rewards[:] = 0.0
        return {self._behavior: Steps(self._decisions())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Step every copy once; those whose episode ends are reset."""
        ended: list[tuple[int, Any, SupportsFloat, bool]] = []  # index, observation, reward, terminated
        rewards: list[SupportsFloat] = []
        self._masks.clear()
        self._picture.forget()
        with self._current as current:
            for index, action in enumerate(self._codec.rows(actions[self._behavior])):
                current.index = index
                returned = self._steps[index](action)
                try:
                    observation, reward, terminated, truncated, infos = returned
                except (TypeError, ValueError):
                    raise _must_return(STEP, returned) from None
                if not isinstance(infos, Mapping):
                    raise _must_return(STEP, returned)
                if self._tally is not None:
                    self._tally.add(infos)
                terminated, truncated = as_flag("terminated", terminated), as_flag("truncated", truncated)
                if terminated or truncated:
                    ended.append((index, observation, reward, terminated))
                    reward = 0.0
                    if index == 0:
                        self._picture.keep()
                    observation, infos = _begun(self._reset_copy(index))
                self._store(index, observation, infos)
                rewards.append(reward)
        self._rewards[:] = as_rewards(rewards)
        measured = None if self._tally is None else self._tally.drain()
        return {self._behavior: Steps(self._decisions(), self._terminals(ended) if ended else None, measured)}

    def set_parameters(self, parameters: Parameters) -> None:
        """Copies are reset with these from now on. Raises ConfigError where one has no such attribute."""
        self._setter.set(parameters)

    def render(self) -> Frame | str | None:
        """A frame of copy 0, text in the mode "ansi", or None if its render mode gives neither."""
        return self._picture.render()

    def show_ends(self) -> None:
        """See ShowsEnds."""
        self._picture.is_on = True

    def _draw(self) -> Frame | str | None:
        return rendered(self._copies[0].render, self._copies[0].render_mode)

    @property
    def render_hz(self) -> float | None:
        """Gymnasium's `render_fps`."""
        return frames_per_second(self._copies[0].metadata)

    def close(self) -> None:
        """Close every copy."""
        for copy in self._copies:
            copy.close()

    def _reset_copy(self, index: int, **seed: Any) -> Any:  # Any: what the environment takes and returns
        options = self._setter.prepare(index)
        copy = self._copies[index]
        return copy.reset(**seed) if options is None else copy.reset(**seed, options=options)

    def _store(self, index: int, observation: Any, infos: Mapping[str, Any]) -> None:  # Any: as Gymnasium has it
        """Write one copy's observation into its row and store its action mask."""
        is_bare = type(observation) is np.ndarray and observation.shape == self._bare_shape
        if is_bare and observation.dtype.kind in NUMBERS:
            self._raws[0][index] = observation
        else:
            for leaf, raw in zip(self._leaves, self._raws, strict=True):
                leaf.write(raw, index, observation)
        if "action_mask" in infos:
            self._masks[index] = infos["action_mask"]

    def _decisions(self) -> DecisionSteps:
        observations = tuple([leaf.encode(raw) for leaf, raw in zip(self._leaves, self._raws, strict=True)])
        mask: Bool | None = None
        if self._masks:
            mask = self._codec.mask_rows([self._masks.get(index) for index in range(len(self._copies))])
        return DecisionSteps(self._ids, observations, self._rewards, mask)

    def _terminals(self, ended: Sequence[tuple[int, Any, SupportsFloat, bool]]) -> TerminalSteps:
        indices, observations, rewards, terminated = zip(*ended, strict=True)
        return TerminalSteps(
            self._ids[list(indices)],
            stack(self._leaves, observations),
            as_rewards(rewards),
            ~np.array(terminated, np.bool_),
        )

    def _refuse_differing_copies(self) -> None:
        first = self._copies[0]
        for index, copy in enumerate(self._copies):
            if (copy.observation_space, copy.action_space) != (first.observation_space, first.action_space):
                raise EnvironmentFailure(f"copy {index} must have the spaces of copy 0")


def is_gymnasium(made: object) -> bool:
    """Whether it is an environment of Gymnasium."""
    return isinstance(made, gymnasium.Env)


def _begun(returned: Any) -> tuple[Any, Any]:  # Any: as the environment returned it
    """Observation and info of a reset; raises EnvironmentFailure for anything else."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:  # an array of two would pass for both
        raise _must_return(RESET, returned)
    observation, infos = returned
    if not isinstance(infos, Mapping):
        raise _must_return(RESET, returned)
    return observation, infos


def _must_return(expected: str, returned: Any) -> EnvironmentFailure:  # Any: as above
    kinds = [type(value).__name__ for value in returned] if isinstance(returned, tuple | list) else []
    found = f"({', '.join(kinds)})" if kinds else type(returned).__name__
    return EnvironmentFailure(f"it must return {expected}, got {found}")


def as_rewards(rewards: Sequence[Any]) -> Float32:  # Any: as the environment returned it
    """f32[n] of n rewards; raises EnvironmentFailure naming the first that is not a number."""
    try:
        return np.frombuffer(array("f", rewards), np.float32)  # unlike numpy, array takes neither None nor text
    except (TypeError, OverflowError):
        numbers = [as_reward(f"copy {index}: the reward", reward) for index, reward in enumerate(rewards)]
        return np.array(numbers, np.float32)
