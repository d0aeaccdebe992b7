"""Which rows are read together, and after which others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.sequences import link_episodes, split_segments
from rl_tui.engine.specs import Ending

LENGTHS = st.lists(st.integers(1, 20), min_size=1, max_size=12)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(lengths=LENGTHS, longest=st.integers(1, 9))
def test_segments_are_cut_from_their_first_row_on(lengths: list[int], longest: int) -> None:
    found, segments = split_segments(np.array(lengths), longest)
    expected = []
    for segment, length in enumerate(lengths):
        whole, rest = divmod(length, longest)
        expected += [(longest, segment)] * whole + [(rest, segment)] * (rest > 0)
    assert list(zip(found.tolist(), segments.tolist(), strict=True)) == expected


def test_rows_of_sequences_follow_each_other_in_the_order_requested() -> None:
    assert sequence_rows(np.array([5, 0, 3]), np.array([2, 3, 1])).tolist() == [5, 6, 0, 1, 2, 3]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(lengths=LENGTHS, longest=st.integers(1, 9), seed=st.integers(0, 99), agents=st.integers(1, 4))
def test_an_episode_continues_within_a_segment_and_after_a_cut(
    lengths: list[int], longest: int, seed: int, agents: int
) -> None:
    random = np.random.default_rng(seed)
    ids = random.integers(0, agents, len(lengths)) * 7
    endings = random.integers(0, 3, len(lengths)).astype(np.int8)
    _, segments = split_segments(np.array(lengths), longest)
    cut: set[int] = set()  # agents whose last segment was cut
    begins = np.ones(len(lengths), np.bool_)
    for segment, agent in enumerate(ids.tolist()):
        begins[segment] = agent not in cut
        (cut.add if endings[segment] == Ending.CUT else cut.discard)(agent)
    found = link_episodes(ids, begins, segments)
    last: dict[int, int] = {}  # the sequence that an agent's next one continues
    depth: list[int] = []
    for sequence, segment in enumerate(segments.tolist()):
        agent = int(ids[segment])
        before = last.get(agent, -1)
        assert found.before[sequence] == before
        depth.append(0 if before < 0 else depth[before] + 1)
        is_last = sequence + 1 == len(segments) or segments[sequence + 1] != segment
        last[agent] = -1 if is_last and endings[segment] != Ending.CUT else sequence
    assert [sorted(level.tolist()) for level in found.levels] == [
        [sequence for sequence, deep in enumerate(depth) if deep == level] for level in range(max(depth) + 1)
    ]
