"""The demo: recordings that come with rl-tui, and a session that shows what it can of every command."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.support import find_unsupported
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.messages import (
    AddNote,
    BehaviorRolledBack,
    CheckpointSaved,
    Command,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    ExportPolicy,
    HyperparametersReported,
    LeagueReported,
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
    WarningRaised,
    WorkersSampled,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.demo.recordings import FOLDER, NAMES, SHOWN, Recordings
from rl_tui.tui.demo.session import NOT_WRITTEN, SHOWN_ONLY, DemoSession
from tests.running import runs

NOW = 1_800_000_000.0
HOUR = 3600.0


class Watched:
    """A demo whose time goes on by hand, with the view that its screen has of it."""

    def __init__(self, *, speed: float = 10.0) -> None:
        self.session = DemoSession(speed, now=lambda: NOW)
        self.published: list[Envelope] = []
        self.view = self.session.live.view

    def advance(self, seconds: float) -> None:
        """That many real seconds later."""
        left = seconds
        while left >= 0:
            self.session.playback.advance(min(left, 1.0))
            left -= 1.0
            self.published += self.session.live.fold()

    def ask(self, command: Command, seconds: float = 1.0) -> CommandFinished:
        """The one outcome of the command."""
        self.session.send(command)
        self.advance(seconds)
        (finished,) = [e for e in self.events(CommandFinished) if e.id == command.id]
        return finished

    def events(self, kind: type) -> list:
        """Everything of that kind since the start, oldest first."""
        return [envelope.event for envelope in self.published if isinstance(envelope.event, kind)]


def recorded(name: str = SHOWN) -> list[Envelope]:
    """All events of one recording."""
    return list(Recordings(NOW, lambda: NOW + 100 * HOUR).events(name))


def test_demo_starts_in_the_middle_of_a_run_now() -> None:
    watched = Watched()
    view = watched.view
    assert view.state == "training"
    assert view.now == pytest.approx(NOW, abs=60)
    assert view.started_at == pytest.approx(NOW - 1.7 * HOUR)
    assert [behavior.state for behavior in view.behaviors.values()] == ["training"] * 3
    assert all(len(behavior.returns) > 100 for behavior in view.behaviors.values())
    steps = [behavior.step for behavior in view.behaviors.values()]
    watched.advance(5)
    assert all(after.step > before for before, after in zip(steps, view.behaviors.values(), strict=True))
    assert watched.session.notes() == ("demo 10x",)
    assert view.now == pytest.approx(NOW + 50, abs=10)


def test_recording_shows_what_a_run_may_meet() -> None:
    kinds = {type(envelope.event) for envelope in recorded()}
    assert {BehaviorRolledBack, DevicesSampled, LeagueReported, LessonChanged, PolicyExported} <= kinds
    assert {WarningRaised, WorkersSampled} <= kinds
    walker, crawler, soccer = view_of(recorded()).behaviors.values()
    assert (walker.state, soccer.state, crawler.state) == ("finished", "finished", "stopped")
    assert (crawler.algorithm, bool(crawler.rollbacks), bool(crawler.evaluations)) == ("sac", True, True)


def test_behavior_of_the_demo_plays_itself_with_ratings_that_agree() -> None:
    events = recorded()
    soccer = view_of(events).behaviors["SoccerTwos"]
    assert soccer.plays_itself
    assert soccer.league is not None
    assert soccer.league.is_symmetric
    reports = [each.event for each in events if isinstance(each.event, LeagueReported)]
    assert {report.learning_team for report in reports} == {0, 1}
    assert max(len(report.snapshots) for report in reports) == 10
    assert all(report.next_team_change > report.step for report in reports if report.next_team_change is not None)
    rated = dict(zip(soccer.histories[RATING].steps, soccer.histories[RATING].mean, strict=True))
    assert len(rated) > 100
    assert max(rated.values()) - min(rated.values()) > 300
    for report in reports:
        nearest = min(rated, key=lambda step: abs(step - report.step))
        assert abs(rated[nearest] - report.rating) < 60


def view_of(events: list[Envelope]) -> RunView:
    view = RunView()
    for envelope in events:
        view.apply(envelope)
    return view


def test_demo_ends_with_its_recording() -> None:
    watched = Watched(speed=1000.0)
    watched.advance(10)
    assert watched.view.state == "stopped"
    assert watched.session.notes() == ("demo ended",)
    assert watched.events(RunStateChanged)[-1] == RunStateChanged("stopped", "everything is saved", 0)
    assert watched.ask(Pause()) == CommandFinished(watched.events(CommandFinished)[-1].id, False, "all have ended")


def test_recordings_are_small_and_name_no_machine() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 650_000
    for name in NAMES:
        view = view_of(recorded(name))
        assert view.run is not None
        assert view.run.path == name
        paths = [event.path for behavior in view.behaviors.values() for _, event in behavior.checkpoints]
        assert paths
        assert all(path.startswith(f"{name}/") for path in paths)


def test_everything_that_the_demo_reports_a_real_run_reports_too(tmp_path: Path) -> None:
    sac = {"trainer_type": "sac", "hyperparameters": {"batch_size": 32, "buffer_size": 512, "buffer_init_steps": 64}}
    behaviors = {"ppo": runs.behavior(), "sac": runs.behavior() | sac}
    actions = {name: {"actions": "continuous"} for name in behaviors}
    config = runs.configuration(
        tmp_path, behaviors, dict.fromkeys(behaviors, "toy:line"), env_settings={"env_kwargs": actions}
    )
    real = runs.run_to_end(config)
    game = {"env": "tests.running.self_play.duels:Duels", "num_envs": 2}
    playing = {"Duelist": runs.behavior(max_steps=1500, self_play={"save_steps": 300})}
    rated = runs.run_to_end(runs.configuration(tmp_path / "game", playing, env_settings=game))
    events = [envelope.event for envelope in recorded()]
    for algorithm, played in {"ppo": {"Walker", "SoccerTwos"}, "sac": {"Crawler"}}.items():
        for kind in (MetricsReported, HyperparametersReported):
            published = names([event for event in events if isinstance(event, kind)], played)
            also = names(rated.of(kind), {"Duelist"}) if algorithm == "ppo" else set()
            assert published <= names(real.of(kind), {algorithm}) | also


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
    recordings = Watched().session.recordings
    for run in recordings.runs():
        text = recordings.configuration(run.run_id).replace("demo:", "my_world:")
        found = find_unsupported(parse_config(text.encode(), f"{run.run_id}.yaml"))
        assert found == []


def test_recorded_runs_are_listed_with_their_ends_and_can_be_compared() -> None:
    recordings = Watched().session.recordings
    listed = recordings.runs()
    assert tuple(run.run_id for run in listed) == NAMES
    assert [(run.state, run.is_alive) for run in listed] == [
        ("training", True),
        ("finished", False),
        ("failed", False),
    ]
    ages = [run.last_event_at or 0.0 for run in listed]
    assert ages == sorted(ages, reverse=True)
    assert ages[0] == pytest.approx(NOW, abs=60)
    assert "target_entropy: -20" in recordings.configuration("crawler-entropy")
    assert "target_entropy: -60" in recordings.configuration(SHOWN)


def test_the_run_that_is_played_is_in_the_list_up_to_now() -> None:
    watched = Watched()
    recordings = watched.session.recordings
    before = len(list(recordings.events(SHOWN)))
    watched.advance(5)
    events = list(recordings.events(SHOWN))
    assert len(events) > before
    assert events[-1].time <= watched.session.clock()


def test_recordings_are_not_changed_and_others_are_not_there() -> None:
    recordings = Recordings(NOW, lambda: NOW)
    for refused in ("preview_removal", "remove", "resume_command", "evaluate_command"):
        with pytest.raises(ConfigError, match="recordings that came with rl-tui"):
            getattr(recordings, refused)(SHOWN)
    with pytest.raises(ConfigError, match="nowhere"):
        recordings.configuration("nowhere")
    with pytest.raises(ConfigError, match="nowhere"):
        list(recordings.events("nowhere"))


def test_pause_holds_one_behavior_and_resume_lets_it_catch_up() -> None:
    watched = Watched()
    watched.advance(1)
    assert watched.ask(Pause("Walker")).message == "Walker paused"
    walker, crawler = watched.view.behaviors["Walker"], watched.view.behaviors["Crawler"]
    before = walker.step, crawler.step
    watched.advance(20)
    assert (walker.state, walker.step) == ("paused", before[0])
    assert crawler.step > before[1]
    assert watched.ask(Resume("Walker")).message == "Walker training"
    assert walker.state == "training"
    assert walker.step - before[0] > 20 * 10 * 2000
    held = [event.step for event in watched.events(EpisodesFinished) if event.behavior == "Walker"]
    assert max(after - before for before, after in pairwise(held)) < 20_000


def test_recording_stands_still_while_every_behavior_is_paused() -> None:
    watched = Watched()
    watched.ask(Pause())
    assert watched.view.state == "paused"
    num_published = len(watched.published)
    watched.advance(20)
    assert len(watched.published) == num_published
    assert watched.ask(Resume("Crawler")).ok
    assert watched.view.state == "training"
    assert len(watched.events(ProgressReported)) > 0


def test_checkpoints_and_exports_are_shown_and_said_not_to_be_written() -> None:
    watched = Watched()
    finished = watched.ask(SaveCheckpoint("Walker"), 0)
    (saved,) = [event for event in watched.events(CheckpointSaved) if event.reason == "asked"]
    assert (finished.ok, finished.message) == (True, f"{NOT_WRITTEN}: {saved.path}")
    assert saved.path == f"demo/Walker/checkpoints/Walker-{saved.step}"
    assert watched.view.behaviors["Walker"].checkpoints[-1][1] == saved
    assert len(watched.ask(SaveCheckpoint(), 0).message.split("; ")) == 3
    assert "demo/Crawler/Crawler-" in watched.ask(ExportPolicy("Crawler"), 0).message


def test_what_a_recording_cannot_carry_out_is_marked_in_its_charts() -> None:
    watched = Watched()
    walker = watched.view.behaviors["Walker"]
    for command in (
        SetHyperparameter("Walker", "learning_rate", 1e-4),
        SetLesson("terrain_height", 2),
        RollBack("Walker", walker.checkpoints[0][1].path),
    ):
        num_marks = [len(walker.changes), len(walker.lessons), len(walker.rollbacks)]
        finished = watched.ask(command, 0)
        assert (finished.ok, finished.message) == (True, SHOWN_ONLY)
        assert [len(walker.changes), len(walker.lessons), len(walker.rollbacks)] != num_marks
    assert walker.hyperparameters["learning_rate"] == 1e-4
    step = walker.step
    watched.advance(3)
    assert walker.step > step


def test_roll_back_to_a_checkpoint_that_is_gone_is_refused() -> None:
    finished = Watched().ask(RollBack("Walker", "demo/Walker/checkpoints/Walker-1"))
    assert (finished.ok, finished.message) == (False, "demo/Walker/checkpoints/Walker-1: no checkpoint of Walker")


def test_note_is_kept() -> None:
    watched = Watched()
    assert watched.ask(AddNote("it limps", "Walker")).ok
    assert (watched.view.notes[-1].text, watched.view.notes[-1].behavior) == ("it limps", "Walker")


def test_stop_ends_the_run_with_the_exit_code_of_the_first() -> None:
    watched = Watched()
    first, second = Stop("checkpoint", 143), Stop("now", 130)
    assert watched.ask(first).ok
    assert watched.ask(second).ok
    assert (watched.view.state, watched.session.exit_code) == ("stopped", 143)
    assert {behavior.state for behavior in watched.view.behaviors.values()} == {"stopped"}
    assert watched.session.wait(0)
    num_published = len(watched.published)
    watched.advance(5)
    assert len(watched.published) == num_published


def test_demo_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    watched = Watched()
    watched.ask(SaveCheckpoint())
    watched.ask(ExportPolicy())
    watched.ask(Stop())
    assert list(tmp_path.iterdir()) == []
