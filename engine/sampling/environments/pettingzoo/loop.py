"""Copies of one PettingZoo environment as an instance: agents of any number of behaviors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from rl_tui.engine.sampling.environments.end_picture import EndPicture
from rl_tui.engine.sampling.environments.gymnasium_loop import NamedCopy
from rl_tui.engine.sampling.environments.parameter_setting import ParameterSetter
from rl_tui.engine.sampling.environments.pettingzoo.copies import Copy
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Env
from rl_tui.engine.sampling.environments.pettingzoo.population import Population
from rl_tui.engine.sampling.environments.pettingzoo.roles import Roles
from rl_tui.engine.sampling.environments.rendering import Frame, frames_per_second, rendered
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class PettingZooLoop:
    """Copies of one environment, which are stepped one after another. Takes ownership of them.

    A copy is reset as soon as no agent is left. Where agents take turns, one of each copy waits, and an agent is in the
    steps again when it is its turn or its episode has ended. What it earns before its first action counts with that
    action. Agents that are not trained act as soon as they may.
    """

    def __init__(
        self,
        copies: Sequence[Env],
        roles: Roles,
        groups: Mapping[str, bool] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """groups: behaviors whose agents, those of one copy, are a group, and whether they have a common reward.
        attributes: that environment parameters set, by parameter."""
        self._population = Population(roles, groups or {}, len(copies))
        self._random = np.random.default_rng()
        self._setter = ParameterSetter(copies, attributes or {})
        self._copies = [
            Copy(env, partial(self._population.meet, index, env), partial(self._setter.prepare, index), self._random)
            for index, env in enumerate(copies)
        ]
        self._current = NamedCopy(len(copies))
        self._population.expect(copies[0])
        self._picture = EndPicture(self._draw)
        self._copies[0].before_next = self._picture.keep

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has had agents, or that the environment says will have some."""
        return self._population.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Possible agents of each behavior, in all copies."""
        return self._population.num_agents

    def measure(self, keys: Sequence[str]) -> None:
        """Steps include the numbers that agents' infos have under these keys, except those of a first observation."""
        self._population.measure(keys)

    def set_parameters(self, parameters: Parameters) -> None:
        """Copies are reset with these from now on. Raises ConfigError where one has no such attribute."""
        self._setter.set(parameters)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Reset all copies, each with a seed of its own that is derived from `seed`."""
        seeds: Sequence[int | None] = [None] * len(self._copies)
        if seed is not None:
            own, *seeds = map(int, np.random.SeedSequence(seed).generate_state(len(seeds) + 1))
            self._random.bit_generator.state = np.random.default_rng(own).bit_generator.state
        self._population.begin()
        self._picture.forget()
        with self._current as current:
            for current.index, (copy, copy_seed) in enumerate(zip(self._copies, seeds, strict=True)):
                copy.reset(copy_seed)
        return self._population.steps()

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Step every copy until agents that are trained wait; a copy without agents is reset."""
        rows = {columns: iter(columns.rows(actions[name])) for name, columns in self._population.columns.items()}
        for copy in self._copies:
            for agent, columns in copy.waiting:
                copy.act(agent, next(rows[columns]))
        self._population.begin()
        self._picture.forget()
        with self._current as current:
            for current.index, copy in enumerate(self._copies):
                copy.step()
        return self._population.steps()

    def render(self) -> Frame | str | None:
        """A frame of copy 0, text in the mode "ansi", or None if its render mode gives neither."""
        return self._picture.render()

    def show_ends(self) -> None:
        """See ShowsEnds."""
        self._picture.is_on = True

    def _draw(self) -> Frame | str | None:
        env = self._copies[0].env
        return rendered(env.render, getattr(env, "render_mode", None))

    @property
    def render_hz(self) -> float | None:
        """PettingZoo's `render_fps`."""
        return frames_per_second(self._copies[0].env.metadata)

    def close(self) -> None:
        """Close every copy."""
        for copy in self._copies:
            copy.env.close()
