"""Runs with environment parameters: what environments meet, when lessons change, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun
from rl_tui.engine.running.lessons.curricula import Curricula, RewardWindow
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.lessons.status import Measures, status_of
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    EpisodesFinished,
    EvaluationReported,
    LessonChanged,
    MetricsReported,
    ParametersReported,
    Pause,
    Resume,
    RollBack,
    SaveCheckpoint,
    SetLesson,
    Stop,
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.checkpoint_format import read_values
from rl_tui.engine.storage.run_summary import summarize
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, live, run_to_end

GRADED = "tests.running.lessons.worlds:Graded"
TAG = "Environment/Lesson Number/grade"


def lesson(grade: Any, **criteria: Any) -> dict[str, Any]:
    name = f"grade {grade}" if isinstance(grade, int | float) else "drawn"
    if not criteria:
        return {"name": name, "value": grade}
    return {"name": name, "value": grade, "completion_criteria": {"behavior": "Walker", **criteria}}


def lessons(*thresholds: float, **criteria: Any) -> dict[str, Any]:
    """Lesson n, from 1, pays n in each of four steps, and ends at this mean return; one more follows."""
    grades = [lesson(n, threshold=t, min_lesson_length=5, **criteria) for n, t in enumerate(thresholds, start=1)]
    return {"grade": {"curriculum": [*grades, lesson(len(thresholds) + 1)]}}


def config_of(folder: Path, parameters: dict[str, Any], env: Any = GRADED, **changes: Any) -> RunConfig:
    sections = {name: changes.pop(name) for name in ("env_settings", "checkpoint_settings") if name in changes}
    return configuration(folder, {"Walker": behavior(**changes)}, env, environment_parameters=parameters, **sections)


def changes_of(run: LiveRun) -> list[tuple[str, int]]:
    return [(event.name, event.lesson) for event in run.of(LessonChanged)]


NEVER = 1000.0


@pytest.mark.parametrize("num_workers", [0, 2])
def test_lessons_follow_each_other_and_environments_meet_them(tmp_path: Path, num_workers: int) -> None:
    config = config_of(tmp_path, lessons(3.0, 7.0), env_settings={"num_workers": num_workers})
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    assert changes_of(run) == [("grade 2", 2), ("grade 3", 3)]
    assert round(run.of(EpisodesFinished)[-1].max_return) == 12
    numbers = [event.metrics[TAG] for event in run.of(MetricsReported)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 2.0
    status = json.loads((run.folder / "run_logs/training_status.json").read_text())
    assert status["grade"] == {"lesson_num": 2}


def test_episodes_before_a_lesson_do_not_count_in_it() -> None:
    settings = configuration(Path(), {}, environment_parameters=lessons(1.0, 1.0)).environment_parameters
    run_lessons = Lessons(settings, 0, EventBus())
    run_lessons.add_returns("Walker", [5.0] * 20)
    run_lessons.update({"Walker": (10, 100)})
    run_lessons.update({"Walker": (11, 100)})
    assert run_lessons.numbers == {"grade": 1}
    run_lessons.add_returns("Walker", [5.0] * 5)
    run_lessons.update({"Walker": (12, 100)})
    assert run_lessons.numbers == {"grade": 2}


@pytest.mark.parametrize(("advances", "measure"), [(True, "reward"), (False, "")])
def test_only_lessons_that_end_by_themselves_say_when(advances: bool, measure: str) -> None:
    settings = configuration(Path(), {}, environment_parameters=lessons(1.0)).environment_parameters
    bus = EventBus()
    mail = bus.subscribe()
    Lessons(settings, 0, bus, advances=advances).publish()
    (envelope,) = mail.drain()
    assert isinstance(envelope.event, ParametersReported)
    status = envelope.event.parameters["grade"]
    assert (status.measure, status.behavior, status.lesson, status.num_lessons) == (measure, "Walker", 1, 2)


def test_events_say_by_their_order_which_episodes_ended_in_which_lesson(tmp_path: Path) -> None:
    """Only the episodes that agents have begun before a lesson are reported after it, one of each agent."""
    run = run_to_end(config_of(tmp_path, lessons(3.0)))
    events = [each.event for each in run.mail]
    (at,) = [index for index, event in enumerate(events) if isinstance(event, LessonChanged)]
    before = [event for event in events[:at] if isinstance(event, EpisodesFinished)]
    after = [event for event in events[at:] if isinstance(event, EpisodesFinished)]
    assert sum(event.count for event in before) >= 5
    assert {round(event.max_return) for event in before} == {4}
    num_late = sum(round(event.count * (8 - event.mean_return) / 4) for event in after)
    assert num_late <= run.of(BehaviorStarted)[0].num_agents


@pytest.mark.parametrize("evaluation", [None, {"interval": 64, "episodes": 2}])
def test_best_checkpoint_is_one_of_the_newest_lesson_however_easy_those_before_were(
    tmp_path: Path, evaluation: dict[str, int] | None
) -> None:
    grades = [lesson(3, threshold=1.0, min_lesson_length=5, measure="reward"), lesson(1)]
    changes = {} if evaluation is None else {"evaluation": evaluation}
    parameters = {"grade": {"curriculum": grades}}
    run = run_to_end(config_of(tmp_path, parameters, max_steps=1024, checkpoint_interval=128, **changes))
    (changed,) = run.of(LessonChanged)
    saved = run.of(CheckpointSaved)
    assert {each.lessons["grade"] for each in saved if each.step > changed.step + 64} == {2}
    returns = {round(each.mean_return) for each in saved if each.lessons == {"grade": 2} and each.mean_return}
    assert returns == {4}, "not 12, as in the lesson before"
    view = RunView()
    for envelope in run.mail:
        view.apply(envelope)
    best = view.behaviors["Walker"].best_checkpoint
    assert best is not None
    assert best.lessons == {"grade": 2}
    summary = summarize(run.folder)
    assert summary is not None
    assert summary.behaviors[0].best_return == best.mean_return


def test_a_lesson_that_has_not_ended_stays(tmp_path: Path) -> None:
    run = run_to_end(config_of(tmp_path, lessons(4.5, signal_smoothing=False)))
    assert changes_of(run) == []
    assert {round(event.mean_return) for event in run.of(EpisodesFinished)} == {4}


def test_the_view_says_how_far_the_next_lesson_is(tmp_path: Path) -> None:
    run = run_to_end(config_of(tmp_path, {**lessons(NEVER, signal_smoothing=False), "gravity": -9.8}))
    view = RunView()
    for envelope in run.mail:
        view.apply(envelope)
    assert (view.parameters["gravity"].kind, view.parameters["gravity"].value) == ("number", "-9.8")
    grade = view.parameters["grade"]
    assert (grade.kind, grade.value, grade.lesson, grade.num_lessons, grade.name) == ("lessons", "1", 1, 2, "grade 1")
    assert (grade.measure, grade.threshold, grade.behavior, grade.min_lesson_length) == ("reward", NEVER, "Walker", 5)
    reported = run.of(ParametersReported)
    assert len(reported) < 20
    assert reported[0].parameters["grade"].current is None


def test_too_few_episodes_are_shown_with_their_own_mean(tmp_path: Path) -> None:
    criteria = {"threshold": 9.0, "min_lesson_length": 3}
    parameters = config_of(
        tmp_path, {"grade": {"curriculum": [lesson(1, **criteria), lesson(2)]}}
    ).environment_parameters
    assert parameters is not None
    curricula, window, shown = Curricula(parameters), RewardWindow(3), []
    for _ in range(3):
        window.add([4.0])
        curricula.update({"Walker": 10}, {"Walker": 100}, {"Walker": window})
        shown.append(status_of("grade", parameters["grade"], curricula, Measures({"Walker": window}, {}, {})).current)
    assert shown == [4.0, 4.0, 3.0], "smoothing begins at 0, with the first comparison"


def test_progress_ends_a_lesson_at_a_share_of_max_steps(tmp_path: Path) -> None:
    parameters = {"grade": {"curriculum": [lesson(1, measure="progress", threshold=0.5), lesson(2)]}}
    (changed,) = run_to_end(config_of(tmp_path, parameters)).of(LessonChanged)
    assert 256 < changed.step <= 400


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_full_reset_truncates_episodes_that_would_never_end(tmp_path: Path, num_workers: int) -> None:
    """Long enough that also the first instance, whose grade is reported, comes to the second lesson, where others are
    faster."""
    criteria = {"measure": "progress", "threshold": 0.1, "require_reset": True}
    parameters = {"grade": {"curriculum": [lesson(1, **criteria), lesson(2)]}}
    settings = {"env_kwargs": {"length": 0}, "num_workers": num_workers}
    signals = {"extrinsic": {"gamma": 0.9}}
    config = config_of(tmp_path, parameters, env_settings=settings, reward_signals=signals, max_steps=4096)
    with live(config) as run:
        run.wait()
        assert changes_of(run) == [("grade 2", 2)]
    grades = [event.metrics["World/Grade"] for event in run.of(MetricsReported) if "World/Grade" in event.metrics]
    assert (grades[0], grades[-1]) == (1.0, 2.0)
    assert run.of(EpisodesFinished) == []  # truncated ones count in no return, as in a restarted worker
    assert run.launch.exit_code == 0


def test_several_environments_share_their_lessons(tmp_path: Path) -> None:
    settings = {"env_kwargs": {"Walker": {}, "Other": {"behavior": "Other"}}}
    behaviors = {"Walker": behavior(), "Other": behavior(max_steps=4096)}
    environments = {"Walker": GRADED, "Other": GRADED}
    parameters = lessons(3.0)
    run = run_to_end(
        configuration(tmp_path, behaviors, environments, env_settings=settings, environment_parameters=parameters)
    )
    assert changes_of(run) == [("grade 2", 2)]
    returns = [event.mean_return for event in run.of(EpisodesFinished) if event.behavior == "Other"]
    assert returns[-1] == 8.0
    assert {event.behavior for event in run.of(MetricsReported) if TAG in event.metrics} == {"Walker", "Other"}


def test_a_resumed_run_continues_at_its_lesson(tmp_path: Path) -> None:
    drawn = {"sampler_type": "uniform", "sampler_parameters": {"min_value": 2, "max_value": 3}}
    grades = [lesson(1, threshold=3.0, min_lesson_length=5), lesson(drawn, threshold=NEVER, min_lesson_length=5)]
    parameters = {"grade": {"curriculum": [*grades, lesson(9)]}}
    first = run_to_end(config_of(tmp_path, parameters))
    resumed = {"checkpoint_settings": {"resume": True}, "max_steps": 1024}
    second = run_to_end(config_of(tmp_path, parameters, **resumed))
    assert changes_of(first) == [("drawn", 2)]
    assert changes_of(second) == []
    assert second.of(ParametersReported)[0].parameters["grade"].lesson == 2
    assert {event.metrics[TAG] for event in second.of(MetricsReported)} == {1.0}
    assert all(2 <= event.metrics["World/Grade"] <= 3 for event in second.of(MetricsReported))


def test_a_resumed_run_draws_other_numbers_than_before_and_a_new_one_the_same(tmp_path: Path) -> None:
    drawn = {"sampler_type": "uniform", "sampler_parameters": {"seed": 3}}
    settings = {"env_settings": {"num_envs": 1}, "summary_freq": 64}

    def lowest(folder: Path, max_steps: int, *, resume: bool) -> float:
        start = {"checkpoint_settings": {"resume": resume}, "max_steps": max_steps}
        summary = run_to_end(config_of(folder, {"grade": drawn}, **settings, **start)).of(MetricsReported)[0]
        assert summary.returns is not None
        return summary.returns.minimum  # of the first 16 episodes

    first = lowest(tmp_path / "one", 64, resume=False)
    assert lowest(tmp_path / "one", 128, resume=True) != first
    assert lowest(tmp_path / "other", 64, resume=False) == first


def test_a_run_that_is_only_initialized_from_another_begins_at_the_first_lesson(tmp_path: Path) -> None:
    run_to_end(config_of(tmp_path, lessons(3.0)))
    start = {"checkpoint_settings": {"run_id": "other", "initialize_from": "run"}, "max_steps": 16}
    run = run_to_end(config_of(tmp_path, lessons(3.0), **start))
    assert run.of(ParametersReported)[0].parameters["grade"].lesson == 1


def test_a_roll_back_returns_to_the_lesson_of_its_checkpoint(tmp_path: Path) -> None:
    with live(config_of(tmp_path, lessons(NEVER), max_steps=ENDLESS, keep_checkpoints=0)) as run:
        run.wait_for(MetricsReported)
        saved = Path(run.send(SaveCheckpoint("Walker")).message)
        assert read_values(saved)[0].part("lessons").values["lessons"] == {"grade": 0}
        assert run.send(SetLesson("grade", 2)).ok
        run.wait_for(EpisodesFinished, lambda event: event.mean_return == 8.0)
        after = len(run.mail)
        assert run.send(RollBack("Walker", str(saved))).ok
        changed = run.wait_for(LessonChanged, after=after)
        assert (changed.lesson, changed.step) == (1, read_values(saved)[1].step)
        run.wait_for(EpisodesFinished, lambda event: event.mean_return == 4.0, after=after)


def test_a_lesson_is_changed_by_hand_also_while_paused(tmp_path: Path) -> None:
    with live(config_of(tmp_path, lessons(NEVER, NEVER), max_steps=ENDLESS)) as run:
        run.wait_for(EpisodesFinished, lambda event: event.mean_return == 4.0)
        assert run.send(Pause()).ok
        assert run.send(SetLesson("grade", 3)).message == "grade: lesson 3 of 3 'grade 3'"
        assert changes_of(run) == [("grade 3", 3)]
        assert run.send(Resume()).ok
        run.wait_for(EpisodesFinished, lambda event: event.mean_return == 12.0)
        assert run.send(SetLesson("grade", 1)).ok
        run.wait_for(EpisodesFinished, lambda event: event.mean_return == 4.0, after=len(run.mail))
        run.send(Stop())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SetLesson("grade", 4), "lesson: must be from 1 to 3, got 4"),
        (SetLesson("grade", 0), "lesson: must be from 1 to 3, got 0"),
        (SetLesson("other", 1), "parameter: must be one of grade, mass, got 'other'"),
        (SetLesson("mass", 1), "mass has no lessons"),
    ],
)
def test_a_lesson_that_there_is_not_is_refused(tmp_path: Path, command: SetLesson, said: str) -> None:
    with live(config_of(tmp_path, {**lessons(NEVER, NEVER), "mass": 2}, max_steps=ENDLESS)) as run:
        run.wait_for(EpisodesFinished)
        outcome = run.send(command)
        assert (outcome.ok, outcome.message) == (False, said)


def test_evaluations_play_the_current_lesson(tmp_path: Path) -> None:
    evaluation = {"interval": 128, "episodes": 2}
    run = run_to_end(config_of(tmp_path, lessons(3.0), evaluation=evaluation))
    assert run.of(EvaluationReported)[-1].mean_return == 8.0


def test_a_saved_policy_is_evaluated_at_the_lesson_that_it_has_reached(tmp_path: Path) -> None:
    run = run_to_end(config_of(tmp_path, lessons(3.0)))
    request = EvaluationRequest(episodes=2, seed=1, ways=("greedy",))
    assert SavedRun(run.folder).play(request).scores["greedy"].returns.tolist() == [8.0, 8.0]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_environment_without_parameters_is_refused_at_the_start(tmp_path: Path, num_workers: int) -> None:
    config = config_of(tmp_path, {"grade": 1}, "toy:one-step", env_settings={"num_workers": num_workers})
    with live(config) as run:
        assert run.wait() == ConfigError.exit_code
    assert "environment_parameters: toy:one-step must have a method set_parameters" in run.events[-1].reason  # type: ignore[union-attr]
