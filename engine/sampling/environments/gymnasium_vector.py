"""Gymnasium's vectorized environments as instances of one behavior: no Python loop over copies.

Shapes: N copies, one agent each. The `autoreset mode` is what Gymnasium does when an episode ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NotSupportedError
from rl_tui.engine.sampling.environments.action_space import ActionCodec
from rl_tui.engine.sampling.environments.gymnasium_loop import reward_threshold
from rl_tui.engine.sampling.environments.measuring import Infos, Tally
from rl_tui.engine.sampling.environments.observation_space import Bounds, bounds_of, observation_leaves, stack
from rl_tui.engine.sampling.environments.rendering import Frame, frames_per_second, rendered
from rl_tui.engine.sampling.environments.returned import as_flags
from rl_tui.engine.sampling.environments.space_json import spaces_to_json
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observations,
    Steps,
    TerminalSteps,
)

AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]  # Any: only its spaces know observations and actions


class GymnasiumVector:
    """One vectorized environment, agents 0..N-1 of one behavior. Takes ownership of it.

    In the autoreset mode SAME_STEP an agent whose episode ends is in the terminals and, with its next episode, in the
    decisions. In NEXT_STEP it is in the terminals only: the environment's next step resets it, whatever its action, and
    after that step it is in the decisions again. When all episodes end in the same step, that reset step is taken
    immediately, so that decisions are never empty. Raises NotSupportedError for other modes.
    """

    def __init__(self, behavior: str, env: AnyVectorEnv) -> None:
        self._mode = env.metadata.get("autoreset_mode")
        if self._mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            found = self._mode.name if isinstance(self._mode, AutoresetMode) else self._mode
            raise NotSupportedError(f"{behavior}: autoreset_mode must be NEXT_STEP or SAME_STEP, got {found}")
        self._behavior = behavior
        self._env = env
        self._count = env.num_envs
        self._leaves = observation_leaves(env.single_observation_space, behavior)
        self._codec = ActionCodec(env.single_action_space, behavior)
        self._ids: Int64 = np.arange(self._count, dtype=np.int64)
        self._waiting = self._ids  # copies whose agents wait for an action
        self._resetting: Bool | None = None  # copies that the next step resets
        self._tally: Tally | None = None
        shape = self._codec.spec.continuous, len(self._codec.spec.branches)
        self._given = Actions(
            np.zeros((self._count, shape[0]), np.float32), np.zeros((self._count, shape[1]), np.int64)
        )
        spaces = spaces_to_json(env.single_observation_space, env.single_action_space)
        seen = tuple(leaf.spec for leaf in self._leaves)
        threshold = reward_threshold(env.spec)
        spec = BehaviorSpec(behavior, seen, self._codec.spec, spaces, reward_threshold=threshold)
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: self._count}

    @property
    def observation_bounds(self) -> tuple[Bounds | None, ...]:
        """The bounds of each observation, as its space gives them."""
        return bounds_of(self._env.single_observation_space)

    @property
    def max_episode_steps(self) -> int | None:
        """The time limit that its id is registered with; None for none."""
        return None if self._env.spec is None else self._env.spec.max_episode_steps

    def measure(self, keys: Sequence[str]) -> None:
        """Steps include the numbers that `info` has under these keys, except those of a reset."""
        self._tally = Tally(keys)

    def set_parameters(self, parameters: Parameters) -> None:
        """Raises ConfigError: it resets its copies itself, each at another step."""
        raise ConfigError(
            f"environment_parameters: {type(self._env.unwrapped).__name__} is a VectorEnv, which takes none: it must be"
            " a gymnasium.Env, which is made for each copy"
        )

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Reset all copies with a seed that is derived from `seed`."""
        if seed is not None:  # copies take seed, seed + 1, ...: those of instances with neighboring seeds would meet
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0]) % 2**31  # ale_py takes an int of C
        observation, infos = self._env.reset(seed=seed)
        self._waiting, self._resetting = self._ids, None
        rewards = np.zeros(self._count, np.float32)
        return {self._behavior: Steps(self._decisions(self._batch(observation), rewards, infos))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Step all copies once."""
        given = actions[self._behavior]
        if self._waiting is not self._ids:
            given = self._spread(given)
        steps = self._advance(given)
        if self._tally is not None:
            steps.measured = self._tally.drain()
        return {self._behavior: steps}

    def render(self) -> Frame | str | None:
        """A frame of copy 0, text in the mode "ansi", or None if the render mode gives neither."""
        return rendered(self._env.render, self._env.render_mode)

    @property
    def render_hz(self) -> float | None:
        """Gymnasium's `render_fps`."""
        return frames_per_second(self._env.metadata)

    def close(self) -> None:
        """Close the vectorized environment."""
        self._env.close()

    def _advance(self, given: Actions) -> Steps:
        observation, reward, terminated, truncated, infos = self._env.step(self._codec.batch(given))
        observations = self._batch(observation)
        rewards = np.asarray(reward, np.float32)
        terminated = as_flags("terminated", terminated)
        done: Bool = terminated | as_flags("truncated", truncated)
        if rewards.shape != (self._count,) or done.shape != (self._count,):
            raise EnvironmentFailure(
                f"rewards have shape {rewards.shape} and endings {done.shape} for {self._count} copies"
            )
        if self._tally is not None:
            self._measure(self._tally, infos, done)
        if self._resetting is not None:  # their reset step, which no policy learns from
            rewards = np.where(self._resetting, np.float32(0), rewards)
            done &= ~self._resetting
            self._resetting = None
        if not np.count_nonzero(done):
            self._waiting = self._ids
            return Steps(self._decisions(observations, rewards, infos))
        return self._ended(observations, rewards, done, np.logical_not(terminated), infos)

    def _measure(self, tally: Tally, infos: Infos, done: Bool) -> None:
        """Count what copies report that have stepped; of one that was reset in this step, its last report."""
        if self._mode is AutoresetMode.SAME_STEP:
            tally.add_batch(infos, ~done)
            tally.add_batch(infos.get("final_info", {}), done)
        else:
            stepped = np.ones(self._count, np.bool_) if self._resetting is None else ~self._resetting
            tally.add_batch(infos, stepped)

    def _ended(self, observations: Observations, rewards: Float32, done: Bool, truncated: Bool, infos: Infos) -> Steps:
        """Terminal steps of the copies that are done, and decisions as the autoreset mode has them."""
        ids = np.flatnonzero(done)
        if self._mode is AutoresetMode.SAME_STEP:
            terminals = TerminalSteps(ids, self._final(infos, ids), rewards.take(ids), truncated.take(ids))
            return Steps(self._decisions(observations, np.where(done, np.float32(0), rewards), infos), terminals)
        final = tuple([column.take(ids, axis=0) for column in observations])
        terminals = TerminalSteps(ids, final, rewards.take(ids), truncated.take(ids))
        self._resetting = done
        if len(ids) == self._count:
            return Steps(self._advance(self._given).decisions, terminals)
        self._waiting = rows = np.flatnonzero(~done)
        mask = self._mask(infos)
        going = tuple([column.take(rows, axis=0) for column in observations])
        decisions = DecisionSteps(rows, going, rewards.take(rows), None if mask is None else mask.take(rows, axis=0))
        return Steps(decisions, terminals)

    def _decisions(self, observations: Observations, rewards: Float32, infos: Infos) -> DecisionSteps:
        """Decisions of all copies."""
        return DecisionSteps(self._ids, observations, rewards, self._mask(infos))

    def _batch(self, observation: Any) -> Observations:  # Any: as Gymnasium has it
        return tuple([leaf.batch(observation, self._count) for leaf in self._leaves])

    def _final(self, infos: Infos, ids: Int64) -> Observations:
        """The final observations of the copies that are done, which SAME_STEP puts into the infos."""
        if "final_obs" not in infos:
            raise EnvironmentFailure("an episode ended in autoreset mode SAME_STEP without final_obs in its infos")
        final = infos["final_obs"]
        if isinstance(final, np.ndarray) and final.dtype == np.object_:
            return stack(self._leaves, [final[index] for index in ids])
        return tuple([column.take(ids, axis=0) for column in self._batch(final)])

    def _mask(self, infos: Infos) -> Bool | None:
        """bool[N, sum of branches] from the infos; None when no copy gave one."""
        value = infos.get("action_mask")
        if value is None:
            return None
        given = infos.get("_action_mask", np.ones(self._count, np.bool_))
        if isinstance(value, np.ndarray) and value.dtype == np.object_:
            return self._codec.mask_rows([mask if has else None for mask, has in zip(value, given, strict=True)])
        parts = value if isinstance(value, tuple) else (value,)
        rows = np.concatenate([np.reshape(part, (self._count, -1)) for part in parts], axis=1).astype(np.bool_)
        if rows.shape[1] != self._codec.spec.mask_size:
            must_be = f"must have {self._codec.spec.mask_size} entries"
            raise EnvironmentFailure(f"action_mask {must_be}, got {rows.shape[1]}")
        rows[~given] = True
        return rows

    def _spread(self, given: Actions) -> Actions:
        """Actions of the waiting copies in their rows; the other rows have no effect."""
        self._given.continuous[self._waiting] = given.continuous
        self._given.discrete[self._waiting] = given.discrete
        return self._given
