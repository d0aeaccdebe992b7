"""Squads whose members die early, join late, decide in different steps and are replaced, with what each step was.

An observation is a number that is never used again, so that it says who observed it, and when.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from rl_tui.engine.specs import DecisionSteps, Ending, Float32, Steps, TerminalSteps

NO_GROUP = -1


@dataclass
class Member:
    """One agent in one episode. acted_in: its group at its last action, None before the first one."""

    id: int
    group: int
    period: int
    born: int
    observed: float = 0.0
    acted_in: int | None = None
    open_rows: int = 0


@dataclass
class Ended:
    """What should be known of a segment: the mates' observations, in any order."""

    agent: int
    ending: Ending
    next_observation: float
    group_ended: bool
    mates: list[float]


@dataclass
class Squads:
    """A world of up to `most` squads of one to five members, and of agents without a group."""

    random: np.random.Generator
    horizon: int
    most: int = 3
    step: int = 0
    num_episodes: int = 0
    members: dict[int, Member] = field(default_factory=dict)
    policies: dict[int, int] = field(default_factory=dict)  # by agent: what `act` said
    ended: list[Ended] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._ids = itertools.count()
        self._groups = itertools.count()

    def next(self) -> Steps:
        """One step; `ended` has what should be known of the segments that end with it."""
        dead = self._die()
        for _ in range(int(self.random.integers(0, 3))):
            self._join()
        waiting = [m for m in self.members.values() if (self.step - m.born) % m.period == 0]
        self.random.shuffle(waiting)
        for member in waiting:
            if self.random.random() < 0.02:
                member.group = self._any_group()
        seen = {m.id: float(next(self._numbers)) for m in waiting}
        final = {m.id: float(next(self._numbers)) for m in dead}
        truncated = self.random.random(len(dead)) < 0.5
        self._note_ends(dead, truncated.tolist(), final, waiting, seen)
        self._note_cuts(waiting, seen)
        self.step += 1
        return Steps(
            DecisionSteps(_ids(waiting), _rows(seen), np.zeros(len(waiting), np.float32), group_ids=_groups(waiting)),
            TerminalSteps(_ids(dead), _rows(final), np.zeros(len(dead), np.float32), truncated, _groups(dead)),
        )

    # The slow reference: for each segment that ends, who of its group goes on, and what each of them observed last.
    def _note_ends(
        self, dead: list[Member], truncated: list[bool], final: dict[int, float], waiting: list[Member], seen: dict
    ) -> None:
        for member, stopped in zip(dead, truncated, strict=True):
            if not member.open_rows:
                continue
            group = member.acted_in
            is_over = group != NO_GROUP and not [m for m in self.members.values() if m.acted_in == group]
            if is_over:
                mates = [final[m.id] for m in dead if m.acted_in == group and m.open_rows and m.id != member.id]
            else:
                mates = self._going_on(member, waiting, seen)
            ending = Ending.TRUNCATED if stopped else Ending.TERMINATED
            self.ended.append(Ended(member.id, ending, final[member.id], is_over, mates))

    def _note_cuts(self, waiting: list[Member], seen: dict[int, float]) -> None:
        for member in waiting:
            if member.open_rows == self.horizon:
                mates = self._going_on(member, waiting, seen)
                self.ended.append(Ended(member.id, Ending.CUT, seen[member.id], False, mates))
                member.open_rows = 0

    def _going_on(self, member: Member, waiting: list[Member], seen: dict[int, float]) -> list[float]:
        """The newest observations of those who go on in its group: of now, or of their last action."""
        if member.acted_in == NO_GROUP:
            return []
        now = [seen[m.id] for m in waiting if m.group == member.acted_in and m.id != member.id]
        others = [m for m in self.members.values() if m.id not in seen and m.id != member.id]
        return now + [m.observed for m in others if m.acted_in == member.acted_in]

    def act(self, decisions: DecisionSteps) -> None:
        """These have acted."""
        for agent, seen in zip(decisions.agent_ids.tolist(), decisions.observations[0][:, 0].tolist(), strict=True):
            member = self.members[agent]
            member.observed, member.acted_in = seen, member.group
            member.open_rows += 1

    def _die(self) -> list[Member]:
        """Some members die, some squads end."""
        over = {group for group in {m.group for m in self.members.values()} if self.random.random() < 0.05}
        dead = [m for m in self.members.values() if m.group in over or self.random.random() < 0.04]
        for member in dead:
            del self.members[member.id]
        self.num_episodes += sum(member.acted_in is not None for member in dead)
        return dead

    def _join(self) -> None:
        groups = [m.group for m in self.members.values()]
        if len(groups) < 5 * self.most:
            group = self._any_group()
            agent = next(self._ids)
            self.members[agent] = Member(agent, group, int(self.random.integers(1, 4)), self.step)

    def _any_group(self) -> int:
        known = sorted({m.group for m in self.members.values()} - {NO_GROUP})
        choices = [NO_GROUP, *known, *([next(self._groups)] if len(known) < self.most else [])]
        return int(self.random.choice(choices))


def _ids(members: list[Member]) -> np.ndarray:
    return np.array([member.id for member in members], np.int64)


def _groups(members: list[Member]) -> np.ndarray:
    return np.array([member.group for member in members], np.int64)


def _rows(seen: dict[int, float]) -> tuple[Float32]:
    return (np.array(list(seen.values()), np.float32).reshape(-1, 1),)
