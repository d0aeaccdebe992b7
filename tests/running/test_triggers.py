"""When something periodic is due."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.types import OFF
from rl_tui.engine.running.summaries import LearnerSettings, SummaryReporter, Throughput
from rl_tui.engine.running.threads import PARKED_SECONDS, Control, UiPriority
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    CheckpointSaved,
    EpisodesFinished,
    EvaluationReported,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    Stop,
)
from tests.running.runs import ENDLESS, THREADED, behavior, block, configuration, live, run_to_end

INTERVALS = st.integers(1, 50)
STARTS = st.integers(0, 300)
WAYS = st.lists(st.integers(0, 120), max_size=40)  # how many steps come at once


class Recorder:
    """A trigger, and every multiple that it was called with; `accepts` says whether it is then done."""

    def __init__(self, interval: int, start: int, *, at_end: bool = False):
        self.accepts = True
        self.called: list[int] = []
        self.trigger: Trigger[int] = Trigger(interval, at_end=at_end)
        self.trigger.restart(start)

    def fire(self, step: int, is_last: bool = False) -> None:
        self.trigger.fire(step, self.act, is_last)

    def act(self, multiple: int) -> bool:
        self.called.append(multiple)
        return self.accepts


@pytest.mark.parametrize(
    ("start", "steps", "fired"),
    [
        (0, [0, 9, 10, 11, 20], [10, 20]),
        (0, [35, 36, 40], [30, 40]),
        (10, [10, 19, 20], [20]),
        (13, [19, 21], [20]),
    ],
)
def test_trigger_fires_at_multiples_and_never_at_its_first_step(start: int, steps: list[int], fired: list[int]) -> None:
    recorder = Recorder(10, start)
    for step in steps:
        recorder.fire(step)
    assert recorder.called == fired


@given(INTERVALS, STARTS, WAYS)
def test_every_block_that_crosses_a_multiple_fires_once_however_many_it_crosses(
    interval: int, start: int, way: list[int]
) -> None:
    recorder, step, expected = Recorder(interval, start), start, []
    for num_rows in way:
        if (step + num_rows) // interval > step // interval:
            expected.append((step + num_rows) // interval * interval)
        step += num_rows
        recorder.fire(step)
        recorder.fire(step)
    assert recorder.called == expected


@given(INTERVALS, STARTS, WAYS, st.integers(0, 39))
def test_a_resumed_run_fires_where_it_would_have_fired_without_stopping(
    interval: int, start: int, way: list[int], stop_after: int
) -> None:
    whole, resumed, step = Recorder(interval, start), Recorder(interval, start), start
    for index, num_rows in enumerate(way):
        step += num_rows
        whole.fire(step)
        resumed.fire(step)
        if index == stop_after:
            again = Recorder(interval, step)
            again.called = resumed.called
            resumed = again
    assert resumed.called == whole.called


@given(INTERVALS, STARTS, st.lists(st.tuples(st.integers(0, 120), st.booleans()), max_size=40))
def test_what_could_not_be_done_stays_due_until_it_is_done(
    interval: int, start: int, way: list[tuple[int, bool]]
) -> None:
    recorder, step, done_at = Recorder(interval, start), start, start
    for num_rows, recorder.accepts in way:
        step += num_rows
        was_due, before = step // interval > done_at // interval, len(recorder.called)
        assert recorder.trigger.is_due(step) == was_due
        recorder.fire(step)
        assert recorder.called[before:] == ([step // interval * interval] if was_due else [])
        if was_due and recorder.accepts:
            done_at = step
        assert recorder.trigger.is_due(step) == (was_due and not recorder.accepts)


def test_an_interval_of_minus_one_never_fires_not_even_at_the_end() -> None:
    recorder = Recorder(OFF, 7, at_end=True)
    recorder.fire(10**9, is_last=True)
    assert (recorder.called, recorder.trigger.is_due(10**9)) == ([], False)


def test_only_what_is_also_for_the_end_fires_there() -> None:
    ends, goes_on = Recorder(10, 0, at_end=True), Recorder(10, 0)
    for recorder in (ends, goes_on):
        recorder.fire(13, is_last=False)
        recorder.fire(17, is_last=True)
    assert (ends.called, goes_on.called) == ([10, 10], [10])


def test_by_the_clock_a_whole_interval_passes_after_each_time() -> None:
    fired: list[float] = []
    trigger = Trigger(0.25, by_clock=True)
    for now in (1000.1, 1000.2, 1000.34, 1000.36, 1000.6, 1000.62):
        trigger.fire(now, fired.append)
    assert fired == [1000.1, 1000.36, 1000.62]
    trigger.restart(1001.0)  # a pause is over
    for now in (1001.2, 1001.25):
        trigger.fire(now, fired.append)
    assert fired[3:] == [1001.25]


def test_exports_go_with_their_checkpoint_where_they_came_with_it(tmp_path: Path) -> None:
    walker = behavior(max_steps=700, checkpoint_interval=200, keep_checkpoints=1, export_policies=["greedy"])
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    folder = run.folder / "Walker"
    kept = {path.name for path in (folder / "checkpoints").iterdir()}
    assert {path.stem for path in folder.glob("*.onnx")} == kept
    assert {path.name for path in (folder / "policies").iterdir()} == {f"{name}-greedy.onnx" for name in kept}


def test_without_an_interval_there_is_one_checkpoint_at_the_end_and_a_warning_at_the_start(tmp_path: Path) -> None:
    settings = {"checkpoint_interval": -1, "checkpoint_seconds": -1}
    config = configuration(tmp_path, {"Walker": behavior(**settings, max_steps=1024)})
    run = run_to_end(config)
    assert [event.reason for event in run.of(CheckpointSaved)] == ["final"]
    warning = next(event.message for event in run.of(LogEmitted) if "checkpoint_interval" in event.message)
    assert "a crash" in warning
    endless = {"Walker": behavior(checkpoint_interval=-1, max_steps=ENDLESS)}
    config = configuration(tmp_path, endless, checkpoint_settings={"run_id": "b"})
    with live(config) as run:
        run.wait_for(MetricsReported)
        run.send(Stop())
        run.wait()
    assert [event.reason for event in run.of(CheckpointSaved)] == ["interrupted"]


def test_what_is_off_does_not_happen_not_even_at_the_end(tmp_path: Path) -> None:
    walker = behavior(summary_freq=OFF, export_interval=OFF, checkpoint_interval=200, evaluation={"interval": OFF})
    run = run_to_end(configuration(tmp_path, {"Walker": walker}, writers={"tensorboard": {}}))
    assert run.launch.exit_code == 0, run.recent_events()
    assert [run.of(kind) for kind in (MetricsReported, PolicyExported, EvaluationReported)] == [[], [], []]
    assert run.of(EpisodesFinished)
    assert run.of(CheckpointSaved)[-1].reason == "final"
    assert not list(run.folder.rglob("*.onnx"))
    assert "no summaries" in next(event.message for event in run.of(LogEmitted) if event.level == "warning")


def test_returns_are_not_kept_for_summaries_that_never_come() -> None:
    settings = LearnerSettings("Walker", BehaviorConfig.model_validate(behavior(summary_freq=OFF)), True, 0.0)
    reporter = SummaryReporter(settings, EventBus())
    episode = block(3, 2.0)
    reporter.add_block(episode, episode)
    assert len(reporter.statistics.flush().returns) == 0
    assert reporter.mean_return == 6.0, "checkpoints are still ranked"


@pytest.mark.parametrize("threaded", THREADED)
def test_speed_is_logged_and_part_of_the_next_summary(threaded: bool, tmp_path: Path) -> None:
    walker = behavior(throughput_interval=100, summary_freq=256, threaded=threaded)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    measured = [event.message for event in run.of(LogEmitted) if "steps per second" in event.message]
    assert len(measured) == 4, "from the multiple before to 200, 300, 400 and 500"
    counts = [event.counts.get("Performance/Steps per Second") for event in run.of(MetricsReported)]
    assert counts == [1, 3]
    assert all(event.metrics["Performance/Steps per Second"] > 0 for event in run.of(MetricsReported))


def test_speed_is_that_since_the_last_measurement() -> None:
    seconds = iter([10.0, 10.5, 11.5, 11.5, 50.0, 50.1])
    throughput = Throughput(lambda: next(seconds))
    assert [throughput.measure(step) for step in (100, 200, 250)] == [None, 200.0, 50.0]
    throughput.restart()
    assert throughput.measure(20) is None
    assert throughput.measure(405) == 10.0
    assert throughput.measure(405) == 0.0


def test_a_pause_does_not_count_as_time() -> None:
    control = Control(UiPriority())
    control.join()
    control.pause()
    before, at = control.running_seconds(), time.monotonic()
    served = 0

    def serve() -> None:
        nonlocal served
        served += 1
        if served == 3:  # after two waits of PARKED_SECONDS
            control.resume()

    assert control.safe_point(serve)
    assert time.monotonic() - at > PARKED_SECONDS
    assert control.running_seconds() - before < PARKED_SECONDS
