"""Every field of experience, described once: checks, worker processes, assembly, rollouts and replay loop over it.

A column has a value for each row. It is an entry of COLUMNS and an attribute of that name in each class that carries
it: `DecisionSteps` and `TerminalSteps` from the environment, `Choice` from the policy, `Trajectories`, and
`Transitions`, which replay draws. A field of segments has a value for each segment. It is an entry of SEGMENT_FIELDS,
an attribute of `Trajectories`, and what the assembly knows of a segment that ends. Observations, which every behavior
has a number of its own of, are described by its spec.

Shapes: N rows, P segments, M memory columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from operator import attrgetter
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import (
    BehaviorSpec,
    DecisionSteps,
    GatheredStatistic,
    Int64,
    Observations,
    TerminalSteps,
    Trajectories,
    add_up,
)
from rl_tui.engine.statistics import merge

Number = TypeVar("Number", bound=np.generic)
Shape = Callable[[BehaviorSpec, int], tuple[int, ...]]


def scalar(_spec: BehaviorSpec, _memory_size: int) -> tuple[int, ...]:
    """The shape of a single number."""
    return ()


@dataclass(frozen=True, slots=True)
class Field:
    """One array [N, ...] or [P, ...] of experience.

    shape: of a row or segment, from the behavior and M. fill: what an absent field means everywhere; None: it is never
    absent.
    """

    name: str
    dtype: str = "float32"
    shape: Shape = scalar
    fill: float | None = None

    @property
    def is_optional(self) -> bool:
        """Whether it may be absent."""
        return self.fill is not None


@dataclass(frozen=True, slots=True)
class Column(Field):
    """One array [N, ...] of experience, with a value for each row.

    stage: observed before the action, chosen with it by the policy, or credited to it afterwards. An optional column
    takes neither memory nor time until it first appears. holds_ids: ids of an instance, not negative, which a pool
    numbers; -1 is none. has_next: also kept after the last row of each segment, as `next_NAME`. in_replay: also kept by
    the replay buffer. choice: where `Choice` has it, if not under its name.
    """

    _: KW_ONLY
    stage: Literal["observed", "chosen", "credited"]
    holds_ids: bool = False
    has_next: bool = False
    in_replay: bool = False
    choice: str = ""


def _mask(spec: BehaviorSpec, _: int) -> tuple[int, ...]:
    return (spec.actions.mask_size,)


def _memory(_: BehaviorSpec, memory_size: int) -> tuple[int, ...]:
    return (memory_size,)


def _continuous(spec: BehaviorSpec, _: int) -> tuple[int, ...]:
    return (spec.actions.continuous,)


def _branches(spec: BehaviorSpec, _: int) -> tuple[int, ...]:
    return (len(spec.actions.branches),)


def _actions(spec: BehaviorSpec, _: int) -> tuple[int, ...]:
    return (spec.actions.num_columns,)


COLUMNS = (
    Column("action_mask", "bool", _mask, True, stage="observed", has_next=True, in_replay=True),
    Column("group_ids", "int64", fill=-1, stage="observed", holds_ids=True),
    Column("team_ids", "int64", fill=0, stage="observed", in_replay=True),
    Column("step_numbers", "int64", fill=-1, stage="observed"),
    Column("memories", shape=_memory, fill=0, stage="observed"),
    Column("continuous_actions", shape=_continuous, stage="chosen", in_replay=True, choice="continuous"),
    Column("discrete_actions", "int64", _branches, stage="chosen", in_replay=True, choice="actions.discrete"),
    Column("log_probs", shape=_actions, stage="chosen"),
    Column("rewards", stage="credited"),
    Column("group_rewards", fill=0, stage="credited"),
)
SEGMENT_FIELDS = (
    Field("lengths", "int64"),
    Field("begins", "bool"),
    Field("endings", "int8"),
    Field("agent_ids", "int64"),
    Field("is_learned", "bool", fill=True),
    Field("group_ended", "bool", fill=False),
    Field("next_mate_counts", "int64", fill=0),
    Field("next_step_numbers", "int64", fill=-1),
    *(Field(f"next_{column.name}", column.dtype, column.shape, column.fill) for column in COLUMNS if column.has_next),
)


def columns_of(carrier: type) -> tuple[Column, ...]:
    """The columns that a class carries."""
    names = {field.name for field in fields(carrier)}
    return tuple(column for column in COLUMNS if column.name in names)


_DECISIONS, _TERMINALS = columns_of(DecisionSteps), columns_of(TerminalSteps)
_TRAJECTORIES = columns_of(Trajectories)
_OF_EPISODES = (
    *("episode_returns", "episode_lengths", "unlearned_returns", "unlearned_lengths"),
    *("group_returns", "group_sizes", "early_ends"),
)


def used_columns(columns: Iterable[Column], spec: BehaviorSpec) -> tuple[Column, ...]:
    """Those with anything in their rows: there is no mask without branches."""
    return tuple(column for column in columns if 0 not in column.shape(spec, 1))


def values_of(columns: Sequence[Field]) -> Callable[[Any], tuple[NDArray[Any] | None, ...]]:
    """A function that returns what a carrier has in these columns."""
    names = [column.name for column in columns]
    return _getter(names)


def chosen_values(columns: Sequence[Column]) -> Callable[[Any], tuple[NDArray[Any], ...]]:
    """A function that returns what a `Choice` has in these columns."""
    return _getter([column.choice or column.name for column in columns])


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns these attributes; `attrgetter` returns a tuple of several only."""
    if len(names) > 1:
        return attrgetter(*names)
    getters = [attrgetter(name) for name in names]
    return lambda carrier: tuple([get(carrier) for get in getters])


def join_field(field: Field, parts: Sequence[NDArray[Any] | None], counts: Sequence[int]) -> NDArray[Any] | None:
    """Parts of so many rows each as one array; an absent part is filled, and None is returned if all are absent."""
    present = next((part for part in parts if part is not None), None)
    if present is None:
        return None
    shape = present.shape[1:]
    filled = [
        np.full((count, *shape), field.fill, field.dtype) if part is None else part
        for part, count in zip(parts, counts, strict=True)
    ]
    return joined(filled)


def joined(parts: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """The array itself if there is one: experience is read-only, and images are large."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def join_fields(which: Sequence[Field], carriers: Sequence[object], counts: Sequence[int]) -> dict[str, Any]:
    """These fields of several carriers, joined, by name."""
    values = zip(*map(values_of(which), carriers), strict=True)
    return {field.name: join_field(field, parts, counts) for field, parts in zip(which, values, strict=True)}


def join_observations(parts: Iterable[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """The observations of several carriers, joined."""
    return tuple([joined(observation) for observation in zip(*parts, strict=True)])


def take_decisions(decisions: DecisionSteps, rows: Int64) -> DecisionSteps:
    """Those of the agents in these rows."""
    return DecisionSteps(
        decisions.agent_ids[rows],
        tuple(column.take(rows, 0) for column in decisions.observations),
        **{column.name: _take(getattr(decisions, column.name), rows) for column in _DECISIONS},
    )


def join_mates(parts: Sequence[Observations | None]) -> Observations | None:
    """The mates' observations of several carriers, joined; None where none has groups."""
    present = [part for part in parts if part is not None]
    return join_observations(present) if present else None


def take_mates(observations: Observations | None, counts: Int64 | None, segments: Int64) -> Observations | None:
    """The mates' observations of these segments, in that order, of all segments with so many mates, i64[P]."""
    if observations is None or counts is None:
        return None
    rows = sequence_rows((np.cumsum(counts) - counts)[segments], counts[segments])
    return tuple([column.take(rows, 0) for column in observations])


def join_decisions(agent_ids: Int64, parts: Sequence[DecisionSteps]) -> DecisionSteps:
    """The decisions of several populations as one; agent_ids: of all of them."""
    counts = [len(part.agent_ids) for part in parts]
    observations = join_observations([part.observations for part in parts])
    return DecisionSteps(agent_ids, observations, **join_fields(_DECISIONS, parts, counts))


def join_terminals(parts: Sequence[TerminalSteps]) -> TerminalSteps:
    """The terminal steps of several populations as one."""
    counts = [len(part.agent_ids) for part in parts]
    return TerminalSteps(
        agent_ids=joined([part.agent_ids for part in parts]),
        observations=join_observations([part.observations for part in parts]),
        truncated=joined([part.truncated for part in parts]),
        **join_fields(_TERMINALS, parts, counts),
    )


def join_trajectories(blocks: Sequence[Trajectories]) -> Trajectories:
    """Blocks joined in order: the segments of one agent are then in time order, but not adjacent."""
    if len(blocks) == 1:
        return blocks[0]
    rows, segments = [block.num_rows for block in blocks], [block.num_segments for block in blocks]
    measured: dict[str, tuple[float, int]] = {}
    statistics: dict[str, GatheredStatistic] = {}
    for block in blocks:
        add_up(measured, block.measured)
        merge(statistics, block.statistics)
    return Trajectories(
        observations=join_observations(block.observations for block in blocks),
        next_observations=join_observations(block.next_observations for block in blocks),
        next_mate_observations=join_mates([block.next_mate_observations for block in blocks]),
        **{name: joined([getattr(block, name) for block in blocks]) for name in _OF_EPISODES},
        policy_version=min(block.policy_version for block in blocks),
        measured=measured,
        statistics=statistics,
        departed=_join_departed(blocks),
        games=tuple(game for block in blocks for game in block.games),
        **join_fields(_TRAJECTORIES, blocks, rows),
        **join_fields(SEGMENT_FIELDS, blocks, segments),
    )


def _join_departed(blocks: Sequence[Trajectories]) -> Int64:
    """Agents that left during an episode and were not back in a later block."""
    parts: list[Int64] = []
    for index, block in enumerate(blocks):
        if len(block.departed):
            back = np.concatenate([np.empty(0, np.int64), *(later.agent_ids for later in blocks[index + 1 :])])
            parts.append(block.departed[~np.isin(block.departed, back)])
    return np.concatenate([np.empty(0, np.int64), *parts])


def sequence_rows(starts: Int64, lengths: Int64) -> Int64:
    """The rows of all sequences in order: `lengths` rows from each of `starts` on."""
    ends = np.cumsum(lengths)
    rows: Int64 = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
    return rows


def take_segments(block: Trajectories, segments: Int64) -> Trajectories:
    """These segments of a block, in that order; what is of episodes or of the whole block stays."""
    rows = sequence_rows((np.cumsum(block.lengths) - block.lengths)[segments], block.lengths[segments])
    taken = {column.name: _take(getattr(block, column.name), rows) for column in _TRAJECTORIES}
    taken |= {field.name: _take(getattr(block, field.name), segments) for field in SEGMENT_FIELDS}
    return replace(
        block,
        observations=tuple(column.take(rows, 0) for column in block.observations),
        next_observations=tuple(column.take(segments, 0) for column in block.next_observations),
        next_mate_observations=take_mates(block.next_mate_observations, block.next_mate_counts, segments),
        **taken,
    )


def join_by_agent(blocks: Sequence[Trajectories]) -> Trajectories:
    """Blocks joined into one: the segments of one agent are adjacent, in time order."""
    if len(blocks) == 1:
        return blocks[0]
    block = join_trajectories(blocks)
    return take_segments(block, block.agent_ids.argsort(kind="stable"))


def learned_part(block: Trajectories) -> Trajectories | None:
    """What is learned from; None where that is no row. What is of episodes or of the whole block stays."""
    if block.is_learned is None or block.is_learned.all():
        return block
    segments = np.flatnonzero(block.is_learned)
    return take_segments(block, segments) if len(segments) else None


def _take(values: NDArray[Any] | None, where: Int64) -> Any:
    return None if values is None else values.take(where, 0)
