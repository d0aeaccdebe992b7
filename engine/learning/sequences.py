"""Packed segments split into the sequences that a memory reads, and the episodes that continue in them.

Shapes: N rows in P segments, S sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rl_tui.engine.specs import Bool, Int64


def split_segments(lengths: Int64, longest: int) -> tuple[Int64, Int64]:
    """The lengths of sequences and the segment of each, i64[S] both, for segments of these lengths i64[P].

    Every segment is split from its first row on: only its last sequence may have fewer than `longest` rows.
    """
    counts = -(-lengths // longest)
    segments = np.repeat(np.arange(len(lengths)), counts)
    cut_lengths = np.full(len(segments), longest)
    cut_lengths[np.cumsum(counts) - 1] = lengths - (counts - 1) * longest
    return cut_lengths, segments


@dataclass(frozen=True, slots=True)
class EpisodeLinks:
    """Which sequence continues which, in the episodes of several agents.

    before: i64[S], the sequence that each continues; -1 where an episode begins, or began in an earlier block.
    levels: the sequences that can be read together, i64 each: all of a level continue sequences of the level before.
    """

    before: Int64
    levels: tuple[Int64, ...]


def link_episodes(agent_ids: Int64, begins: Bool, segments: Int64) -> EpisodeLinks:
    """The links of sequences in these segments i64[S], in time order for each agent.

    agent_ids, begins: [P]. Episodes continue within a segment, and in one that does not begin another episode.
    """
    order = np.argsort(agent_ids[segments], kind="stable")
    segment = segments[order]
    continues = np.zeros(len(segments), np.bool_)
    continues[1:] = (segment[1:] == segment[:-1]) | (
        (agent_ids[segment[1:]] == agent_ids[segment[:-1]]) & ~begins[segment[1:]]
    )
    before = np.full(len(segments), -1)
    before[order[1:]] = np.where(continues[1:], order[:-1], -1)
    place = np.arange(len(segments))
    level = place - np.maximum.accumulate(np.where(continues, 0, place))
    by_level = order[np.argsort(level, kind="stable")]
    return EpisodeLinks(before, tuple(np.split(by_level, np.cumsum(np.bincount(level))[:-1])))
