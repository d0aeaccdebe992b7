"""Observations, actions and trajectories, as numpy columns.

Shapes: N agents or rows, P segments, A continuous action dimensions, K discrete branches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Float32: TypeAlias = NDArray[np.float32]
Int64: TypeAlias = NDArray[np.int64]
Bool: TypeAlias = NDArray[np.bool_]
Observation: TypeAlias = NDArray[Any]  # float32 or uint8, as in its spec
Observations: TypeAlias = tuple[Observation, ...]
Measured: TypeAlias = Mapping[str, tuple[float, int]]  # statistic -> sum and number of finite values
Aggregation: TypeAlias = Literal["average", "last", "sum", "histogram"]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LEARNING = 0  # in `Choice.policies`: the policy that learns
HISTOGRAM_VALUES = 100_000  # the newest of each statistic between two summaries


def add_up(totals: dict[str, tuple[float, int]], more: Measured) -> None:
    """Add the sums and counts of `more` to `totals`."""
    for name, (total, count) in more.items():
        sum_before, count_before = totals.get(name, (0.0, 0))
        totals[name] = sum_before + total, count_before + count


class Ending(IntEnum):
    """How a segment of a trajectory ends."""

    CUT = 0  # time_horizon reached, the episode continues
    TERMINATED = 1  # the episode is over: the value of the next state is zero
    TRUNCATED = 2  # the episode was stopped from outside: the value of the next state is bootstrapped


# numpy takes three times as long to look at a member of an enum, and loses a Ctrl-C that comes meanwhile
CUT, TERMINATED, TRUNCATED = np.array(list(Ending), np.int8)


@dataclass(frozen=True, slots=True)
class ObservationSpec:
    """One observation of an agent. Its shape, without the agent axis, says what it is:

    (D,) a vector; (N, F) a set of at most N entities of F features, where a row of zeros is no entity; (H, W, C) an
    image, uint8 from 0 to 255 or float32 used unscaled. Vectors and sets are float32. is_goal: it is the goal to reach
    (a goal signal in ML-Agents) instead of a sensor's reading.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Literal["float32", "uint8"] = "float32"
    is_goal: bool = False

    def to_json(self) -> Json:
        """What `from_json` reads."""
        return [self.name, list(self.shape), self.dtype, self.is_goal]

    @staticmethod
    def from_json(written: Any) -> ObservationSpec:
        """The spec that was written."""
        name, shape, *rest = written
        return ObservationSpec(name, tuple(shape), *rest)

    @property
    def kind(self) -> Literal["vector", "entities", "image"]:
        """Which kind its shape stands for."""
        kinds: tuple[Literal["vector", "entities", "image"], ...] = ("vector", "entities", "image")
        return kinds[len(self.shape) - 1]


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """A continuous dimensions and one discrete branch per entry of `branches` (its number of choices)."""

    continuous: int = 0
    branches: tuple[int, ...] = ()

    @property
    def num_columns(self) -> int:
        """Columns of a log-probability matrix: one per continuous dimension and per branch."""
        return self.continuous + len(self.branches)

    @property
    def mask_size(self) -> int:
        """Columns of an action mask: one per choice of every branch."""
        return sum(self.branches)


@dataclass(frozen=True, slots=True)
class UnityPackage:
    """The package com.unity.ml-agents of a player. image_order: of the floats of its images, as they were read."""

    version: str
    image_order: Literal["CHW", "HWC"]


@dataclass(frozen=True, slots=True)
class BehaviorSpec:
    """The observations and actions of every agent of a behavior.

    spaces: the Gymnasium spaces that they were made from, see space_json.py; unity_package: of the player. None for
    other environments. reward_threshold: the mean return with which its environment counts as solved, where Gymnasium's
    registry has one. choice_names: what the choices of the only branch mean, where that is known; else empty. teams:
    the numbers of those that have appeared, in order; empty where its agents are of none.
    """

    name: str
    observations: tuple[ObservationSpec, ...]
    actions: ActionSpec
    spaces: Json = field(default=None, compare=False)
    unity_package: UnityPackage | None = field(default=None, compare=False)
    reward_threshold: float | None = field(default=None, compare=False)
    choice_names: tuple[str, ...] = field(default=(), compare=False)
    teams: tuple[int, ...] = field(default=(), compare=False)


@dataclass(slots=True)
class Actions:
    """Actions of N agents: continuous f32[N, A] in [-1, 1], discrete i64[N, K]."""

    continuous: Float32
    discrete: Int64


@dataclass(slots=True)
class DecisionSteps:
    """Agents waiting for an action.

    agent_ids: i64[N], unique. observations: one [N, ...] per spec, of its dtype. rewards: f32[N], earned since each
    agent's last action (zero for an agent that has just appeared). action_mask: bool[N, sum of branches], True =
    allowed, or None when everything is allowed. An environment may return the same `agent_ids` object on every step
    while its population is unchanged; readers may use that to skip work. Readers must not write into any of these
    arrays and must copy what they keep: an environment may reuse them at its next step.

    group_ids: i64[N], the group of agents that each cooperates with, unique within the environment, -1 without one.
    group_rewards: f32[N], what each agent's group earned since the agent's last action. team_ids: i64[N], the side that
    each plays for. None: no agent has a group, no group earned anything, all are of team 0.
    """

    agent_ids: Int64
    observations: Observations
    rewards: Float32
    action_mask: Bool | None = None
    group_ids: Int64 | None = None
    group_rewards: Float32 | None = None
    team_ids: Int64 | None = None

    @property
    def total_rewards(self) -> Float32:
        """f32[N], each agent's own and its group's."""
        return _total(self.rewards, self.group_rewards)


@dataclass(slots=True)
class TerminalSteps:
    """Agents whose episode has just ended. observations are the true final ones; truncated: bool[N].

    group_ids, group_rewards, team_ids: as in `DecisionSteps`.
    """

    agent_ids: Int64
    observations: Observations
    rewards: Float32
    truncated: Bool
    group_ids: Int64 | None = None
    group_rewards: Float32 | None = None
    team_ids: Int64 | None = None

    @property
    def total_rewards(self) -> Float32:
        """f32[N], each agent's own and its group's."""
        return _total(self.rewards, self.group_rewards)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A value that an environment reports under a name of its own.

    method: what a summary shows of the values since the one before: their average, the last one (of the first copy of
    the environment), their sum, or their average and distribution.
    """

    name: str
    value: float
    method: Aggregation = "average"


@dataclass(slots=True)
class GatheredStatistic:
    """The values of one statistic over several steps: their sum, their number, the last one, and for a histogram the
    values themselves. num_not_finite: others, which are left out of all of these."""

    method: Aggregation
    total: float = 0.0
    count: int = 0
    last: float = 0.0
    values: deque[float] = field(default_factory=partial(deque[float], maxlen=HISTOGRAM_VALUES))
    num_not_finite: int = 0

    @property
    def is_mean(self) -> bool:
        """Whether `value` is the mean of `count` values."""
        return self.method in ("average", "histogram")

    @property
    def value(self) -> float:
        """What a summary shows; count must not be 0."""
        if self.is_mean:
            return self.total / self.count
        return self.last if self.method == "last" else self.total


@dataclass(slots=True)
class Steps:
    """The result of one environment step for one behavior. Terminal steps precede decisions in time: an agent may be in
    both, then its next episode has already begun.

    measured: statistics other than rewards, those that `env_settings.metrics` names. statistics: what the environment
    reports under names of its own; where the teams of a behavior have the same tuple, it counts once.
    """

    decisions: DecisionSteps
    terminals: TerminalSteps | None = None
    measured: Measured | None = None
    statistics: tuple[Statistic, ...] | None = None


class GameSide(NamedTuple):
    """What a team was in one game: an agent or a group. policy: the number of the one that acted for it, LEARNING or an
    opponent's. reward: the last one; total: of the episode; of a group the mean of its agents that were there at the
    end. is_interrupted: the episode was truncated. is_whole: the policy acted for it from the beginning to the end."""

    behavior: str
    team: int
    policy: int
    reward: float
    total: float
    is_interrupted: bool = False
    is_whole: bool = True


class Game(NamedTuple):
    """One that the policy that learns has played to its end. opponents: one of each other team."""

    own: GameSide
    opponents: tuple[GameSide, ...]


@dataclass(frozen=True, slots=True)
class Trajectories:
    """A block of whole segments of trajectories, packed: N rows in P segments. Read-only from now on.

    A row is a step of an agent. Rows of one segment are adjacent and in time order; segments of one agent are adjacent
    and in time order. A = continuous dimensions, K = discrete branches, E = episodes, M = memory, D = agents,
    G = groups.

    observations: each [N, ...], before the action
    continuous_actions: f32[N, A], as `Choice.continuous` had them
    discrete_actions: i64[N, K], the number of each branch's choice
    log_probs: f32[N, A + K], of the policy that acted
    action_mask: bool[N, sum of branches], True = allowed; None: everything is
    rewards: f32[N], which followed the action
    lengths: i64[P], rows of each segment, all >= 1, summing to N
    begins: bool[P], the first segment of its episode, or of another policy in it: not the continuation of the last one
    endings: i8[P] of Ending: 0 cut, the episode continues; 1 terminated; 2 truncated
    next_observations: each [P, ...], after the last row of each segment
    agent_ids: i64[P]
    episode_returns: f32[E], undiscounted, own and group rewards, of episodes that ended since the last block
    episode_lengths: i64[E], number of actions taken
    policy_version: the oldest version of the policy that learns which chose any of these actions
    memories: f32[N, M], the policy's memory before it acted; None without memory
    next_action_mask: bool[P, sum of branches], after cut segments, True after others; None: everything is allowed
    measured: what the environment measures besides rewards, since the last block: sums and counts by name
    statistics: what the environment reported under names of its own since the last block, by name
    departed: i64[D], agents that left in an episode and are not back, or now act by a policy that does not learn
    group_rewards: f32[N], of the agent's group; as the next two, None until the first one appears
    group_ids: i64[N], -1 without a group
    team_ids: i64[N], the side that the agent plays for
    step_numbers: i64[N] with group_ids: agents of a group with the same number acted in the same step; -1 before these
    group_ended: bool[P], the episode has ended for all agents of the group, not only for this one; None, as the next
        three, until the first group appears
    next_mate_counts: i64[P], how many mates each agent has after the segment: agents of its group that go on, or those
        that ended in the same step where the group has ended
    next_mate_observations: each [sum of these, ...], the newest of each mate then, segment after segment
    next_step_numbers: i64[P], the step before which each agent was observed after the segment; -1 before groups appear
    is_learned: bool[P], the policy that learns chose all actions of the segment; None: of every segment
    unlearned_returns: as episode_returns, of episodes whose last action another policy chose than the one that learns
    unlearned_lengths: as episode_lengths, of the same
    group_returns: f32[G], undiscounted, of groups that ended since the last block, whose actions the policy
        that learns chose: the mean of what the group earned while each of these was there, as in ML-Agents
    group_sizes: i64[G], how many agents ended in each of these groups
    early_ends: i64[G], how many of them while the group went on
    games: that the policy that learns has played to their ends since the last block, in self-play
    """

    observations: Observations
    continuous_actions: Float32
    discrete_actions: Int64
    log_probs: Float32
    action_mask: Bool | None
    rewards: Float32
    lengths: Int64
    begins: Bool
    endings: NDArray[np.int8]
    next_observations: Observations
    agent_ids: Int64
    episode_returns: Float32
    episode_lengths: Int64
    policy_version: int
    memories: Float32 | None = None
    next_action_mask: Bool | None = None
    measured: Measured = field(default_factory=dict)
    statistics: Mapping[str, GatheredStatistic] = field(default_factory=dict)
    departed: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    group_rewards: Float32 | None = None
    group_ids: Int64 | None = None
    team_ids: Int64 | None = None
    step_numbers: Int64 | None = None
    group_ended: Bool | None = None
    next_mate_counts: Int64 | None = None
    next_mate_observations: Observations | None = None
    next_step_numbers: Int64 | None = None
    is_learned: Bool | None = None
    unlearned_returns: Float32 = field(default_factory=lambda: np.empty(0, np.float32))
    unlearned_lengths: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    group_returns: Float32 = field(default_factory=lambda: np.empty(0, np.float32))
    group_sizes: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    early_ends: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    games: tuple[Game, ...] = ()

    @staticmethod
    def from_episodes(episodes: Iterable[Any], policy: EpisodeReader) -> Trajectories:
        """A block with a segment for each recorded episode, whatever has recorded it.

        episodes: mappings, or objects like Minari's EpisodeData, with these keys or attributes, T steps each; the names
        of d3rlpy, imitation and Tianshou are known, too.

        observations: T + 1, nested as their space is, the last one after the last action; or T of them, and
            next_observations
        actions: T, as the environment's `step` took them
        rewards: [T]
        terminated, truncated: how it ended, each a bool or bool[T]; the episode goes on where both are False or missing
        log_probs: [T, A + K], of the policy that acted, `EvaluatedAction.log_probs`; [T] where there is one column.
            Where they are missing, they are those of `policy`, as if it had acted
        raw_actions: [T, A], `EvaluatedAction.raw_action`; else they are computed from the actions
        action_masks: T or T + 1, where the environment has them

        policy: of a Learner, or loaded with the kind "raw". Raises ConfigError with a line for each wrong episode.
        """
        return policy.read_episodes(episodes)

    @property
    def num_rows(self) -> int:
        """N."""
        return len(self.rewards)

    @property
    def num_segments(self) -> int:
        """P."""
        return len(self.lengths)

    @property
    def num_learned(self) -> int:
        """Rows that are learned from."""
        return self.num_rows if self.is_learned is None else int(self.lengths[self.is_learned].sum())

    @property
    def total_rewards(self) -> Float32:
        """f32[N], each agent's own and its group's."""
        return _total(self.rewards, self.group_rewards)


class EpisodeReader(Protocol):
    """What knows a behavior's spaces and the log-probabilities of its actions."""

    def read_episodes(self, episodes: Iterable[Any]) -> Trajectories:
        """See Trajectories.from_episodes."""


def _total(rewards: Float32, group_rewards: Float32 | None) -> Float32:
    return rewards if group_rewards is None else rewards + group_rewards


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters of a policy: float32 arrays by name, shared and read-only."""

    version: int
    arrays: dict[str, Float32]


@dataclass(frozen=True, slots=True)
class State:
    """All that a component needs to continue as if it had never stopped.

    tensors: arrays of any numpy dtype by dotted name. values: plain JSON.
    """

    tensors: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    values: dict[str, Json] = field(default_factory=dict)

    @staticmethod
    def merge(parts: dict[str, State]) -> State:
        """One state whose tensors are named `part.name` and whose values are nested under each part's name."""
        tensors = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.tensors.items()}
        return State(tensors, {part: state.values for part, state in parts.items()})

    def part(self, name: str) -> State:
        """The state that was merged under `name`; empty when there was none."""
        prefix = f"{name}."
        tensors = {key[len(prefix) :]: array for key, array in self.tensors.items() if key.startswith(prefix)}
        values = self.values.get(name, {})
        return State(tensors, values if isinstance(values, dict) else {})

    def number(self, name: str, absent: float | None = None) -> float:
        """A number of `values`; `absent` where there is none, as in what an earlier version saved.

        Raises KeyError without either.
        """
        found = self.values[name] if absent is None else self.values.get(name, absent)
        return float(cast(float, found))


@dataclass(slots=True)
class Choice:
    """Actions of a policy and their log-probabilities.

    actions: for the environment. continuous: f32[N, A] as training learns from it: PPO before any bounds, SAC squashed.
    log_probs: f32[N, A + K]. memories: f32[N, M], each agent's memory from now on, None without memory.
    policies: i64[N], where a policy is made of several: which one acted; 0 is the one that learns. None: that one did.
    """

    actions: Actions
    continuous: Float32
    log_probs: Float32
    memories: Float32 | None = None
    policies: Int64 | None = None


class Policy(Protocol):
    """Acts for any number of agents. Owned by one thread. The caller keeps the agents' memories."""

    version: int  # of the weights it acts with
    memory_size: int  # M; 0 without memory

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every waiting agent. memories: f32[N, M], zero where an episode begins; None: all zero."""

    def load(self, weights: Weights) -> None:
        """Act with these weights from now on."""

    def state(self) -> State:
        """The state of its random generator."""

    def load_state(self, state: State) -> None:
        """Restore the random generator."""


@dataclass(frozen=True, slots=True)
class PolicyRecipe:
    """How another process makes a policy. maker: module:function, which takes the arguments by name."""

    maker: str
    arguments: dict[str, Json]

    def to_json(self) -> Json:
        """What crosses to another process."""
        return {"maker": self.maker, "arguments": self.arguments}


@runtime_checkable
class CopyPolicy(Policy, Protocol):
    """A policy that can act in worker processes."""

    def recipe(self, copies: range, num_instances: int, num_restarts: int = 0) -> PolicyRecipe | None:
        """Of a policy for the agents of these copies of the run: what it draws for one depends on its copy and on the
        number of the worker's restarts alone. None where there is none.

        num_instances: that hold the copies, each as many. Generators begin with the states that `load_state` had last.
        """
