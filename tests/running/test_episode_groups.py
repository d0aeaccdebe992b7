"""Groups of episodes depend on the episodes alone, and so does every curve that is made of them."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.running import episode_groups, progress
from rl_tui.engine.running.episode_groups import LONGEST_GROUP, EpisodeGroups
from rl_tui.engine.session import history as history_module
from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.codec import decode, encode
from rl_tui.engine.session.messages import Envelope, EpisodeGroup, EpisodesFinished
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.event_log import read_events
from rl_tui.tui.charts.figure import sample
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.table import rows_of
from rl_tui.tui.drawing.glyphs import UNICODE
from tests.running.runs import behavior, configuration, run_to_end

BATCHES_SECONDS = (0.1, 0.0, 1e9)  # as usual, after every step, and all at the end
EPISODES = st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 3000)), min_size=1, max_size=300)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Sixteen points in a curve, so that a few hundred episodes are grouped and merged many times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_module, "HISTORY_POINTS", 16)
        patch.setattr(episode_groups, "HISTORY_POINTS", 16)
        yield


def grouped(episodes: Sequence[tuple[float, int]], cuts: Sequence[int]) -> list[tuple[EpisodeGroup, ...]]:
    """Of episodes as (return, steps since the one before), reported before each of the cuts and at the end."""
    groups, batches = EpisodeGroups(), []
    ends = np.cumsum([gap for _, gap in episodes])
    borders = [0, *sorted({cut for cut in cuts if cut < len(episodes)}), len(episodes)]
    for begin, end in pairwise(borders):
        part = slice(begin, end)
        groups.add(np.array([value for value, _ in episodes[part]]), np.full(end - begin, 7), ends[part])
        now = int(ends[end - 1])
        batches.append(groups.take_all(now) if end == len(episodes) else groups.take(now))
    return [batch for batch in batches if batch]


def folded(batches: Sequence[tuple[EpisodeGroup, ...]]) -> BehaviorView:
    view = RunView()
    for number, batch in enumerate(batches, start=1):
        event = EpisodesFinished("B", batch[-1].step, sum(group.count for group in batch), 0.0, 0.0, 0.0, 0.0, batch)
        view.apply(decode(encode(Envelope(number, 1.0, event))))
    return view.behavior("B")


def shown(of: BehaviorView) -> list[object]:
    """What does not depend on the clock, to the last digit."""
    curve, counts = of.returns, of.episode_counts
    columns = (curve.steps, curve.low, curve.high, curve.mean, curve.counts, counts.steps, counts.high)
    return [*([*column] for column in columns), of.num_episodes, of.mean_return, of.mean_length, of.recent.count]


@settings(max_examples=150, deadline=None)
@given(EPISODES, st.lists(st.integers(1, 300), max_size=40))
def test_curves_do_not_depend_on_what_was_reported_together(episodes: list[tuple[float, int]], cuts: list[int]) -> None:
    batches, at_once = grouped(episodes, cuts), grouped(episodes, [])
    assert [group for batch in batches for group in batch] == [group for batch in at_once for group in batch]
    assert shown(folded(batches)) == shown(folded(at_once))


@settings(max_examples=100, deadline=None)
@given(EPISODES)
def test_every_episode_is_in_one_group_and_none_spans_many_steps(episodes: list[tuple[float, int]]) -> None:
    groups = [group for batch in grouped(episodes, range(1, 300)) for group in batch]
    ends, at = np.cumsum([gap for _, gap in episodes]), 0
    for group in groups:
        values = [value for value, _ in episodes[at : at + group.count]]
        assert (group.min_return, group.max_return) == (min(values), max(values))
        assert group.mean_return == pytest.approx(np.mean(values))
        assert group.step == ends[at + group.count - 1] < ends[at] + LONGEST_GROUP
        at += group.count
    assert at == len(episodes)


def test_a_long_run_has_few_groups_and_waits_for_none_of_them_long() -> None:
    groups, num_groups, num_left = EpisodeGroups(), 0, []
    for first in range(0, 1 << 14, 64):
        steps = np.arange(first, first + 64)
        groups.add(np.ones(64), np.ones(64, np.int64), steps)
        num_groups += len(groups.take(int(steps[-1])))
        num_left.append(len(groups._waiting) / (first + 64))
    assert num_groups == 16 + 16 * 10  # and 16 more whenever the number of episodes doubles
    assert max(num_left) < 1 / 16
    groups.add(np.ones(1), np.ones(1, np.int64), np.array([20_000]))
    groups.take(20_000)
    assert groups.take(20_000 + LONGEST_GROUP) != (), "also without a further episode"


def test_events_of_earlier_versions_are_one_group_each() -> None:
    line = (
        '{"v": 1, "n": 1, "t": 5.0, "event": "EpisodesFinished", "behavior": "B", "step": 40, "count": 3,'
        ' "mean_return": 2.0, "min_return": 1.0, "max_return": 4.0, "mean_length": 9.0}'
    )
    view = RunView()
    view.apply(decode(line))
    of = view.behavior("B")
    assert (list(of.returns.steps), list(of.returns.mean), of.num_episodes, of.mean_length) == ([40.0], [2.0], 3, 9.0)


@contextmanager
def busy() -> Iterator[None]:
    """Another thread takes the interpreter as often as it can."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            sum(range(20_000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_three_runs_with_one_seed_have_equal_curves_pictures_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reports as usual beside a busy thread, one after every step, and one all episodes at its end."""
    results, num_events = [], []
    for number, seconds in enumerate(BATCHES_SECONDS):
        monkeypatch.setattr(progress, "EPISODES_SECONDS", seconds)
        config = configuration(tmp_path / str(number), {"Walker": behavior(max_steps=3000)})
        if number == 0:
            with busy():
                run = run_to_end(config)
        else:
            run = run_to_end(config)
        num_events.append(len(run.of(EpisodesFinished)))
        view = RunView()
        for envelope in read_events(run.folder / "events.jsonl"):
            view.apply(envelope)
        figure = run_figure(view, 0, ChartState(), UNICODE)
        assert figure is not None
        table = io.StringIO()
        csv.writer(table).writerows(rows_of([figure]))
        drawn = [
            (each.spread.low.tobytes(), each.spread.high.tobytes(), each.line.tobytes())
            for each in sample(figure, 118, True).curves
            if each.line is not None
        ]
        assert drawn
        results.append((shown(view.behaviors["Walker"]), drawn, table.getvalue()))
    assert num_events[2] < num_events[1], "the batches differ"
    assert results[0] == results[1] == results[2]
