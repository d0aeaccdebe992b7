"""Every column of experience, described once: checks, worker processes, assembly, rollouts and replay loop over it.

A column is an entry of COLUMNS and an attribute of that name in each class that carries it: `DecisionSteps` and
`TerminalSteps` from the environment, `Choice` from the policy, `Trajectories`, and `Transitions`, which replay draws.
Observations, which every behavior has a number of its own of, are described by its spec.

Shapes: N rows, M memory columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import (
    BehaviorSpec,
    DecisionSteps,
    GatheredStatistic,
    Int64,
    TerminalSteps,
    Trajectories,
    add_up,
)
from rl_tui.engine.statistics import merge

Number = TypeVar("Number", bound=np.generic)
RowShape = Callable[[BehaviorSpec, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Column:
    """One array [N, ...] of experience.

    stage: observed before the action, chosen with it by the policy, or credited to it afterwards. shape: of a row, from
    the behavior and M. fill: what an absent column means in every row; None: it is never absent. An optional column
    takes neither memory nor time until it first appears. holds_ids: ids of an instance, not negative, which a pool
    numbers; -1 is none. has_next: also kept after the last row of each segment, as `next_NAME`. in_replay: also kept by
    the replay buffer. choice: where `Choice` has it, if not under its name.
    """

    name: str
    stage: Literal["observed", "chosen", "credited"]
    dtype: str = "float32"
    shape: RowShape = lambda *_: ()
    fill: float | None = None
    holds_ids: bool = False
    has_next: bool = False
    in_replay: bool = False
    choice: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether it may be absent."""
        return self.fill is not None


COLUMNS = (
    Column(
        "action_mask",
        "observed",
        "bool",
        lambda spec, _: (spec.actions.mask_size,),
        True,
        has_next=True,
        in_replay=True,
    ),
    Column("group_ids", "observed", "int64", fill=-1, holds_ids=True),
    Column("team_ids", "observed", "int64", fill=0, in_replay=True),
    Column("step_numbers", "observed", "int64", fill=-1),
    Column("memories", "observed", shape=lambda _, memory_size: (memory_size,), fill=0),
    Column(
        "continuous_actions",
        "chosen",
        shape=lambda spec, _: (spec.actions.continuous,),
        in_replay=True,
        choice="continuous",
    ),
    Column(
        "discrete_actions",
        "chosen",
        "int64",
        lambda spec, _: (len(spec.actions.branches),),
        in_replay=True,
        choice="actions.discrete",
    ),
    Column("log_probs", "chosen", shape=lambda spec, _: (spec.actions.num_columns,)),
    Column("rewards", "credited"),
    Column("group_rewards", "credited", fill=0),
)


def columns_of(carrier: type) -> tuple[Column, ...]:
    """The columns that a class carries."""
    names = {field.name for field in fields(carrier)}
    return tuple(column for column in COLUMNS if column.name in names)


_DECISIONS, _TERMINALS = columns_of(DecisionSteps), columns_of(TerminalSteps)
_TRAJECTORIES = columns_of(Trajectories)


def used_columns(columns: Iterable[Column], spec: BehaviorSpec) -> tuple[Column, ...]:
    """Those with anything in their rows: there is no mask without branches."""
    return tuple(column for column in columns if 0 not in column.shape(spec, 1))


def values_of(columns: Sequence[Column]) -> Callable[[Any], tuple[NDArray[Any] | None, ...]]:
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


def join_column(column: Column, parts: Sequence[NDArray[Any] | None], counts: Sequence[int]) -> NDArray[Any] | None:
    """Parts of so many rows each as one array; an absent part is filled, and None is returned if all are absent."""
    present = next((part for part in parts if part is not None), None)
    if present is None:
        return None
    shape = present.shape[1:]
    filled = [
        np.full((count, *shape), column.fill, column.dtype) if part is None else part
        for part, count in zip(parts, counts, strict=True)
    ]
    return joined(filled)


def joined(parts: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """The array itself if there is one: experience is read-only, and images are large."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def join_columns(columns: Sequence[Column], carriers: Sequence[object], counts: Sequence[int]) -> dict[str, Any]:
    """These columns of several carriers, joined, by name."""
    values = zip(*map(values_of(columns), carriers), strict=True)
    return {column.name: join_column(column, parts, counts) for column, parts in zip(columns, values, strict=True)}


def join_observations(parts: Iterable[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """The observations of several carriers, joined."""
    return tuple([joined(observation) for observation in zip(*parts, strict=True)])


def join_decisions(agent_ids: Int64, parts: Sequence[DecisionSteps]) -> DecisionSteps:
    """The decisions of several populations as one; agent_ids: of all of them."""
    counts = [len(part.agent_ids) for part in parts]
    observations = join_observations([part.observations for part in parts])
    return DecisionSteps(agent_ids, observations, **join_columns(_DECISIONS, parts, counts))


def join_terminals(parts: Sequence[TerminalSteps]) -> TerminalSteps:
    """The terminal steps of several populations as one."""
    counts = [len(part.agent_ids) for part in parts]
    return TerminalSteps(
        agent_ids=joined([part.agent_ids for part in parts]),
        observations=join_observations([part.observations for part in parts]),
        truncated=joined([part.truncated for part in parts]),
        **join_columns(_TERMINALS, parts, counts),
    )


def join_trajectories(blocks: Sequence[Trajectories]) -> Trajectories:
    """Blocks joined in order: the segments of one agent are then in time order, but not adjacent."""
    if len(blocks) == 1:
        return blocks[0]
    rows, segments = [block.num_rows for block in blocks], [block.num_segments for block in blocks]
    following: dict[str, Any] = {
        f"next_{column.name}": join_column(
            column, [getattr(block, f"next_{column.name}") for block in blocks], segments
        )
        for column in COLUMNS
        if column.has_next
    }
    measured: dict[str, tuple[float, int]] = {}
    statistics: dict[str, GatheredStatistic] = {}
    for block in blocks:
        add_up(measured, block.measured)
        merge(statistics, block.statistics)
    return Trajectories(
        observations=join_observations(block.observations for block in blocks),
        next_observations=join_observations(block.next_observations for block in blocks),
        lengths=joined([block.lengths for block in blocks]),
        begins=joined([block.begins for block in blocks]),
        endings=joined([block.endings for block in blocks]),
        agent_ids=joined([block.agent_ids for block in blocks]),
        episode_returns=joined([block.episode_returns for block in blocks]),
        episode_lengths=joined([block.episode_lengths for block in blocks]),
        policy_version=min(block.policy_version for block in blocks),
        measured=measured,
        statistics=statistics,
        departed=_join_departed(blocks),
        **join_columns(_TRAJECTORIES, blocks, rows),
        **following,
    )


def _join_departed(blocks: Sequence[Trajectories]) -> Int64:
    """Agents that left during an episode and were not back in a later block."""
    parts: list[Int64] = []
    for index, block in enumerate(blocks):
        if len(block.departed):
            back = np.concatenate([np.empty(0, np.int64), *(later.agent_ids for later in blocks[index + 1 :])])
            parts.append(block.departed[~np.isin(block.departed, back)])
    return np.concatenate([np.empty(0, np.int64), *parts])
