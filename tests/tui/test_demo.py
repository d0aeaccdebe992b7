"""The demo: a story that is the same for the same seed, and obeys like a real run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.support import find_unsupported
from rl_tui.engine.session.messages import (
    AddNote,
    BehaviorRolledBack,
    BehaviorStateChanged,
    CheckpointRemoved,
    CheckpointSaved,
    Command,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    ExportPolicy,
    HyperparametersReported,
    LessonChanged,
    MetricsReported,
    Pause,
    PolicyExported,
    ProgressReported,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
    WorkersSampled,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.demo.runs import PAST_RUNS
from rl_tui.tui.demo.session import DemoSession
from rl_tui.tui.demo.story import STOP_SECONDS
from tests.running import runs

NOW = 1_795_000_000.0


class Watched:
    """A demo whose time goes on by hand, with the view that a screen would have of it."""

    def __init__(self, *, speed: float = 10.0, seed: int = 1, behaviors: int = 3, hours: float = 0.5) -> None:
        self.session = DemoSession(speed=speed, seed=seed, behaviors=behaviors, hours=hours, now=lambda: NOW)
        self.published: list[Envelope] = []
        self.view = RunView()
        self._mail = self.session.subscribe()
        self.session.begin()
        self.advance(0)

    def advance(self, seconds: float) -> None:
        """That many real seconds later."""
        left = seconds
        while left >= 0:
            self.session.advance(min(left, 0.2))
            left -= 0.2
        for envelope in self._mail.drain():
            self.published.append(envelope)
            self.view.apply(envelope)

    def ask(self, command: Command, seconds: float = 5.0) -> CommandFinished:
        """The one outcome of the command."""
        self.session.send(command)
        self.advance(seconds)
        return self.outcome(command)

    def outcome(self, command: Command) -> CommandFinished:
        """The only one it had."""
        (finished,) = [e for e in self.events(CommandFinished) if e.id == command.id]
        return finished

    def events(self, kind: type) -> list:
        """Everything of that kind, oldest first."""
        return [envelope.event for envelope in self.published if isinstance(envelope.event, kind)]


def test_same_seed_gives_the_same_story_and_another_gives_another() -> None:
    def published(seed: int) -> list[Envelope]:
        watched = Watched(seed=seed)
        watched.advance(3)
        return watched.published

    assert published(1) == published(1)
    assert published(1) != published(2)


def test_past_is_replayed_up_to_the_present_in_order() -> None:
    watched = Watched(hours=1.7)
    times = [envelope.time for envelope in watched.published]
    assert times == sorted(times)
    assert times[0] == NOW - 1.7 * 3600
    assert times[-1] == pytest.approx(NOW)
    assert [envelope.number for envelope in watched.published] == list(range(1, len(times) + 1))
    assert all(len(behavior.returns) > 150 for behavior in watched.view.behaviors.values())


def test_each_of_the_three_has_its_fate() -> None:
    walker, crawler, swimmer = Watched(hours=1.7).view.behaviors.values()
    returns = walker.returns.mean
    assert returns[-1] > returns[len(returns) // 2] > returns[0]
    assert crawler.best_return is not None
    assert crawler.mean_return is not None
    assert crawler.mean_return < crawler.best_return - 20
    assert swimmer.state == "paused"


def test_everything_that_the_demo_publishes_a_real_run_publishes_too(tmp_path: Path) -> None:
    watched = Watched(behaviors=12, hours=0.3)
    sac = {"trainer_type": "sac", "hyperparameters": {"batch_size": 32, "buffer_size": 512, "buffer_init_steps": 64}}
    behaviors = {"ppo": runs.behavior(), "sac": runs.behavior() | sac}
    actions = {name: {"actions": "continuous"} for name in behaviors}
    config = runs.configuration(
        tmp_path, behaviors, dict.fromkeys(behaviors, "toy:line"), env_settings={"env_kwargs": actions}
    )
    real = runs.run_to_end(config)
    for algorithm in behaviors:
        played = {name for name, behavior in watched.view.behaviors.items() if behavior.algorithm == algorithm}
        assert names(watched.events(MetricsReported), played) <= names(real.of(MetricsReported), {algorithm})
        published = names(watched.events(HyperparametersReported), played)
        assert published <= names(real.of(HyperparametersReported), {algorithm})


def names(events: list[MetricsReported] | list[HyperparametersReported], behaviors: set[str]) -> set[str]:
    """Of all numbers that these events report of these behaviors."""
    published = [
        each.metrics if isinstance(each, MetricsReported) else each.values
        for each in events
        if each.behavior in behaviors
    ]
    assert published
    return {name for values in published for name in values}


def test_configurations_of_the_demo_ask_for_nothing_that_is_not_built() -> None:
    listed = Watched(behaviors=12).session.runs()
    for run in listed.runs():
        text = listed.configuration(run.run_id).replace("demo:", "my_world:")
        assert find_unsupported(parse_config(text.encode(), f"{run.run_id}.yaml")) == []


def test_lessons_are_passed_one_after_another_and_reported_as_they_are() -> None:
    watched = Watched(hours=1.7)
    changes = watched.events(LessonChanged)
    assert [change.lesson for change in changes] == list(range(2, len(changes) + 2))
    assert len(changes) >= 2
    terrain, mass, gravity = watched.view.parameters.values()
    assert (terrain.lesson, terrain.name) == (changes[-1].lesson, changes[-1].name)
    assert terrain.current is not None
    assert terrain.current <= terrain.threshold
    assert (mass.kind, gravity.kind) == ("sampler", "number")
    assert watched.view.behaviors["Walker"].lessons[-1][1] == changes[-1]


def test_lesson_is_changed_by_hand_and_one_that_is_none_is_refused() -> None:
    watched = Watched()
    finished = watched.ask(SetLesson("terrain_height", 5), seconds=0)
    assert (finished.ok, finished.message) == (True, "terrain_height: lesson 5 of 5 'Mountains'")
    assert watched.view.parameters["terrain_height"].lesson == 5
    assert watched.view.parameters["terrain_height"].measure == ""
    assert watched.ask(SetLesson("terrain_height", 1), seconds=0).ok
    assert watched.view.parameters["terrain_height"].episodes == 0
    assert watched.ask(SetLesson("terrain_height", 6)).message == "lesson: must be from 1 to 5, got 6"
    assert watched.ask(SetLesson("gravity", 1)).message == "gravity has no lessons"


def test_roll_back_returns_to_the_lesson_of_that_step() -> None:
    watched = Watched(speed=1)
    saved = watched.view.behaviors["Walker"].checkpoints[0][1]
    before = 1 + sum(change.step <= saved.step for change in watched.events(LessonChanged))
    watched.ask(SetLesson("terrain_height", 5))
    assert watched.ask(RollBack("Walker", saved.path)).ok
    assert watched.view.parameters["terrain_height"].lesson == before


def test_one_run_learns_on_one_gpu() -> None:
    watched = Watched(behaviors=12)
    for sample in watched.events(DevicesSampled):
        assert [gpu.in_use for gpu in sample.gpus] == [True, False]
        assert [any(process.is_ours for process in gpu.processes) for gpu in sample.gpus] == [True, False]
        assert all(gpu.memory_used_bytes <= gpu.memory_total_bytes for gpu in sample.gpus)


def test_workers_of_one_behavior_are_as_fast_as_it_is_and_rest_while_it_is_paused() -> None:
    watched = Watched()
    (workers,) = watched.view.workers
    walker = watched.view.behaviors["Walker"]
    assert (workers.environment, workers.behaviors) == (walker.environment, ("Walker",))
    assert workers.total.steps_per_second == pytest.approx(walker.steps_per_second, rel=0.2)
    for sample in watched.events(WorkersSampled):
        assert len({worker.pid for worker in sample.workers}) == len(sample.workers) == 4
        assert all(worker.waiting is not None and 0 <= worker.waiting <= 1 for worker in sample.workers)
    watched.ask(Pause("Walker"))
    count = len(watched.events(WorkersSampled))
    watched.advance(5)
    assert len(watched.events(WorkersSampled)) == count


def test_vanished_entropy_is_warned_of_and_cleared_by_a_higher_target() -> None:
    watched = Watched(hours=1.7, speed=10)
    vanished = ("entropy_coefficient", "Crawler")
    assert vanished not in watched.view.warnings
    watched.advance(40)
    assert vanished in watched.view.warnings
    finished = watched.ask(SetHyperparameter("Crawler", "target_entropy", -20.0), 60)
    assert finished.ok
    assert vanished not in watched.view.warnings
    assert watched.view.behaviors["Crawler"].metrics["Policy/Entropy"] > -40


def test_pause_holds_one_behavior_and_resume_lets_it_go_on() -> None:
    watched = Watched()
    assert watched.ask(Pause("Walker")).message == "Walker paused"
    walker, crawler = watched.view.behaviors["Walker"], watched.view.behaviors["Crawler"]
    before = walker.step, crawler.step
    watched.advance(2)
    assert walker.step == before[0]
    assert crawler.step > before[1]
    assert watched.ask(Resume("Walker")).ok
    assert walker.state == "training"
    assert walker.step > before[0]
    assert not watched.ask(Resume("Walker")).ok


def test_run_is_paused_when_every_behavior_is() -> None:
    watched = Watched()
    assert watched.ask(Pause()).ok
    assert watched.view.state == "paused"
    assert watched.ask(Resume("Crawler")).ok
    assert watched.view.state == "training"


def test_checkpoint_takes_a_moment_and_names_its_path() -> None:
    watched = Watched()
    command = SaveCheckpoint("Walker")
    watched.session.send(command)
    watched.advance(0.2)
    assert not [e for e in watched.events(CommandFinished) if e.id == command.id]
    watched.advance(1.0)
    (saved,) = [event for event in watched.events(CheckpointSaved) if event.reason == "asked"]
    assert watched.outcome(command) == CommandFinished(command.id, True, saved.path)
    assert saved.path == f"demo/Walker/checkpoints/Walker-{saved.step}"


def test_checkpoint_of_all_ends_once_with_every_path() -> None:
    finished = Watched().ask(SaveCheckpoint())
    assert finished.ok
    assert [path.split("/")[1] for path in finished.message.split("; ")] == ["Walker", "Crawler", "Swimmer"]


def test_old_checkpoints_go_but_never_the_best() -> None:
    watched = Watched(hours=1.7)
    watched.advance(30)
    assert watched.events(CheckpointRemoved)
    for behavior in watched.view.behaviors.values():
        saved = [event for _, event in behavior.checkpoints]
        assert len(saved) <= 6
        best = [event.mean_return for event in saved if event.is_best]
        assert max(best) == max(event.mean_return for event in saved)


def test_export_names_its_file() -> None:
    watched = Watched()
    finished = watched.ask(ExportPolicy("Crawler"))
    exported = next(event for event in watched.events(PolicyExported) if event.path == finished.message)
    assert finished.ok
    assert exported.path == f"demo/Crawler/Crawler-{exported.step}.onnx"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("learning_rte", 1.0, "cannot be changed"),
        ("learning_rate", 0.0, "greater than 0"),
        ("learning_rate", math.nan, "greater than 0"),
        ("epsilon", 1.5, "at most 1"),
        ("num_epoch", 2.5, "a whole number"),
    ],
)
def test_hyperparameter_that_cannot_be_is_refused(name: str, value: float, reason: str) -> None:
    watched = Watched()
    before = dict(watched.view.behaviors["Walker"].hyperparameters)
    finished = watched.ask(SetHyperparameter("Walker", name, value))
    assert not finished.ok
    assert reason in finished.message
    assert watched.view.behaviors["Walker"].hyperparameters == before


def test_target_entropy_may_be_negative_but_not_infinite() -> None:
    watched = Watched()
    assert watched.ask(SetHyperparameter("Crawler", "target_entropy", -1.5)).ok
    assert "a finite number" in watched.ask(SetHyperparameter("Crawler", "target_entropy", -math.inf)).message


def test_soft_actor_critic_has_what_it_has_in_a_real_run() -> None:
    watched = Watched(hours=1.7)
    crawler, walker = watched.view.behaviors["Crawler"], watched.view.behaviors["Walker"]
    assert {"Losses/Q1 Loss", "Losses/Q2 Loss", "Policy/Continuous Entropy Coeff"} <= set(crawler.metrics)
    assert "Policy/Clip Fraction" not in crawler.metrics
    assert crawler.metrics["Policy/Learning Rate"] == crawler.hyperparameters["learning_rate"]
    assert crawler.metrics["Policy/Replay Steps"] == crawler.replay_steps > 0
    assert crawler.first_update_step < crawler.step
    assert len(crawler.evaluations) >= 15
    assert (walker.replay_steps, walker.evaluation) == (0, None)


def test_hyperparameter_is_reported_with_old_and_new_value() -> None:
    watched = Watched()
    finished = watched.ask(SetHyperparameter("Walker", "learning_rate", 1e-4))
    assert finished.ok
    change = watched.view.behaviors["Walker"].changes[-1][1]
    assert (change.name, change.new) == ("learning_rate", 1e-4)
    assert watched.view.behaviors["Walker"].hyperparameters["learning_rate"] == 1e-4


def test_roll_back_goes_on_from_the_checkpoint_with_what_it_held() -> None:
    watched = Watched(speed=1)
    saved = watched.view.behaviors["Walker"].checkpoints[0][1]
    watched.ask(SetHyperparameter("Walker", "beta", 0.02))
    watched.ask(SaveCheckpoint("Walker"))
    from_step = watched.view.behaviors["Walker"].step
    finished = watched.ask(RollBack("Walker", saved.path))
    assert finished.ok
    (event,) = watched.events(BehaviorRolledBack)
    assert (event.step, event.path) == (saved.step, saved.path)
    walker = watched.view.behaviors["Walker"]
    assert walker.step < from_step
    assert walker.hyperparameters["beta"] == 0.005
    assert [event.path for _, event in walker.checkpoints] == [saved.path]


def test_roll_back_to_nothing_changes_nothing() -> None:
    watched = Watched()
    finished = watched.ask(RollBack("Walker", "demo/Walker/checkpoints/Walker-000000001"))
    assert not finished.ok
    assert "no checkpoint of Walker" in finished.message
    assert not watched.events(BehaviorRolledBack)


def test_note_is_kept_and_an_empty_one_refused() -> None:
    watched = Watched()
    assert watched.ask(AddNote("  it limps ", "Walker")).ok
    assert (watched.view.notes[-1].text, watched.view.notes[-1].behavior) == ("it limps", "Walker")
    assert not watched.ask(AddNote("  ")).ok
    assert not watched.ask(AddNote("x" * 10_000)).ok


@pytest.mark.parametrize(
    "command",
    [
        Pause("Stranger"),
        Resume("Stranger"),
        SaveCheckpoint("Stranger"),
        ExportPolicy("Stranger"),
        SetHyperparameter("Stranger", "beta", 1.0),
        RollBack("Stranger", "x"),
        AddNote("x", "Stranger"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_command_for_an_unknown_behavior_is_refused(command: Command) -> None:
    finished = Watched().ask(command)
    assert (finished.ok, finished.message) == (False, "there is no behavior Stranger")


def test_stop_saves_every_behavior_in_turn_and_ends_the_run() -> None:
    watched = Watched()
    command = Stop("checkpoint", 143)
    watched.session.send(command)
    watched.advance(STOP_SECONDS)
    assert watched.view.state == "stopping"
    watched.advance(3 * STOP_SECONDS)
    assert watched.outcome(command).ok
    assert (watched.view.state, watched.view.reason, watched.view.exit_code) == ("stopped", "everything is saved", 143)
    for behavior in watched.view.behaviors.values():
        assert behavior.state == "stopped"
        assert behavior.checkpoints[-1][1].reason == "interrupted"
    assert watched.session.wait(0)
    assert watched.session.exit_code == 143


def test_stop_now_saves_nothing_and_gives_up_what_is_asked_for() -> None:
    watched = Watched()
    save, stop = SaveCheckpoint(), Stop("now", 130)
    num_checkpoints = [len(behavior.checkpoints) for behavior in watched.view.behaviors.values()]
    watched.session.send(save)
    watched.session.send(stop)
    watched.advance(0.1)
    assert (watched.outcome(save).ok, watched.outcome(stop).ok) == (False, True)
    assert (watched.view.reason, watched.view.exit_code) == ("without saving", 130)
    assert [len(behavior.checkpoints) for behavior in watched.view.behaviors.values()] == num_checkpoints


def test_impatient_second_stop_ends_at_once_and_both_are_answered() -> None:
    watched = Watched()
    first, second, late = Stop("checkpoint"), Stop("now", 130), Pause()
    watched.session.send(first)
    watched.session.send(second)
    watched.advance(0.1)
    assert watched.outcome(first).ok
    assert watched.outcome(second).ok
    assert watched.view.exit_code == 130
    assert watched.ask(late).message == "the run is over"


def test_behaviors_end_at_max_steps_and_then_the_run() -> None:
    watched = Watched(behaviors=2, hours=0, speed=1000)
    watched.advance(30)
    assert [behavior.state for behavior in watched.view.behaviors.values()] == ["finished", "finished"]
    assert [behavior.step for behavior in watched.view.behaviors.values()] == [30_000_000, 20_000_000]
    assert all(behavior.checkpoints[-1][1].reason == "final" for behavior in watched.view.behaviors.values())
    assert all(behavior.exports for behavior in watched.view.behaviors.values())
    watched.advance(3)
    assert watched.events(RunStateChanged)[-1] == RunStateChanged("finished", "", 0)


def test_nothing_trains_after_the_end() -> None:
    watched = Watched()
    watched.ask(Stop("now"))
    num_published = len(watched.published)
    watched.advance(5)
    assert len(watched.published) == num_published


@pytest.mark.slow
def test_twelve_behaviors_for_half_a_day_have_all_their_history() -> None:
    watched = Watched(behaviors=12, hours=12)
    assert len(watched.view.behaviors) == 12
    assert watched._mail.dropped == 0
    begin = NOW - 12 * 3600
    assert all(behavior.returns.times[0] < begin + 3600 for behavior in watched.view.behaviors.values())
    assert not any(behavior.state == "finished" for behavior in watched.view.behaviors.values())


def test_every_event_of_the_story_is_one_that_a_file_can_hold() -> None:
    from rl_tui.engine.session.codec import decode, encode

    for envelope in Watched(hours=1.7).published:
        assert decode(encode(envelope)) == envelope


def test_earlier_runs_are_listed_with_their_ends() -> None:
    watched = Watched()
    runs = watched.session.runs()
    listed = runs.runs()
    assert [run.run_id for run in listed] == ["demo", *(run.run_id for run in PAST_RUNS)]
    assert [run.is_alive for run in listed] == [True, False, False, False, False]
    assert {run.state for run in listed} == {"training", "finished", "stopped", "failed"}
    ages = [run.last_event_at or 0.0 for run in listed]
    assert ages == sorted(ages, reverse=True)


def test_earlier_runs_can_be_compared() -> None:
    watched = Watched()
    runs = watched.session.runs()
    for run in PAST_RUNS:
        view = RunView()
        for envelope in runs.events(run.run_id):
            view.apply(envelope)
        assert all(len(behavior.returns) > 50 for behavior in view.behaviors.values())
    assert "target_entropy: -20" in runs.configuration("crawler-entropy")
    assert "target_entropy: -60" in runs.configuration("demo")
    with pytest.raises(ValueError, match="nowhere"):
        runs.configuration("nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        list(runs.events("nowhere"))


def test_run_of_the_demo_is_in_its_own_list_up_to_the_present() -> None:
    watched = Watched()
    runs = watched.session.runs()
    before = len(list(runs.events("demo")))
    watched.advance(5)
    events = [envelope.event for envelope in runs.events("demo")]
    assert len(events) > before
    assert {EpisodesFinished, ProgressReported, BehaviorStateChanged} <= {type(event) for event in events}


def test_demo_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    watched = Watched()
    watched.ask(SaveCheckpoint())
    watched.ask(ExportPolicy())
    watched.ask(Stop())
    assert list(tmp_path.iterdir()) == []
