"""Steps from records: what an agent saw and did, what followed, and where its episodes are.

A record holds the observation, the action that was taken then, and the reward since the record before. Step i is the
observation and the action of record i with the reward, the observation and the end of record i + 1, where that is of
the same agent.

The record at the end of an episode has the final observation, repeats the last action, and is no step. It was not so
before version 1.0 of Unity's package: an agent was reset before its end was recorded, and that record is the first step
of the next episode.

Shapes: N records, S steps, E episodes.
"""

from __future__ import annotations

import numpy as np

from rl_tui.engine.demonstrations.record_columns import RecordColumns
from rl_tui.engine.demonstrations.step_columns import StepColumns
from rl_tui.engine.specs import CUT, TERMINATED, TRUNCATED, Bool, Int64


def pair(columns: RecordColumns, first_records: Int64, has_resets: Bool) -> tuple[Int64, StepColumns]:
    """The record of each step, i64[S], whose successor is what followed, and the steps; at least one record.

    first_records: of each file; nothing is paired across files. has_resets: bool[N], of records at ends: they are the
    first steps of the next episodes.
    """
    is_followed = np.zeros(columns.num_records, np.bool_)
    is_followed[:-1] = columns.ids[1:] == columns.ids[:-1]
    is_followed[first_records[first_records > 0] - 1] = False
    records = np.flatnonzero(is_followed & (has_resets | ~columns.is_done)).astype(np.int64)
    after = records + 1
    ends = np.where(columns.is_interrupted[after], TRUNCATED, TERMINATED)
    endings = np.where(columns.is_done[after], ends, CUT)
    continues = (records[1:] == after[:-1]) & (endings[:-1] == CUT)
    edges = np.flatnonzero(np.concatenate([[True], ~continues, [True]])) if len(records) else np.empty(0, np.int64)
    episodes = np.stack([edges[:-1], edges[1:]], axis=1).astype(np.int64)
    steps = StepColumns(
        episodes,
        columns.rewards[after],
        endings,
        columns.continuous[records],
        columns.discrete[records],
        columns.ids[records],
        None if columns.forbidden is None else columns.forbidden[records],
    )
    return records, steps
