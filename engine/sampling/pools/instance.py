"""One environment of a pool: its answers are checked, its teams are joined, and its behaviors may become more."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.pools.checks import AnswerCheck
from rl_tui.engine.sampling.pools.numbering import with_all_behaviors
from rl_tui.engine.sampling.pools.teams import Teams
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps


class Instance:
    """Used where its environment is. Raises what the environment raises, and EnvironmentFailure for what is invalid."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._teams = Teams()
        self._known: dict[str, BehaviorSpec] = {}  # by the environment's names
        self._check = AnswerCheck({})
        self.specs: Mapping[str, BehaviorSpec] = {}  # by behavior; another object once there are more
        self._learn()

    @property
    def num_agents(self) -> dict[str, int]:
        """By behavior, over all teams: what the environment says now."""
        return self._teams.total(self.environment.num_agents)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """The first steps, by behavior."""
        self._teams.forget()
        return self._checked(self.environment.reset(seed))

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """What followed these actions, both by behavior."""
        if self._teams.has_any:
            actions = self._teams.split(actions)
        return self._checked(self.environment.step(with_all_behaviors(actions, self._known)))

    def _checked(self, answer: Mapping[str, Steps]) -> Mapping[str, Steps]:
        if not answer.keys() <= self._known.keys():
            self._learn()
        self._check.check(answer)
        return self._teams.join(answer) if self._teams.has_any else answer

    def _learn(self) -> None:
        """Take in what the environment has by now."""
        self._teams.add(self.environment.specs)
        self._known |= self.environment.specs
        self._check = AnswerCheck(self._known)
        self.specs = self._teams.specs
