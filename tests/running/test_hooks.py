"""A user's own functions: when they are called, with what, and what happens when one raises."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.running.hooks import Hooks, Milestone
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointSaved,
    EvaluationReported,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    WorkerFailed,
)
from tests.running.runs import ENDLESS, THREADED, behavior, configuration, ending, run_to_end, tensors_of

TWO = {"Walker": "toy:line", "Runner": "toy:line"}


@pytest.mark.parametrize("threaded", THREADED)
def test_hooks_see_every_train_step_and_every_multiple_of_each_behavior(threaded: bool, tmp_path: Path) -> None:
    steps: list[TrainStep] = []
    reached: list[Milestone] = []
    hooks = Hooks((steps.append,), ((100, reached.append), (-1, pytest.fail)))
    behaviors = {name: behavior(threaded=threaded) for name in TWO}
    run = run_to_end(configuration(tmp_path, behaviors, TWO), hooks=hooks)
    assert run.launch.exit_code == 0, run.recent_events()
    for name in TWO:
        own = [milestone for milestone in reached if milestone.behavior == name]
        assert [milestone.multiple for milestone in own] == [100, 200, 300, 400, 500]
        assert all(milestone.multiple <= milestone.step < milestone.multiple + 100 for milestone in own)
        updates = [milestone.num_updates for milestone in own]
        assert updates == sorted(set(updates))
        assert 5 <= updates[-1] <= 500 // 64
        assert own[-1].mean_return is not None
        assert own[-1].evaluated_return is None
    assert 2 * 400 < sum(step.sample.num_rows for step in steps) <= 2 * 512, "one pass over what was learned from"
    assert all({"Losses/Policy Loss", "Losses/Value Loss"} <= step.losses.keys() for step in steps)


def test_a_hook_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    plain = run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    hooks = Hooks((lambda step: None,), ((7, lambda milestone: None),))
    watched = run_to_end(
        configuration(tmp_path, {"Walker": behavior()}, checkpoint_settings={"run_id": "b"}), hooks=hooks
    )
    saved = [tensors_of(Path(run.of(CheckpointSaved)[-1].path)) for run in (plain, watched)]
    assert saved[0].keys() == saved[1].keys()
    assert all((array == saved[1][name]).all() for name, array in saved[0].items())


class Failing:
    """Raises once, when each of these behaviors has made steps that can be saved."""

    def __init__(self, error: BaseException, *behaviors: str) -> None:
        self.error = error
        self.waits_for = set(behaviors)
        self.once = threading.Lock()  # two behaviors may call it at the same moment

    def note(self, milestone: Milestone) -> None:
        self.waits_for.discard(milestone.behavior)

    def called(self, _: object) -> None:
        if not self.waits_for and self.once.acquire(blocking=False):
            raise self.error

    def hooks(self, kind: str) -> Hooks:
        if kind == "train step":
            return Hooks((self.called,), ((1, self.note),))
        return Hooks(every=((1, self.note), (50, self.called)))


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize("kind", ["train step", "every"])
def test_a_hook_that_raises_ends_the_run_with_everything_saved(kind: str, threaded: bool, tmp_path: Path) -> None:
    failing = Failing(ValueError("no such\nluck"), *TWO)
    behaviors = {name: behavior(threaded=threaded, max_steps=ENDLESS) for name in TWO}
    run = run_to_end(configuration(tmp_path, behaviors, TWO), hooks=failing.hooks(kind))
    assert (ending(run).state, run.launch.exit_code) == ("failed", 2), run.recent_events()
    raised = r"the hook Failing\.called raised ValueError: no such, at .*test_hooks\.py:\d+ in called"
    assert re.fullmatch(raised, ending(run).reason), ending(run).reason
    assert isinstance(run.launch.failure and run.launch.failure.__cause__, ValueError)
    assert not run.of(WorkerFailed)
    states = [event.state for event in run.of(BehaviorStateChanged) if event.state != "training"]
    assert sorted(states) == ["failed", "stopped"]

    log = (run.folder / "run_logs" / "output.log").read_text()
    assert log.count("Traceback (most recent call last):") == 1
    first_frame = log.partition("Traceback (most recent call last):\n")[2].splitlines()[0]
    assert "test_hooks.py" in first_frame, "it starts in the user's own code"
    assert sum("the whole traceback" in event.message for event in run.of(LogEmitted)) == 1

    saved = {event.behavior: event for event in run.of(CheckpointSaved)}
    assert {name: event.reason for name, event in saved.items()}.keys() == TWO.keys()
    assert sorted(event.reason for event in saved.values()) == ["error", "interrupted"]
    shorter = {name: behavior(threaded=threaded, max_steps=saved[name].step + 128) for name in TWO}
    again = run_to_end(configuration(tmp_path, shorter, TWO, checkpoint_settings={"resume": True}))
    assert again.launch.exit_code == 0, again.recent_events()
    assert {event.behavior: event.step for event in again.of(CheckpointSaved)} == {
        name: event.step + 128 for name, event in saved.items()
    }


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize("kind", ["train step", "every"])
def test_an_interrupt_in_a_hook_is_no_success(kind: str, threaded: bool, tmp_path: Path) -> None:
    failing = Failing(KeyboardInterrupt(), "Walker")
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(threaded=threaded)}), hooks=failing.hooks(kind))
    assert (ending(run).state, run.launch.exit_code) == ("failed", 1), run.recent_events()
    assert "KeyboardInterrupt" in ending(run).reason
    assert [event.reason for event in run.of(CheckpointSaved)] == ["error"]


def test_a_hook_may_raise_our_own_errors_without_being_taken_for_us(tmp_path: Path) -> None:
    run = run_to_end(
        configuration(tmp_path, {"Walker": behavior()}), hooks=Failing(ConfigError("mine"), "Walker").hooks("every")
    )
    assert "the hook Failing.called raised ConfigError: mine" in ending(run).reason


@pytest.mark.parametrize("interval", [0, -2, 1.5, True])
def test_an_impossible_interval_is_refused(interval: Any) -> None:
    text = rf"every: the interval of print must be a whole number of at least 1, or -1 for never, got {interval}"
    with pytest.raises(ConfigError, match=re.escape(text)):
        Hooks(every=((interval, print),))


def test_a_trainer_that_calls_no_hooks_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PPOTrainer, "on_train_step", Trainer.on_train_step)
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}), hooks=Hooks((print,)))
    assert (run.launch.exit_code, str(run.launch.error)) == (2, "PPOTrainer calls no hooks after its train steps")
    assert not run.folder.exists()


@pytest.mark.parametrize("threaded", THREADED)
def test_a_resumed_run_continues_with_the_multiples_that_would_have_been_next(threaded: bool, tmp_path: Path) -> None:
    def walker(max_steps: int) -> dict[str, dict[str, Any]]:
        evaluation = {"interval": 130, "episodes": 1}
        intervals = {"summary_freq": 90, "checkpoint_interval": 150, "export_interval": 170, "throughput_interval": 70}
        return {"Walker": behavior(max_steps=max_steps, threaded=threaded, evaluation=evaluation, **intervals)}

    reached: list[Milestone] = []
    hooks = Hooks(every=((110, reached.append),))
    first = run_to_end(configuration(tmp_path, walker(320)), hooks=hooks)
    more = run_to_end(configuration(tmp_path, walker(700), checkpoint_settings={"resume": True}), hooks=hooks)
    assert (first.launch.exit_code, more.launch.exit_code) == (0, 0), more.recent_events()
    assert [milestone.multiple for milestone in reached] == [110, 220, 330, 440, 550, 660]
    summaries = [[event.step for event in run.of(MetricsReported)] for run in (first, more)]
    assert summaries == [[90, 180, 270], [360, 450, 540, 630]]
    measured = [event.message for event in more.of(LogEmitted) if "steps per second" in event.message]
    assert len(measured) == len((420, 490, 560, 630, 700)), "350 begins the first"
    evaluated = [event.step // 130 for event in more.of(EvaluationReported)]
    assert evaluated == [3, 4, 5], "after 390, 520 and 650, and not at 700, where the policy is still the same"
    for kind, interval in ((CheckpointSaved, 150), (PolicyExported, 170)):
        steps = [event.step for event in more.of(kind)]
        multiples = [step // interval for step in steps[:-1]]
        assert multiples[0] > 320 // interval, f"{kind}: nothing between 320 and the next multiple"
        assert steps[-1] == 700, f"{kind}: once more at the end"
        assert len(set(multiples)) == len(multiples), f"{kind}: once for each multiple"
