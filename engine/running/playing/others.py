"""Policies that play every agent but the person's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.experience import take_decisions
from rl_tui.engine.learning.player import Player
from rl_tui.engine.running.playing.policies import EntrantPolicies
from rl_tui.engine.specs import Actions, BehaviorSpec, DecisionSteps, Int64, Steps


class Others:
    """Used by one thread. A policy for each behavior, made when it is first needed."""

    def __init__(self, policies: EntrantPolicies, *, is_greedy: bool) -> None:
        self._policies, self._is_greedy = policies, is_greedy
        self._players: dict[str, Player] = {}

    def require(self, specs: Mapping[str, BehaviorSpec]) -> None:
        """There is a policy for each behavior. Raises RlTuiError."""
        for name, spec in specs.items():
            if name not in self._players:
                self._players[name] = Player(self._policies.make(spec, is_greedy=self._is_greedy))

    def begin(self) -> None:
        """Every agent begins again."""
        for player in self._players.values():
            player.forget()

    def act(
        self, behaviors: Mapping[str, Steps], person: tuple[str, int] | None, choice: int | None
    ) -> tuple[dict[str, Actions], Int64]:
        """What all agents do that wait, by behavior, and what the others have chosen of it, i64[M] of those with one
        choice. person: behavior and id of the person's agent; choice: of it, where it waits."""
        chosen: dict[str, Actions] = {}
        answers: list[int] = []
        for name, steps in behaviors.items():
            if steps.terminals is not None:
                self._players[name].forget(steps.terminals.agent_ids)
            if not len(steps.decisions.agent_ids):
                continue
            own = self._row_of(steps.decisions, None if person is None or person[0] != name else person[1])
            chosen[name], acted = self._act(name, steps.decisions, own, choice)
            answers += acted
        return chosen, np.array(answers, np.int64)

    def _act(
        self, name: str, decisions: DecisionSteps, own: int | None, choice: int | None
    ) -> tuple[Actions, list[int]]:
        if own is None or choice is None:
            actions = self._players[name].act(decisions)
            return actions, _single_choices(actions)
        rows = np.delete(np.arange(len(decisions.agent_ids)), own)
        discrete = np.full((len(decisions.agent_ids), 1), choice)
        others: list[int] = []
        if len(rows):
            actions = self._players[name].act(take_decisions(decisions, rows))
            discrete[rows], others = actions.discrete, _single_choices(actions)
        return Actions(np.empty((len(discrete), 0), np.float32), discrete), others

    @staticmethod
    def _row_of(decisions: DecisionSteps, agent: int | None) -> int | None:
        agents = decisions.agent_ids.tolist()
        return agents.index(agent) if agent in agents else None


def _single_choices(actions: Actions) -> list[int]:
    """Of agents that have one choice and nothing else."""
    is_single = actions.discrete.shape[1] == 1 and not actions.continuous.shape[1]
    return [int(choice) for choice in actions.discrete[:, 0]] if is_single else []
