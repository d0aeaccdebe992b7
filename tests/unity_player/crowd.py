"""Any number of behaviors of any shape: worlds made from a list of JSON objects.

An agent sees a number from 0 to 1, the one that is wanted of it: in the first value of every vector, in the first of
every row of a set, in the brightness of every image. It earns up to 1 for its first continuous action, the closer to
2 * wanted - 1 the more, and 1 for that choice of its first branch that lies at `wanted`. So every behavior can be
learned, and an action that went to the wrong agent is seen in the reward.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.unity_player.messages import ActionsMismatch, Acts, Brain, Info, Said, Sensor, Speech

VARIABLE_SIZE = 4


@dataclass(frozen=True)
class Group:
    """A behavior, or a team of one, and how its agents live.

    agents: per area. size: of cooperating groups, 0 without any; the last agent of each group leaves it halfway, and is
    back in its next episode. late: the step at which its agents appear. absent: for how many steps agents stay away
    after every second episode; then they have new ids. episode: steps; agents differ by up to two. period: an agent
    acts at every so many steps. has_masks: choices are forbidden, never the wanted one, to most agents.
    """

    brain: Brain
    agents: int = 4
    size: int = 0
    late: int = 0
    absent: int = 0
    episode: int = 20
    period: int = 1
    has_masks: bool = False


@dataclass
class Member:
    """An agent. number: its place in the behavior. back: the step at which it returns, None while it is there."""

    number: int
    id: int
    wanted: float = 0.0
    is_waiting: bool = False
    steps: int = 0
    episodes: int = 0
    reward: float = 0.0
    group_reward: float = 0.0
    back: int | None = None
    forbidden: list[bool] = field(default_factory=list)


def groups_of(spec: str) -> list[Group]:
    """What a JSON text, or a file of it, describes: a list of objects.

    Keys: name, continuous, branches, observations; and those of `Group`. An observation has those of `Sensor`, or is
    its shape alone.
    """
    words = spec if spec.lstrip().startswith("[") else Path(spec).read_text()
    return [_group(dict(one)) for one in json.loads(words)]


def _group(one: dict[str, Any]) -> Group:
    sensors = [_sensor(number, seen) for number, seen in enumerate(one.pop("observations"))]
    branches = tuple(one.pop("branches", ()))
    brain = Brain(one.pop("name"), tuple(sensors), one.pop("continuous", 0), branches)
    return Group(brain, **one)


def _sensor(number: int, seen: list[int] | dict[str, Any]) -> Sensor:
    known = {"shape": seen} if isinstance(seen, list) else dict(seen)
    lists = {key: tuple(known.pop(key)) for key in ("shape", "mapping", "properties") if key in known}
    name = known.pop("name", f"Sensor{number}")
    if len(lists["shape"]) == 2:
        lists.setdefault("properties", (VARIABLE_SIZE, 1))
    return Sensor(name, **lists, **known)


class CrowdWorld:
    """All groups of a spec. Ids are unique over all behaviors, as in Unity."""

    def __init__(
        self, groups: Sequence[Group], speech: Speech, seed: int, num_areas: int = 1, keeps_ids: bool = True
    ) -> None:
        self.brains: Mapping[str, Brain] = {group.brain.name: group.brain for group in groups}
        self._groups, self._speech, self._keeps_ids = groups, speech, keeps_ids
        self._rng = np.random.default_rng(seed)
        self._next_id = 0
        self._time = 0
        self._members = {
            group.brain.name: [Member(number, self._new_id()) for number in range(group.agents * num_areas)]
            for group in groups
        }

    def reset(self) -> Said:
        """New episodes of all agents; those that were running get no terminal message."""
        for members in self._members.values():
            for member in members:
                member.steps, member.reward, member.group_reward = 0, 0.0, 0.0
        return self._said({})

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """Act for those that waited. Raises ActionsMismatch for a choice that is not there, or forbidden."""
        self._time += 1
        over: dict[str, list[Info]] = {}
        for group in self._groups:
            name = group.brain.name
            waiting = [member for member in self._members[name] if member.is_waiting]
            for row, member in enumerate(waiting):
                self._act(group.brain, member, acts[name], row)
            self._share(group, waiting)
            over[name] = self._ended(group)
        return self._said(over)

    def _act(self, brain: Brain, member: Member, acts: Acts, row: int) -> None:
        member.is_waiting, member.steps = False, member.steps + 1
        if brain.continuous:
            member.reward += 1 - abs(float(acts.continuous[row, 0]) - (2 * member.wanted - 1))
        if not brain.branches:
            return
        choices = acts.discrete[row].tolist()
        firsts = np.cumsum([0, *brain.branches]).tolist()
        for choice, first, size in zip(choices, firsts, brain.branches, strict=False):
            if not 0 <= choice < size or (member.forbidden and member.forbidden[first + choice]):
                raise ActionsMismatch(f"{brain.name}: agent {member.id} may not choose {choice} of {size}")
        member.reward += choices[0] == _wanted(member.wanted, brain.branches[0])

    def _share(self, group: Group, waiting: Sequence[Member]) -> None:
        """What an agent earns, its whole group earns, too, once more."""
        if not group.size:
            return
        for member in waiting:
            mates = self._mates(group, member)
            for mate in mates:
                mate.group_reward += member.reward / len(mates)

    def _mates(self, group: Group, member: Member) -> list[Member]:
        first = member.number - member.number % group.size
        members = self._members[group.brain.name][first : first + group.size]
        return [mate for mate in members if mate.back is None]

    def _ended(self, group: Group) -> list[Info]:
        """Last messages of those whose episode is over, who begin the next one, or leave."""
        over = []
        for member in self._members[group.brain.name]:
            if member.back is None and self._is_over(group, member):
                leaves = self._leaves(group, member)
                is_interrupted = not leaves and (member.number + member.episodes) % 2 == 1
                over.append(self._info(group, member, is_done=True, is_interrupted=is_interrupted))
                self._start_episode(group, member, leaves)
        return over

    def _is_over(self, group: Group, member: Member) -> bool:
        if not group.size:
            return member.steps >= group.episode + member.number % 3
        is_last = member.number % group.size == group.size - 1
        return member.steps >= (group.episode // 2 if is_last else group.episode)

    def _leaves(self, group: Group, member: Member) -> bool:
        """Whether it stays away for a while."""
        if group.size:
            return member.number % group.size == group.size - 1
        return bool(group.absent) and member.episodes % 2 == 0

    def _start_episode(self, group: Group, member: Member, leaves: bool) -> None:
        member.episodes, member.steps, member.is_waiting = member.episodes + 1, 0, False
        if leaves:
            member.back = self._time + max(group.absent, group.episode // 2 if group.size else 1)
        if leaves or not self._keeps_ids:
            member.id = self._new_id()

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _said(self, over: Mapping[str, Sequence[Info]]) -> Said:
        """Terminal infos first, then those of agents that wait; an empty list of a behavior without either."""
        lists, waiting = {}, {}
        for group in self._groups:
            name = group.brain.name
            deciding = [self._deciding(group, member) for member in self._members[name] if self._waits(group, member)]
            lists[name] = self._speech.list(group.brain, [*over.get(name, ()), *deciding])
            waiting[name] = len(deciding)
        return Said(lists, waiting)

    def _waits(self, group: Group, member: Member) -> bool:
        if member.back is not None and self._time >= member.back:
            member.back = None
        is_there = member.back is None and self._time >= group.late
        return is_there and (self._time + member.number) % group.period == 0

    def _deciding(self, group: Group, member: Member) -> Info:
        member.is_waiting, member.wanted = True, float(self._rng.random())
        member.forbidden = self._forbidden(group, member)
        return self._info(group, member)

    def _forbidden(self, group: Group, member: Member) -> list[bool]:
        if not group.has_masks or member.number % 3 == 2:  # some have no mask at all
            return []
        forbidden = []
        for size in group.brain.branches:
            drawn = self._rng.random(size) < 0.5
            drawn[_wanted(member.wanted, size)] = False
            forbidden += drawn.tolist()
        return forbidden

    def _info(self, group: Group, member: Member, is_done: bool = False, is_interrupted: bool = False) -> Info:
        info = Info(
            member.id,
            [self._seen(sensor, member) for sensor in group.brain.sensors],
            member.reward,
            is_done,
            is_interrupted,
            () if is_done else member.forbidden,
            1 + member.number // group.size if group.size else 0,
            member.group_reward,
        )
        member.reward = member.group_reward = 0.0
        return info

    def _seen(self, sensor: Sensor, member: Member) -> NDArray[np.float32]:
        shape = sensor.shape_seen
        if len(shape) == 3:
            texture = self._rng.random(shape, np.float32) / 8
            return np.full(shape, member.wanted * 7 / 8, np.float32) + texture
        seen = self._rng.uniform(-1, 1, shape).astype(np.float32)
        seen[..., 0] = member.wanted
        if len(shape) == 2:
            seen[self._rng.integers(shape[0] + 1) :] = 0  # as many as there are, the rest empty
        return seen


def _wanted(wanted: float, size: int) -> int:
    return min(int(wanted * size), size - 1)
