"""What the agents of a group see and do at one moment, together: joint observations and actions.

Shapes: N rows, J joint steps, M agents of them all; B of the rows, S joint steps of these with at most A agents, Q
agents of these that are none of the B rows, C columns of an action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.feature_layout import Array, Features
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import TERMINATED, Bool, Float32, Int64, Trajectories


@dataclass(frozen=True, slots=True)
class JointSteps:
    """The joint step in which each row acted: with it are the rows of its group that acted in the same step, and those
    that had acted before and were not yet observed again. A row without a group is alone.

    agents: i64[M], rows; those of joint step j are `agents[starts[j] : starts[j + 1]]`. starts: i64[J + 1].
    of_rows: i64[N], the joint step of each row. ends: i64[N], the one after the last in which the row still is. places:
    i64[N], where the row is among the agents of its joint step.
    """

    agents: Int64
    starts: Int64
    of_rows: Int64
    ends: Int64
    places: Int64

    @property
    def sizes(self) -> Int64:
        """i64[J]: how many agents are in each."""
        return np.diff(self.starts)

    def mates(self, row: int) -> Int64:
        """The rows of the other agents of one row's joint step."""
        step = self.of_rows[row]
        agents = self.agents[self.starts[step] : self.starts[step + 1]]
        mates: Int64 = agents[agents != row]
        return mates


@dataclass(frozen=True, slots=True)
class JointInputs:
    """The joint steps of B rows, as a network needs them beside what these rows see.

    others: what agents see that are none of these rows, each [Q, ...]. agents: i64[S, A], those of each joint step: a
    number below B is a row, from B on one of the others, -1 no agent. of_rows: i64[B], the joint step of each row.
    places: i64[B], its place there. actions: f32[B + Q, C], of rows and others; None where they have not acted yet.
    """

    others: Features
    agents: Int64
    of_rows: Int64
    places: Int64
    actions: Array | None


class JointSource(Protocol):
    """Where the joint steps of some rows are found."""

    @property
    def order(self) -> Int64:
        """i64[N]: all rows, those of a joint step side by side."""

    def select(self, rows: Int64) -> JointInputs:
        """Of these rows, i64[B]."""


@dataclass(frozen=True, slots=True)
class JointExperience:
    """Joint steps of N rows, with what the networks need of them: features, each [N, ...], and actions f32[N, C]."""

    steps: JointSteps
    features: Features
    actions: Array

    @property
    def order(self) -> Int64:
        """i64[N]: all rows, those of a joint step side by side."""
        return self.steps.of_rows.argsort(kind="stable")

    def select(self, rows: Int64) -> JointInputs:
        """Of these rows, i64[B]."""
        steps, all_agents = self.steps, self.steps.agents
        own, of_rows = np.unique(steps.of_rows[rows], return_inverse=True)
        starts, sizes = steps.starts[own], steps.starts[own + 1] - steps.starts[own]
        agents = all_agents[sequence_rows(starts, sizes)]
        numbers = np.full(len(steps.of_rows), -1)
        numbers[rows] = np.arange(len(rows))
        others = np.unique(agents[numbers[agents] < 0])
        numbers[others] = len(rows) + np.arange(len(others))
        select = RowSelection(others)
        return JointInputs(
            others=tuple([select(column) for column in self.features]),
            agents=_padded(numbers[agents], sizes),
            of_rows=of_rows,
            places=steps.places[rows],
            actions=RowSelection(np.concatenate([rows, others]))(self.actions),
        )


@dataclass(frozen=True, slots=True)
class NextJointSteps:
    """The joint steps that follow P segments. features: of the mates, each [Q, ...], those of one segment after those
    of the other. counts: i64[P], how many each has. is_present: bool[P], whether the agent itself is still there."""

    features: Features
    counts: Int64
    is_present: Bool

    @property
    def order(self) -> Int64:
        """i64[P]: as they are."""
        return np.arange(len(self.counts))

    def select(self, rows: Int64) -> JointInputs:
        """After these segments, i64[B]."""
        counts, own = self.counts[rows], self.is_present[rows].astype(np.int64)
        mates = sequence_rows((np.cumsum(self.counts) - self.counts)[rows], counts)
        select, sizes = RowSelection(mates), counts + own
        agents, firsts = np.empty(sizes.sum(), np.int64), np.cumsum(sizes) - sizes
        agents[sequence_rows(firsts + own, counts)] = len(rows) + np.arange(len(mates))
        agents[firsts[own > 0]] = np.flatnonzero(own)
        return JointInputs(
            others=tuple([select(column) for column in self.features]),
            agents=_padded(agents, sizes),
            of_rows=np.arange(len(rows)),
            places=np.zeros(len(rows), np.int64),
            actions=None,
        )


def find_joint_steps(experience: Trajectories) -> JointSteps:
    """The joint steps of all rows.

    Not found are mates whose segment is not in this experience: it was unfinished when the block was made and comes
    with a later one, or its agent left without an end. Where a trainer has `cuts_at_update`, no segment of an update is
    unfinished. Experience of several blocks must be of one collector, which counts the steps.
    """
    count, groups, steps = experience.num_rows, experience.group_ids, experience.step_numbers
    if groups is None or steps is None:
        groups = steps = np.full(count, -1)
    is_grouped = (groups >= 0) & (steps >= 0)
    rows, alone = np.flatnonzero(is_grouped), np.flatnonzero(~is_grouped)
    first, end = _moments(groups[rows], steps[rows], _observed_again(experience, steps)[rows])
    num_moments = int(end.max(initial=0))
    num_each = end - first
    moments = np.concatenate([sequence_rows(first, num_each), num_moments + np.arange(len(alone))])
    order = moments.argsort(kind="stable")
    agents = np.concatenate([rows.repeat(num_each), alone])[order]
    sizes = np.bincount(moments, minlength=num_moments + len(alone))
    starts = np.concatenate([np.zeros(1, np.int64), sizes.cumsum()])
    of_rows = np.empty(count, np.int64)
    of_rows[rows], of_rows[alone] = first, num_moments + np.arange(len(alone))
    of_agents = moments[order]
    is_own = of_rows[agents] == of_agents
    places = np.empty(count, np.int64)
    places[agents[is_own]] = (np.arange(len(agents)) - starts[of_agents])[is_own]
    ends = of_rows + 1
    ends[rows] = end
    return JointSteps(agents, starts, of_rows, ends, places)


def rewards_of_mates(experience: Trajectories, joint: JointSteps) -> Float32:
    """f32[N]: what the mates of each row's agent earned themselves for what they did from that row until its next."""
    earned = np.bincount(joint.of_rows, experience.rewards, len(joint.starts) - 1)
    until = np.concatenate([np.zeros(1), earned.cumsum()])
    rewards: Float32 = (until[joint.ends] - until[joint.of_rows] - experience.rewards).astype(np.float32)
    return rewards


def goes_on_without(experience: Trajectories) -> Bool:
    """bool[P]: the episode of the agent is over, and its group goes on."""
    counts, group_ended = experience.next_mate_counts, experience.group_ended
    if counts is None or group_ended is None:
        return np.zeros(experience.num_segments, np.bool_)
    over: Bool = (experience.endings == TERMINATED) & ~group_ended & (counts > 0)
    return over


def _observed_again(experience: Trajectories, steps: Int64) -> Int64:
    """i64[N]: the step in which the agent of each row is next observed; the one after the row's if that is unknown."""
    last = np.cumsum(experience.lengths) - 1
    following = np.append(steps[1:], -1)
    following[last] = -1 if experience.next_step_numbers is None else experience.next_step_numbers
    return np.where(following > steps, following, steps + 1)


def _moments(groups: Int64, steps: Int64, until: Int64) -> tuple[Int64, Int64]:
    """Of rows that act in these steps and are observed again in others: the first of the moments during which each
    acts, and the one after the last. A moment is a step in which someone of the group acts."""
    if not len(groups):
        return groups, groups
    span = until.max() - steps.min() + 1
    keys = groups * span + (steps - steps.min())
    moments, first = np.unique(keys, return_inverse=True)
    return first, moments.searchsorted(keys + (until - steps))


def _padded(agents: Int64, sizes: Int64) -> Int64:
    """i64[S, A] of the agents of all joint steps, one after the other."""
    table = np.full((len(sizes), sizes.max(initial=1)), -1)
    table[np.arange(table.shape[1]) < sizes[:, None]] = agents
    return table
