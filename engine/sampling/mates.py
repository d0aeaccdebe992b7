"""Which agents are the mates of those whose segments end.  Shapes: S segments, C candidates, Q mates of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.specs import Bool, Int64, Observations


@dataclass(frozen=True, slots=True)
class Candidates:
    """Agents that may be mates: their slots and groups, i64[C], and the rows i64[C] of `observations` that are theirs.

    ended: their group has ended with them.
    """

    slots: Int64
    groups: Int64
    observations: Observations
    rows: Int64
    ended: bool = False


def find_mates(
    slots: Int64, groups: Int64, group_ended: Bool, candidates: Sequence[Candidates]
) -> tuple[Int64, Observations]:
    """The mates of agents whose segments ended: how many each has, i64[S], and their observations, each [Q, ...].

    They are the other candidates of the same group: those that have ended with it where it has, and else the others.
    slots, groups: i64[S], -1 without a group. group_ended: bool[S].
    """
    keys = np.concatenate([_keys(each.groups, np.full(len(each.groups), each.ended)) for each in candidates])
    owners = np.concatenate([each.slots for each in candidates])
    order = keys.argsort(kind="stable")
    wanted = _keys(groups, group_ended)
    begins = keys[order].searchsorted(wanted, "left")
    found = np.where(groups < 0, 0, keys[order].searchsorted(wanted, "right") - begins)
    places = order[sequence_rows(begins, found)]
    segments = np.arange(len(slots)).repeat(found)
    is_other = owners[places] != slots[segments]
    counts = np.bincount(segments[is_other], minlength=len(slots))
    return counts, _observed(candidates, places[is_other])


def _keys(groups: Int64, ended: Bool) -> Int64:
    """A number for each group, and another one for what has ended with it."""
    keys: Int64 = groups * 2 + ended
    return keys


def _observed(candidates: Sequence[Candidates], places: Int64) -> Observations:
    """What these of all candidates in order observe, each [Q, ...]."""
    first = candidates[0].observations
    observed = tuple(np.empty((len(places), *column.shape[1:]), column.dtype) for column in first)
    begin = 0
    for each in candidates:
        here = np.flatnonzero((places >= begin) & (places < begin + len(each.rows)))
        rows = each.rows[places[here] - begin]
        for target, column in zip(observed, each.observations, strict=True):
            target[here] = column.take(rows, 0)
        begin += len(each.rows)
    return observed
