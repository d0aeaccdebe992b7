"""One environment of a pool: its answers are checked, its teams are joined, and its behaviors may become more."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.pools.checks import AnswerCheck, require_types
from rl_tui.engine.sampling.pools.numbering import with_all_behaviors
from rl_tui.engine.sampling.pools.teams import Teams
from rl_tui.engine.sampling.wrong_values import in_words
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
        try:
            if not answer.keys() <= self._known.keys():
                self._learn()
            self._check.check(answer)
        except (AttributeError, TypeError, ValueError):  # only then are the types of everything looked at
            require_types(answer)
            raise
        return self._teams.join(answer) if self._teams.has_any else answer

    def _learn(self) -> None:
        """Take in what the environment has by now. Raises EnvironmentFailure."""
        specs, num_agents = self.environment.specs, self.environment.num_agents
        for what, value in (("specs", specs), ("num_agents", num_agents)):
            if not isinstance(value, Mapping):
                raise EnvironmentFailure(f"{what} must be a mapping by behavior, got {in_words(value)}")
        if missing := [name for name in specs if name not in num_agents]:
            raise EnvironmentFailure(f"num_agents must have every behavior of specs, got none for {missing[0]!r}")
        self._teams.add(specs)
        self._known |= specs
        self._check = AnswerCheck(self._known)
        self.specs = self._teams.specs
