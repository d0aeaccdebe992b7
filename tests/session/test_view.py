"""The view: a pure fold of the run's events."""

import copy
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EnvironmentFailed,
    EpisodesFinished,
    ExportFailed,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WorkerFailed,
    decode,
    encode,
)
from engine.session.view import COMMANDS_KEPT, HISTORY_POINTS, LOG_LINES, History, RunView

RUN = RunStarted("first", "results/first", 1, "cpu", False, {"torch": "2"})
REWARD = "Environment/Cumulative Reward"


def started(name: str = "B", step: int = 0) -> BehaviorStarted:
    return BehaviorStarted(name, "ppo", "gymnasium:CartPole-v1", step, 1000, 8, 5000, False)


def episodes(step: int, mean: float = 1.0, count: int = 1, name: str = "B") -> EpisodesFinished:
    return EpisodesFinished(name, step, count, mean, mean, mean, 10.0)


def summary(step: int, mean: float | None, name: str = "B") -> MetricsReported:
    metrics = {"Policy/Entropy": 0.5} | ({} if mean is None else {REWARD: mean})
    return MetricsReported(name, step, 1.0, metrics, mean, None if mean is None else 0.0, None, True)


def saved(step: int, is_best: bool = False) -> CheckpointSaved:
    return CheckpointSaved("B", step, f"results/first/B/{step}", "interval", 1.0, is_best, 100, 0.1)


def fold(*events: object, view: RunView | None = None, start: int = 1) -> RunView:
    view = RunView() if view is None else view
    for number, event in enumerate(events, start=start):
        view.apply(Envelope(number, 1000.0 + number, event))
    return view


STORY = (
    RUN,
    RunStateChanged("training"),
    started("A"),
    started("B"),
    BehaviorStateChanged("A", "training"),
    BehaviorStateChanged("B", "training"),
    ProgressReported("A", 10, 12, 100.0, 1),
    episodes(8, 3.0),
    episodes(16, 5.0),
    summary(20, 4.0),
    TimeSplit("A", 1.0, 0.5, 0.3, 0.1, 0.0),
    DevicesSampled((), "no NVIDIA driver", 5.0, 2, 1, 2, 3, 4, 5),
    saved(20, True),
    saved(40),
    CheckpointRemoved("B", 20, "results/first/B/20"),
    CheckpointFailed("B", 60, "interval", "disk full"),
    PolicyExported("B", 40, "results/first/B.onnx", 1e-7, 0.2),
    ExportFailed("B", 60, "differs"),
    LogEmitted("warning", "B", "normalize has no effect"),
    CommandAsked("1", "Pause", None),
    CommandFinished("1", True, "paused"),
    EnvironmentFailed("gymnasium:CartPole-v1", ("B",), "hung", "trace"),
    WorkerFailed("learner:B", "ValueError: no", "trace"),
    BehaviorStateChanged("B", "failed", "its environment hung"),
    RunStateChanged("failed", "a worker failed", 1),
)


def test_the_story_of_a_run():
    view = fold(*STORY)
    a, b = view.behaviors.values()
    assert (a.name, a.step, a.sampled, a.state) == ("A", 10, 12, "training")
    assert (b.state, b.reason, b.num_episodes, b.mean_return) == ("failed", "its environment hung", 2, 5.0)
    assert list(b.returns.xs) == [8.0, 16.0]
    assert [event.step for _, event in b.checkpoints] == [40]
    assert b.metrics == {"Policy/Entropy": 0.5, REWARD: 4.0}
    assert (view.state, view.exit_code, view.steps_per_second) == ("failed", 1, 100.0)
    assert view.last_checkpoint_at == 1014.0
    assert view.devices is not None
    kinds = [line.kind for line in view.log]
    assert {"RUN", "STATE", "CKPT", "ONNX", "WARNING", "KEY", "ENV", "BUG"} <= set(kinds)


def test_a_view_before_any_event_is_drawable():
    view = RunView()
    assert (view.state, view.behaviors, view.steps_per_second, view.last_checkpoint_at) == ("starting", {}, 0, None)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STORY), max_size=60))
def test_folding_is_pure_and_replays_to_the_same_view(events):
    """Any order: a view depends on nothing but its events, changes none of them, and survives their JSON."""
    envelopes = [Envelope(n, 1000.0 + n, event) for n, event in enumerate(events, start=1)]
    before = copy.deepcopy(envelopes)
    one, two = RunView(), RunView()
    lines = []
    for envelope in envelopes:
        one.apply(envelope)
        lines.append(encode(envelope))
    assert envelopes == before
    for line in lines:
        two.apply(decode(line))
    assert one == two


def test_a_fold_can_be_cut_anywhere():
    for cut in range(len(STORY)):
        view = copy.deepcopy(fold(*STORY[:cut]))
        assert fold(*STORY[cut:], view=view, start=cut + 1) == fold(*STORY)


def test_events_that_name_an_unknown_behavior_make_its_view():
    assert list(fold(episodes(1), summary(2, None), saved(3), BehaviorStateChanged("C", "paused")).behaviors) == [
        "B",
        "C",
    ]


@pytest.mark.parametrize(("means", "best"), [([0.0, -5.0], 0.0), ([-3.0, -1.0, -2.0], -1.0), ([None, None], None)])
def test_the_best_return_is_the_highest_summary(means, best):
    assert fold(*(summary(step, mean) for step, mean in enumerate(means))).behaviors["B"].best_return == best


def test_a_million_points_stay_within_their_bound():
    history = History()
    began = time.perf_counter()
    for x in range(1_000_000):
        history.append(x, x % 7)
    assert time.perf_counter() - began < 15.0
    assert HISTORY_POINTS // 2 <= len(history) < HISTORY_POINTS
    assert len(history.xs) == len(history.ys)
    assert len(history.pending) < history.stride < 1000
    xs, ys = np.frombuffer(history.xs), np.frombuffer(history.ys)
    assert np.all(np.diff(xs) == history.stride)
    assert xs[-1] >= 999_999 - history.stride
    assert np.allclose(ys, 3.0, atol=0.05)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 20_000))
def test_thinning_keeps_the_mean_and_the_order(count):
    history = History()
    for x in range(count):
        history.append(x, float(x))
    xs, ys = list(history.xs), list(history.ys)
    assert xs == sorted(set(xs))
    assert len(xs) * history.stride + len(history.pending) == count
    assert all(y == x - (history.stride - 1) / 2 for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("count", [100, HISTORY_POINTS * 3 + 1])
def test_rewinding_forgets_what_lies_beyond(count):
    history = History()
    for x in range(count):
        history.append(x, 1.0)
    history.rewind(50)
    assert history.xs[-1] <= 50
    assert len(history.xs) == len(history.ys)
    history.append(51, 1.0)
    assert list(history.xs) == sorted(history.xs)


def test_a_resumed_run_goes_on_from_its_checkpoint():
    view = fold(
        RUN, started(), episodes(10), summary(10, 1.0), episodes(90), summary(90, 2.0), RunStateChanged("failed", "", 1)
    )
    resumed = RunStarted("first", "results/first", 1, "cpu", True, {})
    fold(resumed, started(step=50), episodes(60), view=view)
    behavior = view.behaviors["B"]
    assert (view.state, view.exit_code) == ("starting", None)
    assert behavior.step == 50
    assert list(behavior.returns.xs) == [10.0, 60.0]
    assert list(behavior.metric_histories[REWARD].xs) == [10.0]


def test_a_command_is_asked_then_done_or_failed():
    view = fold(CommandAsked("1", "SaveCheckpoint", "B"), CommandAsked("2", "Pause", None))
    assert [command.state for command in view.commands.values()] == ["asked", "asked"]
    fold(CommandFinished("2", False, "already paused"), CommandFinished("1", True, "results/x"), view=view, start=3)
    assert [(c.state, c.message) for c in view.commands.values()] == [
        ("done", "results/x"),
        ("failed", "already paused"),
    ]
    assert view.log[-1].message == "checkpoint done: results/x"
    assert view.log[-2].level == "error"


def test_old_commands_are_forgotten_and_their_late_outcomes_ignored():
    asked = [CommandAsked(str(number), "Pause", None) for number in range(COMMANDS_KEPT + 5)]
    view = fold(*asked, CommandFinished("0", True, ""))
    assert list(view.commands) == [str(number) for number in range(5, COMMANDS_KEPT + 5)]


def test_the_log_is_bounded():
    view = fold(*(LogEmitted("info", "", str(number)) for number in range(LOG_LINES + 10)))
    assert len(view.log) == LOG_LINES
    assert view.log[-1].message == str(LOG_LINES + 9)


def test_only_behaviors_that_train_have_speed():
    view = fold(started("A"), started("B"), ProgressReported("A", 1, 1, 10.0, 0), ProgressReported("B", 1, 1, 5.0, 0))
    assert view.steps_per_second == 0
    fold(BehaviorStateChanged("A", "training"), BehaviorStateChanged("B", "training"), view=view, start=5)
    assert view.steps_per_second == 15.0
    fold(BehaviorStateChanged("A", "paused"), view=view, start=7)
    assert view.steps_per_second == 5.0
