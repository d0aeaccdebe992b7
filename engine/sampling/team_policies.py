"""A policy of one behavior that is made of several: the agents of each team act by the policy of their team.

Shapes: N agents of one step, M memory columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import take_decisions
from rl_tui.engine.specs import (
    LEARNING,
    Actions,
    Choice,
    CopyPolicy,
    DecisionSteps,
    Float32,
    Int64,
    Json,
    Policy,
    PolicyRecipe,
    State,
    Weights,
)


class InPlay(Protocol):
    """Who knows what acts in the episodes that go on."""

    def policies_of(self, agent_ids: Int64, longest: int) -> Int64:
        """i64[N], the number of the policy in each agent's episode; -1 where it begins one, or where that policy has
        acted in it for `longest` steps."""

    @property
    def policies_in_play(self) -> set[int]:
        """All of these numbers."""


@dataclass(frozen=True, slots=True)
class NumberedPolicy:
    """An opponent. number: its own, larger than those of all before. weights: those that it has."""

    number: int
    policy: Policy
    weights: Weights


class TeamPolicies:
    """Owned by the collector's thread. Teams that none was assigned to act by the policy that learns.

    Every policy that is assigned has a number of its own, by which `Choice.policies` says who acted: experience is
    learned from only where the policy that learns did. Each policy is called once for all of its agents.

    With `longest_game`, an agent keeps its policy to the end of its episode, or for so many steps where none comes;
    what was assigned meanwhile acts from its next episode on. Without, it acts at once.
    """

    def __init__(self, learning: Policy, longest_game: int | None = None) -> None:
        self._learning = learning
        self._longest_game = longest_game
        self._of_team: dict[int, int] = {}  # the numbers that are assigned
        self._policies: dict[int, Policy] = {}  # by number: those that are assigned or in play
        self._newest = LEARNING
        self._saved: dict[int, State] = {}  # of the generators of policies that are not assigned yet, by team
        self._in_play: InPlay | None = None
        self.memory_size = learning.memory_size
        self.version = learning.version

    def follow(self, in_play: InPlay) -> None:
        """Let that say which policies act in the episodes that go on."""
        self._in_play = in_play

    def assign(self, teams: Iterable[int], policy: Policy | None, number: int | None = None) -> None:
        """These teams act by a policy that is not learned, from now on; None: by the one that is.

        A policy that gets other weights must be assigned again: what it does then is another policy's. number: its own,
        larger than all before; None: the next one. Raises ValueError where its memory has another size.
        """
        if policy is None:
            for team in teams:
                self._of_team.pop(team, None)
        elif policy.memory_size not in (0, self.memory_size):
            raise ValueError(f"the memory must have {self.memory_size} columns or none, got {policy.memory_size}")
        else:
            self._newest = self._newest + 1 if number is None else number
            self._policies[self._newest] = policy
            for team in teams:
                self._of_team[team] = self._newest
                self._restore(team)
        in_use = set(self._of_team.values())
        if self._in_play is not None and self._longest_game is not None:
            in_use |= self._in_play.policies_in_play
        self._policies = {number: policy for number, policy in self._policies.items() if number in in_use}

    def take(self, team: int, opponent: NumberedPolicy | None) -> None:
        """Let a team act by this one; None: by the policy that learns."""
        policy, number = (None, None) if opponent is None else (opponent.policy, opponent.number)
        self.assign([team], policy, number)

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every waiting agent, by the policy of its team."""
        numbers = self._numbers(decisions)
        if not numbers.any():
            return self._learning.act(decisions, memories)
        parts = []
        for number, policy in ((LEARNING, self._learning), *self._policies.items()):
            rows = (numbers == number).nonzero()[0]
            if len(rows):
                own = None if memories is None or not policy.memory_size else memories[rows]
                parts.append((rows, policy.act(take_decisions(decisions, rows), own)))
        return _merged(parts, numbers, memories)

    def _numbers(self, decisions: DecisionSteps) -> Int64:
        """i64[N], of the policy of each agent."""
        if self._in_play is None or self._longest_game is None:
            return self._assigned_numbers(decisions)
        kept = self._in_play.policies_of(decisions.agent_ids, self._longest_game)
        return kept if kept.min() >= 0 else np.where(kept < 0, self._assigned_numbers(decisions), kept)

    def _assigned_numbers(self, decisions: DecisionSteps) -> Int64:
        """i64[N], of what is assigned to each agent's team; agents without one are of team 0."""
        numbers: Int64 = np.zeros(len(decisions.agent_ids), np.int64)
        for team, number in self._of_team.items():
            numbers[slice(None) if decisions.team_ids is None and team == 0 else decisions.team_ids == team] = number
        return numbers

    def load(self, weights: Weights) -> None:
        """The policy that learns acts with these weights from now on."""
        self._learning.load(weights)
        self.version = weights.version

    def recipe(self, copies: range, num_instances: int, num_restarts: int = 0) -> PolicyRecipe | None:
        """See CopyPolicy: of one to which no policy is assigned yet; None where the policy that learns has none, and
        for a class that derives from this one, which may act otherwise."""
        learning = self._learning
        if type(self) is not TeamPolicies or not isinstance(learning, CopyPolicy):
            return None
        if (recipe := learning.recipe(copies, num_instances, num_restarts)) is None:
            return None
        arguments: dict[str, Json] = {"learning": recipe.to_json(), "longest_game": self._longest_game}
        return PolicyRecipe(f"{__name__}:team_policies", arguments)

    def state(self) -> State:
        """The states of all random generators."""
        teams = {f"team_{team}": self._policies[number].state() for team, number in self._of_team.items()}
        return State.merge({"learning": self._learning.state(), **teams})

    def load_state(self, state: State) -> None:
        """Restore the generators of the policies that are assigned as they were then, or will be next."""
        self._learning.load_state(state.part("learning"))
        teams = [int(name.removeprefix("team_")) for name in state.values if name.startswith("team_")]
        self._saved = {team: state.part(f"team_{team}") for team in teams}
        for team in self._of_team:
            self._restore(team)

    def _restore(self, team: int) -> None:
        if (saved := self._saved.pop(team, None)) is not None:
            self._policies[self._of_team[team]].load_state(saved)


def team_policies(learning: Json, longest_game: int | None) -> TeamPolicies:
    """The policies of a recipe."""
    return TeamPolicies(made_by(learning), longest_game)


def made_by(recipe: Json) -> Policy:
    """The policy of a recipe that `PolicyRecipe.to_json` has written."""
    written = cast("dict[str, Any]", recipe)
    module, _, function = written["maker"].partition(":")
    policy: Policy = getattr(import_module(module), function)(**written["arguments"])
    return policy


def _merged(parts: Sequence[tuple[Int64, Choice]], numbers: Int64, memories: Float32 | None) -> Choice:
    """What was chosen for these rows as one choice of all. numbers: of the policy of each row."""
    order = np.concatenate([rows for rows, _ in parts])
    assert len(order) == len(numbers), "a policy that is in play is kept"
    places = np.empty_like(order)
    places[order] = np.arange(len(order))

    def joined(values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(values).take(places, 0)

    choices = [choice for _, choice in parts]
    if memories is not None:  # a policy without memory leaves it at zero
        after = [np.zeros_like(memories[rows]) if one.memories is None else one.memories for rows, one in parts]
        memories = joined(after)
    actions = Actions(joined([c.actions.continuous for c in choices]), joined([c.actions.discrete for c in choices]))
    continuous, log_probs = joined([c.continuous for c in choices]), joined([c.log_probs for c in choices])
    return Choice(actions, continuous, log_probs, memories, numbers)
