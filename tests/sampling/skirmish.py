"""Two teams of one behavior fight in squads, scouts appear later, and every reward says who earned it, and when.

Named by tests as `tests.sampling.skirmish:Skirmish`. Pools reset instance i with seed + i: the seed is its number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps

SOLDIER = BehaviorSpec("Soldier", (ObservationSpec("place", (4,)),), ActionSpec(2))
SCOUT = BehaviorSpec("Scout", (ObservationSpec("place", (4,)),), ActionSpec(2))
STEPS = 2048  # more than a world has; numbers of agents or groups times this, plus a step, are exact in float32
NO_GROUP = -1


@dataclass
class Agent:
    """group: NO_GROUP without one. period: it acts at every so many steps. acted_at: its last action, None before."""

    id: int
    group: int
    team: int
    period: int
    born: int
    acted_at: int | None = None
    vanishes: bool = False


@dataclass(frozen=True)
class Act:
    """An action, as a row of experience must have it."""

    behavior: str
    instance: int
    agent: int
    step: int
    group: int
    team: int

    @property
    def reward(self) -> float:
        """The agent's own, a number that no other action has in its instance."""
        return self.agent * STEPS + self.step

    @property
    def group_reward(self) -> float:
        """Negative, the same for all who are in the group."""
        return 0.0 if self.group == NO_GROUP else -(self.group * STEPS + self.step)


@dataclass
class Log:
    """What happened in a world. credited: actions whose rewards were paid. observed: the steps in which they were, and
    the agents seen again. lost: those of agents that vanished during that episode, some of which no block has."""

    credited: list[Act] = field(default_factory=list)
    observed: list[int] = field(default_factory=list)
    lost: set[Act] = field(default_factory=set)

    @property
    def squads(self) -> dict[tuple[int, int, int], set[tuple[int, int]]]:
        """By instance, group and step, which agents are in the middle of which action, each by the step it was chosen
        in."""
        found: dict[tuple[int, int, int], set[tuple[int, int]]] = defaultdict(set)
        for act, observed in zip(self.credited, self.observed, strict=True):
            if act.group != NO_GROUP:
                for step in range(act.step, observed):
                    found[act.instance, act.group, step].add((act.agent, act.step))
        return found


class Skirmish:
    """Squads of a team lose members and gain late ones, end together, and are replaced by others, with new ids.

    Some soldiers have no squad, some act at every other step only, some vanish without an end, and some begin their
    next episode in the message in which the last one ended. From step `late` on there are scouts. After step `end`
    no agent is left. What happens does not depend on actions.
    """

    def __init__(self, late: int = 500, end: int = 520, can_vanish: bool = True) -> None:
        self.specs: Mapping[str, BehaviorSpec] = {"Soldier?team=0": SOLDIER, "Soldier?team=1": SOLDIER}
        self.num_agents: Mapping[str, int] = {"Soldier?team=0": 6, "Soldier?team=1": 6}
        self.log = Log()
        self._late, self._end, self._can_vanish = late, end, can_vanish
        self._agents: dict[str, list[Agent]] = {}

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self._instance = seed or 0
        self._random = np.random.default_rng(seed)
        self._step = self._num_agents = self._num_groups = 0
        self._agents = {"Soldier": [], "Scout": []}
        for team in (0, 0, 1, 1):
            self._enlist(team)
        return self._steps({})

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._step += 1
        if self._step == self._late:
            self.specs = {**self.specs, "Scout": SCOUT}
            self.num_agents = {**self.num_agents, "Scout": 2}
            self._agents["Scout"] = [self._new_agent(NO_GROUP, 0, "Scout") for _ in range(2)]
        return self._steps(self._fight())

    def close(self) -> None:
        """Nothing is held."""

    def _enlist(self, team: int) -> None:
        """A new squad of three, or one soldier without a squad."""
        alone = self._random.random() < 0.2
        group = NO_GROUP if alone else self._num_groups
        self._num_groups += not alone
        for _ in range(1 if alone else 3):
            self._agents["Soldier"].append(self._new_agent(group, team))

    def _new_agent(self, group: int, team: int, behavior: str = "Soldier") -> Agent:
        self._num_agents += 1
        vanishes = self._can_vanish and behavior == "Soldier" and self._random.random() < 0.1
        return Agent(self._num_agents - 1, group, team, int(self._random.integers(1, 3)), self._step, vanishes=vanishes)

    def _fight(self) -> dict[str, list[Agent]]:
        """Who is at the end of an episode, by behavior; newcomers are among the agents afterwards."""
        ended: dict[str, list[Agent]] = {"Soldier": [], "Scout": []}
        random, over = self._random, self._step == self._end
        fallen_groups = {group for group in {a.group for a in self._agents["Soldier"]} if random.random() < 0.03}
        for behavior, agents in self._agents.items():
            for agent in list(agents):
                falls = agent.group in fallen_groups if agent.group != NO_GROUP else False
                if not (over or falls or random.random() < 0.03):
                    continue
                agents.remove(agent)
                if agent.vanishes and not over:
                    continue
                ended[behavior].append(agent)
                if not over and not falls and random.random() < 0.3:  # the same id begins again
                    agents.append(Agent(agent.id, agent.group, agent.team, agent.period, self._step))
        while not over and self._step < self._end and len(self._agents["Soldier"]) < 10:
            self._enlist(int(random.integers(2)))
        for group in sorted({a.group for a in self._agents["Soldier"]} - {NO_GROUP}):
            mates = [a for a in self._agents["Soldier"] if a.group == group]
            if not over and len(mates) < 5 and random.random() < 0.05:
                self._agents["Soldier"].append(self._new_agent(group, mates[0].team))
        return ended

    def _steps(self, ended: Mapping[str, list[Agent]]) -> Mapping[str, Steps]:
        answer: dict[str, Steps] = {}
        for name in self.specs:
            behavior, _, team = name.partition("?team=")
            finals = [a for a in ended.get(behavior, []) if not team or a.team == int(team)]
            waiting = [
                agent
                for agent in self._agents[behavior]
                if (not team or agent.team == int(team)) and (self._step - agent.born) % agent.period == 0
            ]
            if not finals and not waiting and self._step != 0:
                continue
            ids, seen, rewards, groups, group_rewards = self._columns(behavior, finals)
            truncated = self._random.random(len(finals)) < 0.5
            terminals = TerminalSteps(ids, seen, rewards, truncated, groups, group_rewards) if finals else None
            ids, seen, rewards, groups, group_rewards = self._columns(behavior, waiting)
            answer[name] = Steps(DecisionSteps(ids, seen, rewards, None, groups, group_rewards), terminals)
            for agent in waiting:
                agent.acted_at = self._step
        return answer

    def _columns(
        self, behavior: str, agents: list[Agent]
    ) -> tuple[np.ndarray, tuple[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Ids, observations, rewards, groups and group rewards of what these agents' last actions were paid."""
        last = [self._credit(behavior, agent) for agent in agents]
        place = [[self._instance, a.id, self._step, a.group] for a in agents]
        rewards = np.array([0 if act is None else act.reward for act in last], np.float32)
        shared = np.array([0 if act is None else act.group_reward for act in last], np.float32)
        ids = np.array([a.id for a in agents], np.int64)
        groups = np.array([a.group for a in agents], np.int64)
        return ids, (np.array(place, np.float32).reshape(-1, 4),), rewards, groups, shared

    def _credit(self, behavior: str, agent: Agent) -> Act | None:
        """The agent's last action in this episode, which is paid now."""
        if agent.acted_at is None:
            return None
        act = Act(behavior, self._instance, agent.id, agent.acted_at, agent.group, agent.team)
        self.log.credited.append(act)
        self.log.observed.append(self._step)
        if agent.vanishes:
            self.log.lost.add(act)
        return act


def replay(num_instances: int, **settings: int) -> Log:
    """What happens in these instances: they need no actions."""
    total = Log()
    for instance in range(num_instances):
        world = Skirmish(**settings)
        world.reset(instance)
        for _ in range(settings.get("end", 520)):
            world.step({})
        total.credited += world.log.credited
        total.observed += world.log.observed
        total.lost |= world.log.lost
    return total
