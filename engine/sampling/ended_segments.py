"""Segments that have ended, until they leave with a block of experience.  Shapes: P segments, Q mates of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import SEGMENT_FIELDS, join_field, join_mates, join_observations, joined, take_mates
from rl_tui.engine.specs import CUT, TRUNCATED, Int64, Observations

NO_VERSION = 2**62  # newer than any
_ABSENT = dict.fromkeys(field.name for field in SEGMENT_FIELDS)


@dataclass(slots=True)
class Segments:
    """Segments that ended in the same step: their slots, how many rows these had when each began, the versions of the
    policy of then, what was observed next, and the fields of SEGMENT_FIELDS by name, without those that are absent.

    mates: what their mates observed next, None where there are no groups. group_returns: f64, what the groups earned in
    episodes of theirs that have ended.
    """

    slots: Int64
    begun: Int64
    versions: Int64
    next_observations: Observations
    fields: dict[str, NDArray[Any]]
    mates: Observations | None = None
    group_returns: NDArray[np.float64] | None = None

    def take(self, which: Int64) -> Segments:
        """Some of them."""
        return Segments(
            slots=self.slots[which],
            begun=self.begun[which],
            versions=self.versions[which],
            next_observations=tuple([column.take(which, 0) for column in self.next_observations]),
            fields={name: values[which] for name, values in self.fields.items()},
            mates=take_mates(self.mates, self.fields.get("next_mate_counts"), which),
        )


class EndedSegments:
    """Owned by the collector's thread.

    num_rows, num_learned: of all rows, and of those that are learned from. oldest_version: which chose any of these.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.parts: list[Segments] = []
        self.num_rows = self.num_learned = 0
        self.oldest_version = NO_VERSION

    def add(self, segments: Segments) -> None:
        """More have ended."""
        versions = segments.versions
        lengths, is_learned = segments.fields["lengths"], segments.fields.get("is_learned")
        num_rows = num_learned = int(lengths.sum())
        if is_learned is not None:
            num_learned, versions = int(lengths[is_learned].sum()), versions[is_learned]
        self.num_rows += num_rows
        self.num_learned += num_learned
        self.oldest_version = min(self.oldest_version, int(versions.min(initial=NO_VERSION)))
        self.parts.append(segments)

    def truncate(self, slots: Int64) -> Int64:
        """The episodes of these slots ended where their last segments were cut; returns the slots that have none."""
        for segments in reversed(self.parts):
            is_last = np.isin(segments.slots, slots)
            endings = segments.fields["endings"]
            endings[is_last & (endings == CUT)] = TRUNCATED
            slots = np.setdiff1d(slots, segments.slots)
        return slots

    def split(self, limit: Int64) -> EndedSegments:
        """Keep those that began before their slot had so many rows, i64[L]; returns the others."""
        parts, later = self.parts, EndedSegments()
        self._clear()
        for part in parts:
            is_earlier = part.begun < limit[part.slots]
            for segments, which in ((self, is_earlier), (later, ~is_earlier)):
                if which.any():
                    segments.add(part if which.all() else part.take(which.nonzero()[0]))
        return later

    def pop(self) -> dict[str, Any]:
        """What `Trajectories` has of all of them, slot after slot, each slot's in time order."""
        parts, version = self.parts, self.oldest_version
        order = np.concatenate([part.slots for part in parts]).argsort(kind="stable")  # they were added in time order
        fields = _join(parts)
        following = join_observations(part.next_observations for part in parts)
        mates = join_mates([part.mates for part in parts])
        self._clear()
        return {
            "policy_version": version,
            "next_observations": tuple([column[order] for column in following]),
            "next_mate_observations": take_mates(mates, fields["next_mate_counts"], order),
            **{name: None if values is None else values[order] for name, values in fields.items()},
        }


def _join(parts: Sequence[Segments]) -> dict[str, NDArray[Any] | None]:
    """SEGMENT_FIELDS of all parts, by name."""
    names = parts[0].fields.keys()
    if all(part.fields.keys() == names for part in parts):
        return _ABSENT | {name: joined([part.fields[name] for part in parts]) for name in names}
    counts = [len(part.slots) for part in parts]
    return {of.name: join_field(of, [part.fields.get(of.name) for part in parts], counts) for of in SEGMENT_FIELDS}
