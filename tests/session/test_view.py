"""The view: a pure fold of the run's events."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.session.behavior_view import EVALUATION
from rl_tui.engine.session.codec import decode, encode
from rl_tui.engine.session.league_view import RATING, Games, LeagueView
from rl_tui.engine.session.messages import (
    OWN_FILE,
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    ExportFailed,
    Gpu,
    HyperparameterChanged,
    HyperparametersReported,
    LeagueReported,
    LeagueSnapshot,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    NoteAdded,
    PolicyExported,
    ProgressReported,
    RanksReported,
    RankStatus,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WarningCleared,
    WarningRaised,
    Worker,
    WorkerFailed,
    WorkersSampled,
)
from rl_tui.engine.session.returns import RECENT_EPISODES
from rl_tui.engine.session.view import (
    CHANGES_KEPT,
    COMMANDS_KEPT,
    EVALUATIONS_KEPT,
    LESSONS_KEPT,
    LOG_LINES,
    NOTES_KEPT,
    RunView,
)

RUN = RunStarted("first", "results/first", 1, "cpu", False, {"torch": "2"})
REWARD = "Environment/Cumulative Reward"


def started(name: str = "B", step: int = 0) -> BehaviorStarted:
    return BehaviorStarted(name, "ppo", "gymnasium:CartPole-v1", step, 1000, 8, 5000, False)


def episodes(step: int, mean: float = 1.0, count: int = 1, name: str = "B") -> EpisodesFinished:
    return EpisodesFinished(name, step, count, mean, mean, mean, 10.0)


def summary(step: int, mean: float | None, name: str = "B") -> MetricsReported:
    metrics = {"Policy/Entropy": 0.5} | ({} if mean is None else {REWARD: mean})
    return MetricsReported(name, step, 1.0, metrics, mean, None if mean is None else 0.0, None, True)


def evaluated(step: int, mean: float) -> EvaluationReported:
    return EvaluationReported("B", step, mean, 12.25, 10, 200.0, 1.5)


def saved(step: int, is_best: bool = False, mean: float | None = 1.0) -> CheckpointSaved:
    return CheckpointSaved("B", step, f"results/first/B/{step}", "interval", mean, is_best, 100, 0.1)


def removed(step: int) -> CheckpointRemoved:
    return CheckpointRemoved("B", step, f"results/first/B/{step}")


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
    evaluated(10, 7.0),
    evaluated(20, 6.0),
    LeagueReported("B", 20, 1203.5, 0, True, (0, 1), 7, (LeagueSnapshot(0, 1196.5, 2, 1, 4, True),), 100),
    TimeSplit("A", 1.0, 0.5, 0.3, 0.1, 0.0),
    DevicesSampled((), "no NVIDIA driver", 5.0, 2, 1, 2, 3, 4, 5),
    RanksReported((RankStatus(0, "a", "cpu", 10.0, 0.2), RankStatus(1, "a", "cpu", 10.0, 0.4))),
    saved(20, True),
    saved(40),
    CheckpointRemoved("B", 20, "results/first/B/20"),
    CheckpointFailed("B", 60, "interval", "disk full"),
    PolicyExported("B", 40, "results/first/B.onnx", 1e-7, 0.2),
    ExportFailed("B", 60, "differs"),
    LogEmitted("warning", "B", "normalize has no effect"),
    CommandAsked("1", "Pause", None),
    CommandFinished("1", True, "paused"),
    HyperparametersReported("B", {"beta": 0.005, "num_epoch": 3.0}),
    HyperparameterChanged("B", 30, "beta", 0.005, 0.25),
    LessonChanged("B", 35, "wall", 2, 3, "higher"),
    NoteAdded("warmer"),
    WarningRaised("entropy", "B", "entropy 0.01", "raise beta"),
    BehaviorRolledBack("B", 16, 40, "results/first/B/16"),
    WarningCleared("entropy", "B"),
    EnvironmentAwaits("gymnasium:CartPole-v1", "press Play"),
    EnvironmentAwaits("gymnasium:CartPole-v1", ""),
    EnvironmentRestarting("gymnasium:CartPole-v1", 1, ("B",), "died", "trace", 1),
    EnvironmentRestarted("gymnasium:CartPole-v1", 1, 2.5),
    WorkersSampled("gymnasium:CartPole-v1", ("B",), (Worker(0, 7, 900.0, 0.25, 1, 2, 5), Worker(1, *[None] * 4, 0, 0))),
    EnvironmentFailed("gymnasium:CartPole-v1", ("B",), "hung", "trace"),
    WorkerFailed("learner:B", "ValueError: no", "trace"),
    BehaviorStateChanged("B", "failed", "its environment hung"),
    RunStateChanged("failed", "a worker failed", 1),
)


def test_the_story_of_a_run():
    view = fold(*STORY)
    a, b = view.behaviors.values()
    assert (a.name, a.step, a.sampled, a.state) == ("A", 10, 12, "training")
    assert (b.state, b.reason, b.num_episodes, b.mean_return) == ("failed", "its environment hung", 2, None)
    assert (list(b.returns.steps), list(b.returns.mean)) == ([8.0, 16.0], [3.0, 5.0])
    assert b.step == 16
    assert b.hyperparameters == {"beta": 0.25, "num_epoch": 3.0}
    assert [note.text for note in view.notes] == ["warmer"]
    assert (view.warnings, view.num_warnings) == ({}, 1)
    assert [event.step for _, event in b.checkpoints] == [40]
    assert b.metrics == {}, "the summary was of a step beyond the one it went back to"
    assert (view.state, view.exit_code, view.steps_per_second) == ("failed", 1, 100.0)
    assert view.last_checkpoint_at == 1018.0
    assert view.devices is not None
    kinds = [line.kind for line in view.log]
    ours = {"EVAL", "SET", "LESSON", "NOTE", "WARN", "CLEAR", "BACK"}
    assert {"RUN", "STATE", "CKPT", "ONNX", "WARNING", "KEY", "ENV", "BUG"} | ours <= set(kinds)


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


def behavior_after(*events):
    return fold(*events).behaviors["B"]


@pytest.mark.parametrize("state", ["paused", "finished", "failed"])
def test_a_behavior_that_does_not_train_has_no_speed(state):
    reported = ProgressReported("B", 10, 10, 100.0, 1)
    training = (BehaviorStateChanged("B", "training"), reported)
    assert behavior_after(*training).steps_per_second == 100.0
    behavior = behavior_after(*training, BehaviorStateChanged("B", state))
    assert behavior.steps_per_second == 0.0
    behavior = behavior_after(*training, BehaviorStateChanged("B", state), reported)
    assert (behavior.steps_per_second, behavior.step) == (0.0, 10), "the last report comes after the end"
    again = behavior_after(*training, BehaviorStateChanged("B", state), *training)
    assert again.steps_per_second == 100.0


def test_the_mean_return_is_that_of_the_last_hundred_episodes():
    behavior = behavior_after(episodes(1, 0.0, 150), episodes(2, 10.0, 30))
    assert behavior.mean_return == pytest.approx((70 * 0.0 + 30 * 10.0) / 100)
    behavior = behavior_after(episodes(1, 0.0, 150), episodes(2, 10.0, 30), episodes(3, 20.0, 70))
    assert behavior.mean_return == pytest.approx((30 * 10.0 + 70 * 20.0) / 100), "the first 150 lie before"
    assert (behavior.num_episodes, behavior.recent.count) == (250, RECENT_EPISODES)
    behavior = behavior_after(episodes(1, 4.0, 2), episodes(2, 10.0, 1))
    assert (behavior.mean_return, behavior.recent.count) == (6.0, 3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.floats(-1e6, 1e6)), min_size=1, max_size=50))
def test_the_mean_return_weighs_every_episode_alike(groups):
    behavior = behavior_after(*(episodes(step, mean, count) for step, (count, mean) in enumerate(groups)))
    newest = [mean for count, mean in groups for _ in range(count)][-RECENT_EPISODES:]
    assert behavior.mean_return == pytest.approx(sum(newest) / len(newest), abs=1e-6)
    assert behavior.recent.count == len(newest)
    assert len(behavior.recent.groups) <= RECENT_EPISODES


def test_the_best_return_is_that_of_the_best_checkpoint_on_disk():
    assert behavior_after(episodes(1, 50.0, 200)).best_return is None, "no checkpoint holds that policy"
    reported = (saved(10, mean=3.0), saved(20, True, 9.0), saved(30, mean=7.0), saved(40, mean=None))
    assert behavior_after(*reported).best_return == 9.0
    assert behavior_after(*reported, removed(20)).best_return == 7.0
    assert behavior_after(*reported, saved(50, mean=float("nan"))).best_checkpoint == reported[1]
    assert behavior_after(*reported, saved(50, mean=9.0)).best_checkpoint == reported[1], "the first of equals"


def test_after_a_roll_back_nothing_of_the_given_up_course_counts():
    learned = [started(), episodes(40, 30.0, 50), summary(40, 30.0), saved(50, True, 30.0), evaluated(50, 31.0)]
    given_up = [
        *(episodes(100, 90.0, 100), summary(100, 90.0), saved(100, True, 90.0), evaluated(100, 91.0)),
        PolicyExported("B", 100, "results/first/B/B-100.onnx", 0.0, 0.1),
    ]
    before = behavior_after(*learned)
    after = behavior_after(*learned, *given_up, removed(100), BehaviorRolledBack("B", 50, 110, "results/first/B/50"))
    assert (after.mean_return, after.mean_length, after.histogram) == (None, None, None)
    assert (after.best_return, after.best_evaluation) == (30.0, evaluated(50, 31.0))
    assert (after.num_episodes, after.metrics, after.exports) == (50, before.metrics, [])
    for tag, history in after.histories.items():
        assert list(history.mean) == list(before.histories[tag].mean)
    again = behavior_after(
        *learned, *given_up, removed(100), BehaviorRolledBack("B", 50, 110, "results/first/B/50"), episodes(60, 20.0, 3)
    )
    assert (again.mean_return, again.num_episodes) == (20.0, 53)


def test_where_a_killed_run_goes_on_from_an_earlier_step_what_came_after_it_does_not_count():
    reported = [started(), episodes(40, 30.0, 50), saved(50, True, 30.0), episodes(90, 99.0, 100), evaluated(90, 95.0)]
    behavior = behavior_after(*reported, started(step=50), episodes(60, 20.0, 3))
    assert (behavior.mean_return, behavior.num_episodes) == (20.0, 53)
    assert (behavior.best_return, behavior.best_evaluation) == (30.0, None)


def test_no_episodes_are_no_point():
    assert len(behavior_after(started(), episodes(1, 1.0, 0)).returns) == 0


def test_metrics_each_have_a_curve():
    behavior = behavior_after(summary(20, 4.0), summary(40, None), summary(60, float("nan")))
    assert list(behavior.histories[REWARD].steps) == [20.0, 60.0]
    assert list(behavior.histories[REWARD].broken) == [0, 1]
    assert list(behavior.histories["Policy/Entropy"].mean) == [0.5, 0.5, 0.5]


def test_a_roll_back_goes_back_in_every_curve_and_its_marks():
    reported = [
        *(started(), episodes(10), summary(10, 1.0), episodes(90), summary(90, 2.0)),
        *(HyperparameterChanged("B", 10, "beta", 0.1, 0.2), HyperparameterChanged("B", 80, "beta", 0.2, 0.3)),
        *(LessonChanged("B", 20, "wall", 2, 3), LessonChanged("B", 85, "wall", 3, 3)),
        BehaviorRolledBack("B", 50, 95, "results/first/B/50"),
    ]
    behavior = behavior_after(*reported, HyperparameterChanged("B", 50, "beta", 0.3, 0.2), episodes(60))
    assert (behavior.step, behavior.sampled, behavior.first_step) == (50, 50, 0)
    assert list(behavior.returns.steps) == [10.0, 60.0]
    assert list(behavior.histories[REWARD].steps) == [10.0]
    assert [change.step for _, change in behavior.changes] == [10, 50]
    assert [lesson.lesson for _, lesson in behavior.lessons] == [2]
    assert [event.from_step for _, event in behavior.rollbacks] == [95]
    assert behavior.hyperparameters == {"beta": 0.2}


def test_evaluations_have_a_curve_beside_that_of_training_and_the_best_is_kept():
    mean = MetricsReported("B", 30, 1.0, {EVALUATION: 6.0}, None, None, None, True)  # of a summary, for other readers
    behavior = behavior_after(started(), episodes(40, 3.0), evaluated(20, 7.0), evaluated(40, 5.0), mean)
    assert list(behavior.histories[EVALUATION].steps) == [20.0, 40.0]
    assert list(behavior.histories[EVALUATION].mean) == [7.0, 5.0]
    assert (behavior.evaluation, behavior.best_evaluation) == (evaluated(40, 5.0), evaluated(20, 7.0))
    assert list(behavior.returns.mean) == [3.0]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_an_evaluation_that_is_no_number_is_no_best(broken):
    behavior = behavior_after(evaluated(20, broken), evaluated(40, -5.0))
    assert behavior.best_evaluation == evaluated(40, -5.0)
    assert list(behavior.histories[EVALUATION].broken) == [1, 0]


def test_a_roll_back_takes_the_evaluations_of_what_was_given_up_with_it():
    reported = (started(), evaluated(20, 1.0), evaluated(60, 2.0))
    for goes_back in (BehaviorRolledBack("B", 50, 60, "p"), started(step=50)):
        behavior = behavior_after(*reported, goes_back)
        assert (behavior.evaluation, behavior.best_evaluation) == (evaluated(20, 1.0), evaluated(20, 1.0))
        assert list(behavior.histories[EVALUATION].steps) == [20.0]
    kept = behavior_after(*reported, BehaviorRolledBack("B", 60, 70, "p"))
    assert kept.evaluation == kept.best_evaluation == evaluated(60, 2.0)


def test_an_evaluation_stands_in_the_log_with_its_figures():
    figures = "return 487.2 sd 12.2, length 200.0, 10 episodes in 1.5 s"
    assert fold(evaluated(20, 487.21)).log[-1].message == f"step 20 evaluated: {figures}"


def league(step, team=0, rating=1200.0, *snapshots, teams=(0, 1)):
    return LeagueReported("B", step, rating, team, team in teams, teams, step // 2, snapshots)


def test_the_newest_report_of_a_league_counts_and_since_when_its_team_learns():
    behavior = behavior_after(replace(started(), teams=(0, 1), plays_itself=True), league(20), league(40))
    assert behavior.plays_itself
    assert behavior.league == LeagueView(league(40), 20, 1002.0)
    behavior = behavior_after(league(20), league(40), league(60, 1), league(80, 1))
    assert behavior.league == LeagueView(league(80, 1), 60, 1003.0)


def test_games_of_the_policy_that_learns_are_those_of_its_snapshots_from_the_other_side():
    behavior = behavior_after(league(20, 0, 1210.0, LeagueSnapshot(0, 1195.0, 1, 2, 3), LeagueSnapshot(9, 1.0, 4)))
    assert behavior.league is not None
    assert behavior.league.games == Games(won=3, drawn=2, lost=5)
    assert (behavior.league.games.win_rate, behavior.league.games.score) == (0.3, 0.4)
    assert Games().win_rate is Games().score is None
    assert [behavior_after(league(20, teams=teams)).league.is_symmetric for teams in ((0, 1), (1,))] == [True, False]


def test_rating_is_that_of_the_newest_report_and_its_curve_that_of_the_summaries():
    reported = replace(summary(20, 0.0), metrics={RATING: 1207.5})
    plays = replace(started(), plays_itself=True)
    assert behavior_after(plays).rating is None
    behavior = behavior_after(plays, league(10, 0, 1203.0), reported, episodes(20))
    assert (behavior.rating, list(behavior.course.mean)) == (1203.0, [1207.5])
    assert behavior_after(plays, reported).rating == 1207.5
    assert list(behavior_after(started(), reported, episodes(20, 3.0)).course.mean) == [3.0]


def test_a_roll_back_forgets_ratings_of_what_was_given_up():
    reported = (replace(summary(20, 0.0), metrics={RATING: 1207.5}), league(60, 0, 1300.0))
    for goes_back in (BehaviorRolledBack("B", 50, 60, "p"), started(step=50)):
        assert behavior_after(started(), *reported, goes_back).rating == 1207.5
    assert behavior_after(started(), *reported, BehaviorRolledBack("B", 60, 70, "p")).rating == 1300.0


def test_a_replay_buffer_is_known_from_the_start():
    event = BehaviorStarted("B", "sac", "x", 0, 1000, 8, 5000, False, 500, 40_000, 100)
    behavior = behavior_after(event)
    assert (behavior.replay_steps, behavior.replay_bytes, behavior.first_update_step) == (500, 40_000, 100)


def test_what_may_be_changed_is_what_was_reported_last():
    reports = [HyperparametersReported("B", {"beta": 0.1, "lambd": 0.9}), HyperparametersReported("B", {"beta": 0.2})]
    assert behavior_after(*reports).hyperparameters == {"beta": 0.2}


def test_a_lesson_is_met_by_every_behavior_that_acts_at_its_own_step():
    view = fold(
        *(started("A"), started("B"), started("C"), BehaviorStateChanged("C", "finished")),
        *(ProgressReported("A", 7, 7, 1.0, 0), ProgressReported("B", 30, 30, 1.0, 0)),
        LessonChanged("B", 30, "wall", 2, 3, "higher"),
    )
    steps = {name: [event.step for _, event in behavior.lessons] for name, behavior in view.behaviors.items()}
    assert steps == {"A": [7], "B": [30], "C": []}
    assert [entry.kind for entry in view.log].count("LESSON") == 1


def test_a_note_keeps_how_far_each_behavior_was():
    view = fold(started("A"), started("B", 7), NoteAdded("warmer", "A"), started("B", 9), NoteAdded("again"))
    assert [(note.time, note.text, note.behavior, note.steps) for note in view.notes] == [
        (1003.0, "warmer", "A", {"A": 0, "B": 7}),
        (1005.0, "again", None, {"A": 0, "B": 9}),
    ]


def test_what_is_listed_is_bounded_and_keeps_the_newest():
    many = 2 * max(NOTES_KEPT, LESSONS_KEPT, CHANGES_KEPT, EVALUATIONS_KEPT)
    view = fold(
        *(NoteAdded(str(number)) for number in range(many)),
        *(LessonChanged("B", number, "wall", number, many) for number in range(many)),
        *(HyperparameterChanged("B", number, "beta", 0.1, 0.2) for number in range(many)),
        *(evaluated(number, 1.0) for number in range(many)),
    )
    behavior = view.behaviors["B"]
    assert (len(view.notes), len(behavior.lessons), len(behavior.changes)) == (NOTES_KEPT, LESSONS_KEPT, CHANGES_KEPT)
    assert (len(behavior.evaluations), behavior.evaluation) == (EVALUATIONS_KEPT, evaluated(many - 1, 1.0))
    assert view.notes[-1].text == str(many - 1)
    assert (behavior.lessons[-1][1].step, behavior.changes[-1][1].step) == (many - 1, many - 1)


def test_a_warning_holds_until_it_is_cleared_or_the_run_starts_again():
    one, other = WarningRaised("kl", "A", "KL 6x", "lower it"), WarningRaised("kl", "B", "KL 9x", "lower it")
    view = fold(one, other, WarningRaised("kl", "B", "KL 12x", "lower it"))
    assert {key: event.message for key, (_, event) in view.warnings.items()} == {
        ("kl", "A"): "KL 6x",
        ("kl", "B"): "KL 12x",
    }
    fold(WarningCleared("kl", "A"), WarningCleared("disk", ""), view=view, start=4)
    assert list(view.warnings) == [("kl", "B")]
    assert view.log[-1].message == "cleared: KL 6x"
    assert fold(RUN, view=view, start=6).warnings == {}
    assert view.num_warnings == 3


def test_devices_have_a_curve_each_and_none_where_nothing_is_known():
    gpus = (Gpu(0, "H", 50.0, 1, 2, 1.0, 1.0, 1.0, True), Gpu(1, "H", None, 1, 2, 1.0, 1.0, 1.0, False))
    sample = DevicesSampled(gpus, "", 20.0, 2, 1, 4, 3, 4, 5)
    histories = fold(sample, sample).device_histories
    assert {name: list(history.mean) for name, history in histories.items()} == {
        "gpu 0": [50.0, 50.0],
        "gpu 0 memory": [50.0, 50.0],
        "gpu 1 memory": [50.0, 50.0],
        "cpu": [20.0, 20.0],
        "memory": [25.0, 25.0],
    }
    assert list(histories["cpu"].times) == [1001.0, 1002.0]


def test_ranks_are_those_of_the_process_that_trains():
    reported = RanksReported((RankStatus(0, "a", "cpu", 10.0, 0.2), RankStatus(1, "a", "cpu", 10.0, 0.4)))
    view = fold(RUN, reported)
    assert view.ranks.statuses == reported.ranks
    assert fold(RUN, view=view, start=3).ranks.statuses == (), "a resumed run may have one"


def test_a_checkpoint_saved_again_stands_once():
    behavior = behavior_after(saved(20, True), saved(40), saved(20))
    assert [(at, event.step, event.is_best) for at, event in behavior.checkpoints] == [
        (1002.0, 40, False),
        (1003.0, 20, False),
    ]


def test_a_resumed_run_goes_on_from_its_checkpoint():
    view = fold(
        RUN, started(), episodes(10), summary(10, 1.0), episodes(90), summary(90, 2.0), RunStateChanged("failed", "", 1)
    )
    resumed = RunStarted("first", "results/first", 1, "cpu", True, {})
    fold(resumed, started(step=50), episodes(60), view=view)
    behavior = view.behaviors["B"]
    assert (view.state, view.exit_code) == ("starting", None)
    assert behavior.step == 50
    assert list(behavior.returns.steps) == [10.0, 60.0]
    assert list(behavior.histories[REWARD].steps) == [10.0]


def test_a_command_is_asked_then_done_or_failed():
    view = fold(CommandAsked("1", "SaveCheckpoint", "B"), CommandAsked("2", "Pause", None))
    assert [command.state for command in view.commands.values()] == ["pending", "pending"]
    fold(CommandFinished("2", False, "already paused"), CommandFinished("1", True, "results/x"), view=view, start=3)
    assert [(c.state, c.message) for c in view.commands.values()] == [
        ("done", "results/x"),
        ("failed", "already paused"),
    ]
    assert view.log[-1].message == "checkpoint done: results/x"
    assert view.log[-2].level == "error"


def test_newest_command_is_the_one_that_changed_last_unless_it_was_undone():
    view = fold(CommandAsked("p", "Pause", "B"), CommandAsked("c", "SaveCheckpoint", "B", "checkpoint B"))
    assert (view.newest_command, view.commands["p"].label) == ("c", "pause")
    fold(CommandFinished("p", True, ""), view=view, start=3)
    assert (view.newest_command, view.commands["p"].seconds) == ("p", 2.0)
    fold(CommandAsked("q", "Pause", "B"), CommandAsked("r", "Resume", "B"), view=view, start=5)
    fold(CommandFinished("q", False, "resumed before it was paused"), view=view, start=7)
    assert view.newest_command == "r"
    assert [command.id for command in view.pending_commands] == ["c", "r"]


def test_what_an_earlier_process_was_asked_is_not_pending():
    view = RunView()
    view.apply(Envelope(7, 1.0, CommandAsked("1", "SaveCheckpoint", "B"), 1))
    view.apply(Envelope(1, 2.0, CommandAsked("2", "SaveCheckpoint", "B"), 2))
    assert [command.id for command in view.pending_commands] == ["2"]


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


def test_behavior_that_has_not_appeared_is_absent_once_others_have() -> None:
    view = RunView()
    view.behavior("Late")  # as the configuration names it
    early, late = view.behavior("B"), view.behaviors["Late"]
    for number, event in enumerate([RUN, started()]):
        view.apply(Envelope(number, 100.0, event))
        assert not view.is_absent(late), "the run is starting"
    view.apply(Envelope(2, 100.0, RunStateChanged("training")))
    assert (view.is_absent(early), view.is_absent(late)) == (False, True)
    view.apply(Envelope(3, 100.0, started("Late")))
    assert not view.is_absent(late)
    for number, event in enumerate([replace(RUN, resumed=True), started(), RunStateChanged("training")]):
        view.apply(Envelope(4 + number, 100.0, event))
    assert view.is_absent(late), "a resumed run has new environments"


def test_workers_that_restart_and_what_is_awaited_are_shown_until_the_environment_acts_again():
    restarting = [EnvironmentRestarting("unity:Ball", worker, ("B",), "died", "", 1) for worker in (0, 2)]
    view = fold(*restarting, EnvironmentRestarted("unity:Ball", 0, 2.5), EnvironmentAwaits("unity:Ball", "press Play"))
    environment = view.environments["unity:Ball"]
    assert (list(environment.restarting), environment.num_restarts) == ([2], 2)
    assert (environment.behaviors, environment.awaited) == (("B",), "press Play")
    assert [line.message for line in view.log] == [
        "player 0, restart 1: died",
        "player 2, restart 1: died",
        "player 0 acts again after 2.5 s",
        "unity:Ball: press Play",
    ]
    ended = fold(*restarting, EnvironmentFailed("unity:Ball", ("B",), "died", ""))
    assert ended.environments == {}


def sampled(*speeds: float | None, behavior: str = "B") -> WorkersSampled:
    workers = [Worker(number, 40 + number, speed, 0.5, 0, 0, 1 << 20) for number, speed in enumerate(speeds)]
    return WorkersSampled("unity:Ball", (behavior,), tuple(workers))


def test_workers_are_those_of_the_newest_sample() -> None:
    workers = fold(sampled(10.0, 20.0), sampled(30.0, None)).environments["unity:Ball"].workers["B"]
    assert workers.workers == sampled(30.0, None).workers
    assert workers.total.steps_per_second == 30.0


def test_two_environments_of_one_name_have_workers_of_their_own() -> None:
    workers = fold(sampled(1.0, behavior="A"), sampled(2.0, 3.0), sampled(4.0, behavior="A")).environments["unity:Ball"]
    assert {name: len(each.workers) for name, each in workers.workers.items()} == {"A": 1, "B": 2}


def test_workers_are_kept_as_they_were_when_their_environment_failed_until_the_run_goes_on() -> None:
    failed = fold(sampled(1.0), EnvironmentFailed("unity:Ball", ("B",), "died", ""))
    assert [each.workers for each in failed.workers] == [sampled(1.0).workers]
    assert failed.environments["unity:Ball"].restarting == {}
    assert fold(sampled(1.0), RUN).environments == {}


def test_sources_of_settings_outlive_a_resume_from_the_own_file() -> None:
    steps, rate, seed, beta = ("steps",), ("rate",), ("seed",), ("beta",)
    first = replace(RUN, sources={"preset": (steps,), "--set": (rate,)})
    own = replace(RUN, resumed=True, sources={OWN_FILE: (steps, rate, beta), "--seed": (seed,)})
    view = RunView()
    for number, event in enumerate((first, own), start=1):
        view.apply(decode(encode(Envelope(number, 1.0, event))))
    assert view.sources == {steps: "preset", rate: "--set", seed: "--seed"}, "beta has its default"
    older = RunView()
    for number, event in enumerate((RUN, own), start=1):
        older.apply(Envelope(number, 1.0, event))
    assert older.sources == {steps: "file", rate: "file", beta: "file", seed: "--seed"}, "all that is known"
