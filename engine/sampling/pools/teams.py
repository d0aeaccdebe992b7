"""Behaviors named `name?team=N`: team N of behavior `name`. The only file that knows such names, but for Unity's
training analytics and the ids in a BaseEnv.

Shapes: N agents of all teams.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import join_decisions, join_terminals
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Int64,
    Measured,
    Statistic,
    Steps,
    TerminalSteps,
    add_up,
)

AgentSteps = TypeVar("AgentSteps", DecisionSteps, TerminalSteps)
_NAME = re.compile(r"(?P<behavior>[^?]+)(\?team=(?P<team>[0-9]{1,9}))?", re.DOTALL)


def split_name(name: str) -> tuple[str, int | None]:
    """The behavior and the team, None without one. Raises EnvironmentFailure for any other `?`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise EnvironmentFailure(f"a behavior must be named NAME or NAME?team=N, N a whole number from 0, got {name!r}")
    team = match["team"]
    return match["behavior"], None if team is None else int(team)


class Teams:
    """The teams of one instance's behaviors, so that all that follows deals with behaviors only.

    The same arrays of the teams' ids always give the same array of the behavior's.
    """

    def __init__(self) -> None:
        self.specs: Mapping[str, BehaviorSpec] = {}  # by behavior; replaced when it grows
        self._members: dict[str, tuple[str, int | None]] = {}  # by the environment's name: behavior and team
        self._named_by: dict[str, str] = {}  # by behavior: the name under which it first appeared
        self.has_any = False  # otherwise `join` and `split` change nothing
        self._ids: dict[str, dict[str, Int64]] = defaultdict(dict)  # by behavior and name: the last that decided
        self._joined: dict[str, tuple[Sequence[Int64], Int64]] = {}  # by behavior: the teams' ids, and all of them
        self._team_ids: dict[str, Int64] = {}  # by name: the last column
        self._shares: dict[str, list[tuple[str, int]]] = {}  # by behavior: names and numbers of agents that wait

    def add(self, specs: Mapping[str, BehaviorSpec]) -> None:
        """More behaviors or teams, by the environment's names. Raises EnvironmentFailure."""
        known = dict(self.specs)
        for name, spec in specs.items():
            behavior, team = split_name(name)
            if spec.name not in (name, behavior):
                raise EnvironmentFailure(f"specs[{name!r}] must have that name, got {spec.name!r}")
            own = spec if spec.name == behavior else replace(spec, name=behavior)
            if known.setdefault(behavior, own) != own:
                first = self._named_by[behavior]
                raise EnvironmentFailure(f"{name} must have the observations and actions of {first}")
            self._named_by.setdefault(behavior, name)
            self._members[name] = behavior, team
            self.has_any |= team is not None
        if self.has_any:
            known = {behavior: replace(spec, teams=self._teams_of(behavior)) for behavior, spec in known.items()}
        self.specs = known

    def _teams_of(self, behavior: str) -> tuple[int, ...]:
        return tuple(sorted(team for of, team in self._members.values() if of == behavior and team is not None))

    def total(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Numbers by the environment's names, added up by behavior; 0 where it gives none."""
        totals = dict.fromkeys(self.specs, 0)
        for name, (behavior, _) in self._members.items():
            totals[behavior] += counts.get(name, 0)
        return totals

    def forget(self) -> None:
        """Every agent begins again."""
        self._ids.clear()

    def join(self, answer: Mapping[str, Steps]) -> Mapping[str, Steps]:
        """The steps by behavior. Raises EnvironmentFailure where two teams have the same agent."""
        parts: dict[str, dict[str, Steps]] = defaultdict(dict)
        for name, steps in answer.items():
            parts[self._members[name][0]][name] = steps
        self._shares = {
            behavior: [(name, len(steps.decisions.agent_ids)) for name, steps in named.items()]
            for behavior, named in parts.items()
        }
        return {behavior: self._join(behavior, named) for behavior, named in parts.items()}

    def split(self, actions: Mapping[str, Actions]) -> Mapping[str, Actions]:
        """The actions for what `join` returned last, under the environment's names."""
        shares: dict[str, Actions] = {}
        for behavior, chosen in actions.items():
            begin = 0
            for name, count in self._shares.get(behavior, ()):
                end = begin + count
                shares[name] = Actions(chosen.continuous[begin:end], chosen.discrete[begin:end])
                begin = end
        return shares

    def _join(self, behavior: str, named: Mapping[str, Steps]) -> Steps:
        ids = self._join_ids(behavior, {name: steps.decisions.agent_ids for name, steps in named.items()})
        decisions = join_decisions(ids, [self._of_team(name, steps.decisions) for name, steps in named.items()])
        terminals = [
            self._of_team(name, steps.terminals) for name, steps in named.items() if steps.terminals is not None
        ]
        measured = [steps.measured for steps in named.values() if steps.measured is not None]
        statistics = [steps.statistics for steps in named.values() if steps.statistics]
        return Steps(
            decisions, join_terminals(terminals) if terminals else None, _sum(measured), _without_repetition(statistics)
        )

    def _of_team(self, name: str, steps: AgentSteps) -> AgentSteps:
        """The same steps with the team of that name."""
        team, count = self._members[name][1], len(steps.agent_ids)
        if team is None:
            return steps
        if steps.team_ids is not None and (steps.team_ids != team).any():
            raise EnvironmentFailure(f"{name}: team_ids must be {team} as in its name, got {steps.team_ids}")
        column = self._team_ids.get(name)
        if column is None or len(column) != count:
            column = self._team_ids[name] = np.full(count, team)
        return replace(steps, team_ids=column)

    def _join_ids(self, behavior: str, named: Mapping[str, Int64]) -> Int64:
        acting = self._ids[behavior]
        if any(acting.get(name) is not ids for name, ids in named.items()):
            acting.update(named)
            _require_unique(acting)
        parts = tuple(named.values())
        last, joined = self._joined.get(behavior, ((), np.empty(0, np.int64)))
        if len(parts) != len(last) or any(a is not b for a, b in zip(parts, last, strict=True)):
            joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._joined[behavior] = parts, joined
        return joined


def _require_unique(teams: Mapping[str, Int64]) -> None:
    """No team has an agent of another one, though that may decide at other steps. Raises EnvironmentFailure."""
    if len(np.unique(np.concatenate(list(teams.values())))) == sum(map(len, teams.values())):
        return
    owners: dict[int, str] = {}
    for name, ids in teams.items():
        for agent in ids.tolist():
            if (other := owners.setdefault(agent, name)) != name:
                raise EnvironmentFailure(
                    f"agent_ids must be unique over the teams of a behavior, got {agent} in {other} and in {name}"
                )


def _sum(measured: Sequence[Measured]) -> Measured | None:
    totals: dict[str, tuple[float, int]] = {}
    for numbers in measured:
        add_up(totals, numbers)
    return totals or None


def _without_repetition(statistics: Sequence[tuple[Statistic, ...]]) -> tuple[Statistic, ...] | None:
    """What the teams report; a tuple that several of them have is of the environment, and counts once."""
    different = {id(reported): reported for reported in statistics}
    return tuple(itertools.chain.from_iterable(different.values())) or None
