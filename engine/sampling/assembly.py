"""From agent steps to packed segments of experience, with a fixed number of numpy calls per step.

Shapes: N agents of one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import (
    SEGMENT_FIELDS,
    Column,
    chosen_values,
    columns_of,
    join_field,
    join_observations,
    used_columns,
    values_of,
)
from rl_tui.engine.sampling.finished_episodes import Episodes, FinishedEpisodes
from rl_tui.engine.sampling.slots import ACTIVE, NO_AGENT, VACANT, Slots
from rl_tui.engine.specs import (
    CUT,
    LEARNING,
    TERMINATED,
    TRUNCATED,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Float32,
    GatheredStatistic,
    Int64,
    Measured,
    Observations,
    Statistic,
    TerminalSteps,
    Trajectories,
    add_up,
)
from rl_tui.engine.statistics import gather

MIN_ROWS = 16  # of whole segments that a slot has room for: short segments need not leave one by one
_NO_VERSION = 2**62  # newer than any
_ONE = np.array(1)  # an array, since numpy converts an int at every use
_TRAJECTORIES = columns_of(Trajectories)
_STEP_NUMBERS = next(column for column in _TRAJECTORIES if column.name == "step_numbers")
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(slots=True)
class _Segments:
    """Segments that ended in the same step: their slots, what was observed next, and the fields of SEGMENT_FIELDS by
    name, without those that are absent."""

    slots: Int64
    next_observations: Observations
    fields: dict[str, NDArray[Any]]


class Assembly:
    """The experience of one behavior's agents on its way to a `Trajectories` block. Owned by the collector's thread.

    Call `end` for terminal steps, then `observe` for decisions, then `act` with what the policy chose for them. When
    an agent's episode is over, the next newcomer takes its slot: environments may number every episode from scratch.
    A silent agent loses its slot when there is no other room, or after a very long time.
    """

    def __init__(self, spec: BehaviorSpec, time_horizon: int, memory_size: int = 0):
        """memory_size: M, how much the policy remembers of each agent."""
        self._spec = spec
        self._has_memory = memory_size > 0
        self._horizon = time_horizon
        self._cut_at = np.array(time_horizon)  # rows, at which a segment ends
        self._capacity = time_horizon + max(time_horizon, MIN_ROWS)
        self._slots = Slots(self._capacity)
        self._last_ids: Int64 | None = None  # the last array of ids, and their slots
        self._last_slots: Int64 = np.empty(0, np.int64)
        self._memories: Float32 = np.zeros((1, memory_size), np.float32)  # of slot, zero where an episode begins
        carried = used_columns(columns_of(DecisionSteps), spec)
        self._observed = [column for column in carried if column.stage == "observed"]  # all of them optional
        self._credited = [column for column in carried if column.stage == "credited"]
        self._chosen = [column for column in used_columns(_TRAJECTORIES, spec) if column.stage == "chosen"]
        self._following = [column for column in self._observed if column.has_next]
        self._observed_values, self._credited_values = values_of(self._observed), values_of(self._credited)
        self._chosen_values = chosen_values(self._chosen)
        self._columns = self._new_columns()
        self._has_optional = False  # columns that may be absent
        self._num_steps = 0  # calls of `act`
        self.num_sampled = 0  # actions chosen in all of them
        self.num_learned = 0  # those that the policy that learns chose
        self._bind()
        self._last_rows: Int64 = np.zeros(1, np.int64)  # of slot, where its last action is
        self._returns: NDArray[np.float64] = np.zeros(1)  # of slot, as the next two
        self._episode_begun: Int64 = np.zeros(1, np.int64)  # rows of the slot that had been written then
        self._begin_versions: Int64 = np.zeros(1, np.int64)  # of the policy that began its segment
        self._policies: Int64 = np.zeros(1, np.int64)  # of slot, which policy chose its last action
        self._policy_begun: Int64 = np.zeros(
            1, np.int64
        )  # rows of the slot that had been written when that one took over
        self._has_policies = False  # besides the one that learns
        self._segments: list[_Segments] = []
        self._episodes = FinishedEpisodes()
        self._measured: dict[str, tuple[float, int]] = {}
        self._statistics: dict[str, GatheredStatistic] = {}
        self._version = 0
        self._oldest_version = _NO_VERSION
        self.num_complete = 0  # rows of whole segments that `drain` would give
        self.num_complete_learned = 0  # those that are learned from

    @property
    def is_full(self) -> bool:
        """Some slot has no room for another segment: `drain` before the next step."""
        return bool((self._slots.begun - self._slots.emitted >= self._capacity - self._horizon).any())

    @property
    def num_held(self) -> int:
        """Rows that were written and not yet drained, and are learned from."""
        if not self._has_policies:
            return int((self._slots.written - self._slots.emitted).sum())
        unfinished = (self._slots.written - self._slots.begun)[self._policies == LEARNING]
        return self.num_complete_learned + int(unfinished.sum())

    @property
    def num_departed(self) -> int:
        """How many agents have left without the end of an episode, some of which may have come back."""
        return self._slots.num_departed

    @property
    def agents(self) -> Int64:
        """Those in an episode."""
        ids: Int64 = self._slots.agent_ids[self._slots.state != VACANT]
        return ids

    def measure(self, measured: Measured) -> None:
        """Add what the environment reports besides rewards to the next block."""
        add_up(self._measured, measured)

    def gather(self, statistics: Sequence[Statistic]) -> None:
        """Add what the environment reports under names of its own to the next block."""
        gather(self._statistics, statistics)

    def end(self, terminals: TerminalSteps) -> None:
        """Close the episodes of these agents. An agent that never acted in its episode leaves nothing."""
        slots = self._slots_of(terminals.agent_ids)
        self._slots.state[slots] = VACANT
        acted = (self._slots.written[slots] > self._slots.begun[slots]).nonzero()[0]
        slots = slots[acted]
        self._credit(slots, terminals, acted)
        self._end_episodes(slots)
        endings = np.where(terminals.truncated[acted], TRUNCATED, TERMINATED)
        self._complete(slots, endings, terminals.observations, acted)
        self._clear(slots)

    def _end_episodes(self, slots: Int64) -> None:
        """Keep the returns and lengths of the episodes in these slots."""
        lengths = self._slots.written[slots] - self._episode_begun[slots]
        episodes = Episodes(self._returns[slots], lengths, np.full(len(slots), self.num_learned))
        self._episodes.add(episodes, self._policies[slots] == LEARNING if self._has_policies else None)

    def abandon(self, agent_ids: Int64) -> None:
        """The episodes of these agents are over, and what followed their last actions is not known.

        Those actions are dropped. The steps before them are truncated where they were chosen, and count in no return.
        """
        slots, owned = self._slots.find(agent_ids), self._slots
        slots = slots[slots != NO_AGENT]
        owned.retract(slots[owned.written[slots] > owned.begun[slots]])
        has_rows = owned.written[slots] > owned.begun[slots]
        left = slots[has_rows]
        if len(left):
            dropped = owned.rows(left, owned.written[left])
            observed = tuple(self._observation_arrays)
            endings = np.full(len(left), TRUNCATED)
            self._complete(left, endings, observed, dropped)
        self._truncate(slots[~has_rows])
        owned.state[slots] = VACANT
        self._begin_versions[slots] = self._version
        self._clear(slots)

    def _truncate(self, slots: Int64) -> None:
        """The episodes of these slots ended where their last segments were cut."""
        for segments in reversed(self._segments):
            is_last = np.isin(segments.slots, slots)
            endings = segments.fields["endings"]
            endings[is_last & (endings == CUT)] = TRUNCATED
            slots = np.setdiff1d(slots, segments.slots)
        self._slots.depart(slots)

    def observe(self, decisions: DecisionSteps) -> None:
        """Credit these agents' last actions with what followed; cut the segments that are long enough."""
        slots, owned = self._slots_of(decisions.agent_ids), self._slots
        owned.state[slots] = ACTIVE
        lengths = owned.written[slots] - owned.begun[slots]
        acted = lengths.nonzero()[0]
        if len(acted) == len(slots):
            self._credit(slots, decisions)
        elif len(acted):
            self._credit(slots[acted], decisions, acted)
        full = (lengths >= self._cut_at).nonzero()[0]
        if len(full):
            cut = np.full(len(full), CUT)
            self._complete(slots[full], cut, decisions.observations, full, decisions)

    def cut(self, at_once: bool) -> None:
        """From now on, cut segments where their agents are next observed, or again at the horizon."""
        self._cut_at = np.array(1 if at_once else self._horizon)

    def set_version(self, version: int) -> None:
        """Actions come from this version of the policy from now on."""
        self._version = version
        self._begin_versions[self._slots.written == self._slots.begun] = version

    def memories(self, decisions: DecisionSteps) -> Float32 | None:
        """f32[N, M], a copy: what the policy remembers of these agents. None for a policy without memory."""
        return self._memories[self._slots_of(decisions.agent_ids)] if self._has_memory else None

    def act(self, decisions: DecisionSteps, choice: Choice) -> None:
        """Write the rows of these decisions: what was observed, remembered and chosen."""
        slots = self._slots_of(decisions.agent_ids)
        if self._has_policies or choice.policies is not None:
            self._follow_policies(slots, decisions, choice.policies)
        else:
            self.num_learned += len(slots)
        written = self._slots.written[slots]
        rows = self._slots.rows(slots, written)
        for target, observation in zip(self._observation_arrays, decisions.observations, strict=True):
            target[rows] = observation
        for target, chosen in zip(self._chosen_arrays, self._chosen_values(choice), strict=True):
            target[rows] = chosen
        observed = self._observed_values(decisions)
        if self._has_optional or _has_any(observed):
            self._write(self._observed, rows, observed)
            if "group_ids" in self._columns:
                self._column(_STEP_NUMBERS)[rows] = self._num_steps
        self._num_steps += 1
        self.num_sampled += len(slots)
        if self._has_memory:
            assert choice.memories is not None
            self._columns["memories"][rows] = self._memories[slots]
            self._memories[slots] = choice.memories
        self._slots.written[slots] = written + _ONE
        self._last_rows[slots] = rows

    def _follow_policies(self, slots: Int64, decisions: DecisionSteps, policies: Int64 | None) -> None:
        """Cut the segments of agents for which another policy acts from now on. policies: None: the one that learns."""
        self._has_policies = True
        acting = np.zeros_like(slots) if policies is None else policies
        self.num_learned += int(np.count_nonzero(acting == LEARNING))
        changed = (self._policies[slots] != acting).nonzero()[0]
        taken = slots[changed]
        unfinished = changed[self._slots.written[taken] > self._slots.begun[taken]]
        if len(unfinished):
            cut = np.full(len(unfinished), CUT)
            self._complete(slots[unfinished], cut, decisions.observations, unfinished, decisions)
        self._policies[taken] = acting[changed]
        self._policy_begun[taken] = self._slots.written[taken]

    def mark_silent(self) -> None:
        """Agents that chose no action since the last call may have left: until they appear again, newcomers may
        take their slots where there is no other room; after ten calls they have left. Call it between `act` and the
        next step."""
        self._clear(self._slots.mark_silent())

    def drain_new_episodes(self) -> Episodes:
        """Of the policy that learns, those that ended since the last call, for display; `drain` has them as well."""
        return self._episodes.pop_new()

    def drain(self) -> Trajectories:
        """Every whole segment, packed by agent and in time order; at least one row must be complete."""
        segments = self._segments
        slots = np.concatenate([s.slots for s in segments])
        order = slots.argsort(kind="stable")  # segments were added in time order
        rows = self._slots.whole_rows()
        columns = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        values: dict[str, Any] = {column.name: columns.get(column.name) for column in _TRAJECTORIES}
        block = Trajectories(
            observations=tuple([columns[f"observation.{i}"] for i in range(len(self._spec.observations))]),
            next_observations=tuple([o[order] for o in join_observations(s.next_observations for s in segments)]),
            policy_version=self._oldest_version,
            measured=self._measured,
            statistics=self._statistics,
            departed=self._pop_departed(),
            **values,
            **self._fields(order),
            **self._episodes.pop(),
        )
        self._slots.emitted[:] = self._slots.begun
        self._segments, self._measured, self._statistics = [], {}, {}
        self.num_complete = self.num_complete_learned = 0
        self._oldest_version = _NO_VERSION
        return block

    def _pop_departed(self) -> Int64:
        departed = self._slots.pop_departed()
        if not self._has_policies:
            return departed
        handed_over = (self._policies != LEARNING) & (self._policy_begun >= self._slots.emitted)
        handed_over &= self._slots.state != VACANT
        return np.concatenate([departed, self._slots.agent_ids[handed_over]])

    def _fields(self, order: Int64) -> dict[str, Any]:
        """SEGMENT_FIELDS of all whole segments, in that order."""
        counts = [len(segments.slots) for segments in self._segments]
        values: dict[str, Any] = {}
        for field in SEGMENT_FIELDS:
            joined = join_field(field, [segments.fields.get(field.name) for segments in self._segments], counts)
            values[field.name] = None if joined is None else joined[order]
        return values

    def _credit(self, slots: Int64, steps: DecisionSteps | TerminalSteps, acted: Int64 | None = None) -> None:
        """Credit the last actions in these slots with what followed; acted: rows of `steps`, None for all."""
        values, rewards = self._credited_values(steps), steps.total_rewards
        if acted is not None:
            values = tuple([None if value is None else value[acted] for value in values])
            rewards = rewards[acted]
        self._write(self._credited, self._last_rows[slots], values)
        self._returns[slots] += rewards

    def _write(self, columns: list[Column], rows: Int64, values: tuple[NDArray[Any] | None, ...]) -> None:
        """Write columns, where the absent ones have been made; an optional one is made when it first appears."""
        for column, value in zip(columns, values, strict=True):
            if value is not None:
                self._column(column)[rows] = value
            elif self._has_optional and column.name in self._columns:
                self._columns[column.name][rows] = column.fill

    def _complete(
        self,
        slots: Int64,
        endings: NDArray[np.int8],
        observations: Observations,
        rows: Int64,
        decisions: DecisionSteps | None = None,
    ) -> None:
        """End the segments of these slots; what was observed next is in these rows.

        decisions: also what is kept of the columns of then; None where they are not known.
        """
        begun = self._slots.begun[slots]
        lengths = self._slots.written[slots] - begun
        self._slots.begun[slots] = self._slots.written[slots]
        fields: dict[str, NDArray[Any]] = {
            "lengths": lengths,
            "begins": begun == self._episode_begun[slots],
            "endings": endings,
            "agent_ids": self._slots.agent_ids[slots],
        }
        versions, num_learned = self._begin_versions[slots], int(lengths.sum())
        self.num_complete += num_learned
        if self._has_policies:
            fields["begins"] |= begun == self._policy_begun[slots]
            fields["is_learned"] = is_learned = self._policies[slots] == LEARNING
            versions, num_learned = versions[is_learned], int(lengths[is_learned].sum())
        self.num_complete_learned += num_learned
        self._oldest_version = min(self._oldest_version, int(versions.min(initial=_NO_VERSION)))
        self._begin_versions[slots] = self._version
        for column in self._following if decisions is not None else ():
            if (value := getattr(decisions, column.name)) is not None:
                fields[f"next_{column.name}"] = value.take(rows, axis=0)
        copied = tuple([o.take(rows, axis=0) for o in observations])  # the environment may reuse its arrays
        self._segments.append(_Segments(slots, copied, fields))

    def _slots_of(self, agent_ids: Int64) -> Int64:
        """The slots of these agents; an environment whose population is unchanged returns the same array of ids."""
        if agent_ids is self._last_ids:
            return self._last_slots
        slots = self._slots.find(agent_ids)
        is_new = slots == NO_AGENT
        if is_new.any():
            self._slots.state[slots[~is_new]] = ACTIVE  # these must not go to newcomers
            slots[is_new] = self._admit(agent_ids[is_new])
        self._last_ids, self._last_slots = agent_ids, slots
        return slots

    def _admit(self, newcomers: Int64) -> Int64:
        slots, released = self._slots.admit(newcomers)
        if (added := len(self._slots) - len(self._returns)) > 0:
            self._columns = {name: _longer(column, added * self._capacity) for name, column in self._columns.items()}
            self._bind()
            self._memories, self._returns = _longer(self._memories, added), _longer(self._returns, added)
            self._last_rows = _longer(self._last_rows, added)
            self._episode_begun = _longer(self._episode_begun, added)
            self._begin_versions = _longer(self._begin_versions, added)
            self._policies, self._policy_begun = _longer(self._policies, added), _longer(self._policy_begun, added)
        self._clear(released)
        self._begin_versions[released] = self._begin_versions[slots] = self._version
        return slots

    def _clear(self, slots: Int64) -> None:
        """The next episodes of these slots begin at zero."""
        self._returns[slots] = 0
        self._episode_begun[slots] = self._slots.written[slots]
        self._memories[slots] = 0

    def _new_columns(self) -> dict[str, NDArray[Any]]:
        """Room for one slot's rows, without optional columns other than memories."""
        memory_size = self._memories.shape[1]
        shapes: dict[str, tuple[tuple[int, ...], str]] = {
            f"observation.{i}": (o.shape, o.dtype) for i, o in enumerate(self._spec.observations)
        }
        for column in _TRAJECTORIES:
            if not column.is_optional or (column.name == "memories" and memory_size):
                shapes[column.name] = column.shape(self._spec, memory_size), column.dtype
        return {name: np.zeros((self._capacity, *shape), dtype) for name, (shape, dtype) in shapes.items()}

    def _column(self, column: Column) -> NDArray[Any]:
        """The array of a column; an optional one is made when it first appears, as it was absent before."""
        if column.name not in self._columns:
            self._has_optional = True
            shape = len(self._columns["rewards"]), *column.shape(self._spec, 0)
            self._columns[column.name] = np.full(shape, column.fill, column.dtype)
        return self._columns[column.name]

    def _bind(self) -> None:
        """Find the arrays that every step writes."""
        self._observation_arrays = [self._columns[f"observation.{i}"] for i in range(len(self._spec.observations))]
        self._chosen_arrays = [self._columns[column.name] for column in self._chosen]


def _has_any(values: tuple[NDArray[Any] | None, ...]) -> bool:
    for value in values:  # noqa: SIM110  # a generator takes three times as long
        if value is not None:
            return True
    return False


def _longer(column: NDArray[Scalar], added: int) -> NDArray[Scalar]:
    """The column and so many rows of zeros."""
    longer: NDArray[Scalar] = np.append(column, np.zeros((added, *column.shape[1:]), column.dtype), axis=0)
    return longer
