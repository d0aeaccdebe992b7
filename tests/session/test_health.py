"""Warnings about a run's health: each rule's story, and no warning about good runs."""

import math
import random
import re
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.running.trainer_health import trainer_health
from rl_tui.engine.session.health.monitor import LONGEST_MESSAGE, HealthMonitor
from rl_tui.engine.session.health.rules import Finding, TrainerHealth, metric
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    Gpu,
    HyperparametersReported,
    LeagueReported,
    LeagueSnapshot,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    ProgressReported,
    RanksReported,
    RankStatus,
    RunProcess,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WarningCleared,
    WarningRaised,
)

GIB = 1 << 30
RUN = RunStarted("first", "results/first", 1, "cpu", False, {})
ENTROPY, KL, CLIP = "Policy/Entropy", "Policy/KL Divergence", "Policy/Clip Fraction"
VALUE_LOSS = "Losses/Value Loss"
Q1, Q2, COEFFICIENT = "Losses/Q1 Loss", "Losses/Q2 Loss", "Policy/Continuous Entropy Coeff"


class Story:
    """A run event by event; `warnings` are those so far. Its behavior is in that state."""

    def __init__(
        self, algorithm="ppo", state="training", num_agents=8, step=0, health_of=trainer_health, goal=10_000_000, **plan
    ):
        self.watch = HealthMonitor(health_of)
        self.warnings = []
        self.name = "Walker"
        self.time = 1000.0
        self.number = 0
        self.step = self.sampled = step
        self.publish(RUN)
        environment = "gymnasium:Walker"
        self.publish(BehaviorStarted(self.name, algorithm, environment, step, goal, num_agents, 5000, False, **plan))
        self.publish(RunStateChanged("training"))
        self.publish(BehaviorStateChanged(self.name, state))

    def publish(self, event, after=0.0):
        self.number += 1
        self.time += after
        new = self.watch.apply(Envelope(self.number, self.time, event))
        self.warnings += new
        return new

    def steps(self, count=1000, after=1.0, updates=0):
        self.step += count
        self.sampled += count
        rate = count / max(after, 1e-9)
        return self.publish(ProgressReported(self.name, self.step, self.sampled, rate, updates), after)

    def summary(self, metrics=None, mean=5.0, std=10.0, episodes=100):
        """50 000 steps in 10 seconds, episodes with that mean, and their summary."""
        low, high = mean - std, mean + std
        new = self.publish(EpisodesFinished(self.name, self.step + 50_000, episodes, mean, low, high, 100.0), 10.0)
        new += self.steps(50_000, 0.0)
        return new + self.publish(MetricsReported(self.name, self.step, 1.0, metrics or {}, mean, std, None, True))

    def summaries(self, tag, values, **others):
        return [warning for value in values for warning in self.summary({tag: value}, **others)]

    @property
    def raised(self):
        return [event for event in self.warnings if isinstance(event, WarningRaised)]

    @property
    def open(self):
        kinds = {}
        for event in self.warnings:
            if isinstance(event, WarningRaised):
                assert (event.kind, event.behavior) not in kinds, "raised twice"
                kinds[event.kind, event.behavior] = event
            elif isinstance(event, WarningCleared):
                del kinds[event.kind, event.behavior]
        return {kind for kind, _ in kinds}


def only(warnings):
    """The one warning among them, which was raised."""
    (warning,) = warnings
    assert isinstance(warning, WarningRaised)
    assert warning.message
    assert warning.advice
    return warning


def numbers(message):
    """What a warning has measured; its words are in messages.txt."""
    return re.findall(r"-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?", message)


# --------------------------------------------------------------------------------------------------------- learning


def test_a_collapsed_entropy_is_warned_about_once_with_its_value_and_since_when():
    story = Story()
    assert story.summaries(ENTROPY, [1.38, 1.2, 0.9, 0.4, 0.02, 0.01]) == []
    warning = only(story.summaries(ENTROPY, [0.003, 0.002, 0.001, 0.0]))
    assert (warning.kind, warning.behavior) == ("entropy_collapse", "Walker")
    assert numbers(warning.message) == ["0.003", "250"]
    assert "beta" in warning.advice


def test_an_entropy_that_only_hovers_at_the_limit_changes_nothing():
    story = Story()
    story.summaries(ENTROPY, [1.0, 1.0, 1.0, 0.01, 0.01, 0.01])
    assert story.open == {"entropy_collapse"}
    assert story.summaries(ENTROPY, [0.025, 0.015, 0.03, 0.01]) == []
    assert story.summaries(ENTROPY, [0.2]) == [WarningCleared("entropy_collapse", "Walker")]


def test_a_deterministic_policy_that_is_good_has_not_collapsed():
    story = Story()
    for entropy, mean in zip([0.69, 0.6, 0.3, 0.1, 0.01, 0.002, 0.001, 0.001], range(20, 500, 60), strict=True):
        story.summary({ENTROPY: entropy}, mean=float(mean))
    assert story.warnings == []
    story.summaries(ENTROPY, [0.001] * 3, mean=100.0)
    assert "entropy_collapse" in story.open


def test_continuous_actions_may_have_a_negative_entropy_but_not_any():
    story = Story(goal=1_000_000_000)
    assert story.summaries(ENTROPY, [1.42 - 0.06 * number for number in range(60)]) == []
    warning = only(story.summaries(ENTROPY, [-3.2, -3.4, -3.6, -3.8]))
    assert numbers(warning.message) == ["-3.6", "3.05", "0.007"]
    assert story.summaries(ENTROPY, [-2.8, -2.7]) == []
    assert story.summaries(ENTROPY, [-2.0]) == [WarningCleared("entropy_collapse", "Walker")]


def test_advice_names_what_the_trainer_has():
    story = Story("sac")
    assert "init_entcoef" in only(story.summaries(ENTROPY, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])).advice


def test_the_entropy_of_soft_actor_critic_is_judged_by_its_target():
    """It is the sum over all actions: with six of them -6 is where it should be."""
    story = Story("sac")
    assert story.summaries(ENTROPY, [4.0, 1.0, -5.0, -5.8, *[-6.1] * 10, *[-30.0] * 5]) == [], "no target is known"
    story.publish(HyperparametersReported("Walker", {"learning_rate": 3e-4, "target_entropy": -6.0}))
    assert story.summaries(ENTROPY, [-6.1, -17.0, -20.0, -20.0]) == []
    warning = only(story.summaries(ENTROPY, [-20.0, -21.0]))
    assert numbers(warning.message) == ["-20", "1.1", "-6"]
    assert "target_entropy" in warning.advice
    assert story.summaries(ENTROPY, [-6.0]) == [WarningCleared("entropy_collapse", "Walker")]


def test_a_roll_back_keeps_what_a_behavior_is():
    story = Story("sac", replay_steps=1000)
    story.publish(HyperparametersReported("Walker", {"target_entropy": -1.0}))
    story.publish(BehaviorRolledBack("Walker", 0, story.step, "x"))
    assert story.summary({ENTROPY: -0.5})[0].kind == "no_updates"
    assert "target -1" in only(story.summaries(ENTROPY, [-0.5, -0.5, -5.0, -5.0, -5.0])).message


def test_q_functions_that_diverge_are_warned_about_once_with_their_values():
    story = Story("sac")
    for _ in range(12):
        assert story.summary({Q1: 2.0, Q2: 3.0, VALUE_LOSS: 1.0, "Policy/Extrinsic Value": 40.0}) == []
    warnings = []
    for power in range(8):
        loss = 3.0 * 4.0**power
        warnings += story.summary({Q1: 1.0, Q2: loss, VALUE_LOSS: loss, "Policy/Extrinsic Value": 1e4}, mean=4.0)
    warning = only(warnings)
    assert warning.kind == "q_divergence"
    assert numbers(warning.message) == ["3072", "1024", "3", "1e+04"]
    assert story.summary({Q1: 3.0, Q2: 3.0}) == [WarningCleared("q_divergence", "Walker")]


def test_q_losses_may_grow_with_the_returns():
    story = Story("sac")
    for number in range(40):
        story.summary({Q1: 1.2**number, Q2: 1.2**number}, mean=20.0 * number)
    assert story.warnings == []


def test_an_entropy_coefficient_that_vanishes_is_warned_about_until_it_is_back():
    story = Story("sac")
    assert story.summaries(COEFFICIENT, [0.5, 0.1, 0.01, 1e-3, 1e-4, 4e-5, 3e-5]) == []
    warning = only(story.summaries(COEFFICIENT, [2e-5, 2e-5]))
    assert numbers(warning.message) == ["2e-05"]
    assert story.summaries(COEFFICIENT, [1e-4]) == []
    assert story.summaries(COEFFICIENT, [1e-3]) == [WarningCleared("entropy_coefficient", "Walker")]


def test_an_entropy_coefficient_that_grows_without_bound_is_warned_about():
    story = Story("sac")
    assert story.summaries(COEFFICIENT, [1.0, 0.5, 0.4, 2.0, 4.0, 8.0]) == []
    assert "32 and rising" in only(story.summaries(COEFFICIENT, [16.0, 32.0, 64.0])).message
    assert story.summaries(COEFFICIENT, [30.0, 6.0]) == []
    assert story.summaries(COEFFICIENT, [4.0]) == [WarningCleared("entropy_coefficient", "Walker")]


def test_an_entropy_coefficient_may_settle_high_or_low_where_the_returns_are_good():
    for settled in (1e-7, 50.0):
        story = Story("sac")
        for number in range(30):
            share = min(1.0, number / 10)
            story.summary({COEFFICIENT: settled**share}, mean=20.0 + 400.0 * share)
        assert story.warnings == []


def test_of_two_coefficients_each_may_run_away():
    story = Story("sac")
    for _ in range(6):
        story.summary({COEFFICIENT: 1.0, "Policy/Discrete Entropy Coeff": 1e-6})
    assert story.open == {"entropy_coefficient"}


def test_updates_that_would_start_after_the_end_are_warned_about_at_once():
    plan = {"replay_steps": 50_000, "first_update_step": 10_000_000}
    warning = only(Story("sac", **plan).warnings)
    assert numbers(warning.message) == ["10", "10"]
    assert Story("sac", **(plan | {"first_update_step": 9_999_999})).warnings == []


def test_a_full_replay_buffer_without_an_update_is_warned_about():
    story = Story("sac", num_agents=100, replay_steps=50_000, first_update_step=10_000)
    assert [w for _ in range(59) for w in story.steps()] == []
    assert numbers(only([w for _ in range(20) for w in story.steps()]).message) == ["60"]
    assert story.publish(ProgressReported("Walker", 80_000, 80_000, 100.0, 1)) == [
        WarningCleared("no_updates", "Walker")
    ]


def test_a_kl_spike_is_compared_with_the_usual_value():
    story = Story(goal=1_000_000_000)
    assert story.summaries(KL, [0.010, 0.012, 0.013, 0.012, 0.011, 0.2, 0.012, 0.013]) == [], "one spike is none"
    warning = only(story.summaries(KL, [0.072, 0.072, 0.09]))
    assert numbers(warning.message) == ["0.072", "6", "0.012"]
    assert "learning_rate" in warning.advice
    assert story.summaries(KL, [0.05] * 30) == [], "high values do not count as usual"
    assert story.summaries(KL, [0.02]) == [WarningCleared("kl_spike", "Walker")]


def test_a_tiny_kl_may_grow_to_a_small_one():
    assert Story().summaries(KL, [0.0001] * 10 + [0.02] * 10) == []


def test_clipping_most_updates_for_long_is_warned_about():
    story = Story()
    assert story.summaries(CLIP, [0.1, 0.5, 0.5, 0.1, 0.5, 0.5]) == []
    assert "0.45" in only(story.summaries(CLIP, [0.45, 0.5])).message
    assert story.summaries(CLIP, [0.35, 0.41]) == []
    assert story.summaries(CLIP, [0.2]) == [WarningCleared("clip_fraction", "Walker")]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_warned_about_at_once(value):
    story = Story()
    warning = only(story.summaries(VALUE_LOSS, [value]))
    assert f"({value})" in warning.message
    assert story.summaries(VALUE_LOSS, [1.0]) == [WarningCleared("loss_not_finite", "Walker")]


def test_an_exploding_value_loss_is_compared_with_the_highest_before():
    story = Story()
    assert story.summaries(VALUE_LOSS, [8.0, 2.0, 1.0, 0.5, 0.01, 0.0003, 10.0, 0.0003, 0.5], mean=50.0) == []
    warning = only(story.summaries(VALUE_LOSS, [3.0**power for power in range(14)], mean=40.0))
    assert warning.kind == "value_loss_explosion"
    assert story.summaries(VALUE_LOSS, [5.0], mean=50.0) == [WarningCleared("value_loss_explosion", "Walker")]


def test_a_value_loss_may_jump_with_the_first_success():
    story = Story()
    story.summaries(VALUE_LOSS, [1e-6] * 12, mean=0.0, std=0.0)
    for _ in range(12):
        story.summary({VALUE_LOSS: 0.5}, mean=1.0, std=0.1)
    assert {warning.kind for warning in story.warnings} == {"same_returns"}


def test_a_lost_return_is_compared_with_its_best():
    story = Story()
    for mean in (20.0, 80.0, 200.0, 400.0, 390.0, 250.0, 300.0, 180.0, 410.0):
        assert story.summary(mean=mean) == []
    warning = only([w for mean in (150.0, 100.0, 90.0, 80.0) for w in story.summary(mean=mean)])
    assert numbers(warning.message) == ["90", "410", "20"]
    assert "best checkpoint" in warning.advice
    assert [w for mean in (200.0, 230.0) for w in story.summary(mean=mean)] == []
    assert story.summary(mean=350.0) == [WarningCleared("return_drop", "Walker")]


def test_a_good_policy_that_came_from_elsewhere_can_be_lost_too():
    story = Story()
    for mean in (400.0, 395.0, 405.0, 390.0):
        story.summary(mean=mean)
    warnings = {w.kind: w.message for mean in (40.0, 30.0, 20.0) for w in story.summary(mean=mean)}
    assert "began" not in warnings["return_drop"], (
        "nothing was gained, and its first episodes may well have been its best"
    )
    assert [w for _ in range(20) for w in story.summary(mean=20.0, std=1000.0)] == [], "noise makes nothing good again"


def test_another_lesson_is_another_task():
    story = Story()
    for mean in (20.0, 400.0, 410.0):
        story.summary(mean=mean)
    story.publish(LessonChanged("Walker", story.step, "hills", 2, 3))
    for mean in (60.0, 50.0, 55.0, 70.0):
        story.summary(mean=mean)
    assert "return_drop" not in story.open


def test_lesson_that_another_behavior_has_ended_is_another_task_too():
    story = Story()
    for mean in (20.0, 400.0, 410.0):
        story.summary(mean=mean)
    story.publish(LessonChanged("Crawler", 100, "hills", 2, 3))
    for mean in (60.0, 50.0, 55.0, 70.0):
        story.summary(mean=mean)
    assert "return_drop" not in story.open


def test_episodes_that_each_agent_began_before_a_lesson_do_not_count_in_it():
    story = Story(num_agents=50)
    for mean in (20.0, 400.0, 410.0):
        story.summary(mean=mean)
    story.publish(LessonChanged("Walker", story.step, "hills", 2, 3))
    for mean in (410.0, 60.0):
        story.summary(mean=mean, episodes=50)
    for mean in (60.0, 50.0, 55.0, 70.0):
        story.summary(mean=mean)
    assert "return_drop" not in story.open


def into_a_lesson(story, after):
    """A policy whose entropy went to nothing while it learned, in a lesson with these returns; what is raised."""
    for entropy, mean in ((0.69, 20.0), (0.3, 200.0), (0.01, 400.0), (0.001, 410.0), (0.001, 405.0)):
        story.summary({ENTROPY: entropy}, mean=mean, std=30.0)
    assert "entropy_collapse" not in story.open
    story.publish(LessonChanged("Walker", story.step, "hills", 2, 3))
    return [warning.kind for mean in after for warning in story.summary({ENTROPY: 0.001}, mean=mean, std=30.0)]


def test_policy_that_is_good_from_the_beginning_of_a_lesson_has_not_collapsed():
    story = Story()
    assert into_a_lesson(story, [380.0, 382.0] * 6) == []
    story.publish(LessonChanged("Walker", story.step, "hills", 3, 3))
    for mean in [375.0, 377.0] * 6:
        assert story.summary({ENTROPY: 0.001}, mean=mean, std=30.0) == []


def test_policy_that_gets_worse_in_a_lesson_and_does_always_the_same_has_collapsed():
    assert "entropy_collapse" in into_a_lesson(Story(), [380.0, 380.0, *[250.0] * 12])


def test_policy_that_was_not_good_before_a_lesson_has_collapsed_in_it_too():
    story = Story()
    for entropy in (0.69, 0.3, 0.01, 0.001, 0.001):
        story.summary({ENTROPY: entropy}, mean=20.0, std=30.0)
    assert story.open == {"entropy_collapse"}
    story.publish(LessonChanged("Walker", story.step, "hills", 2, 3))
    for _ in range(6):
        story.summary({ENTROPY: 0.001}, mean=20.0, std=30.0)
    assert story.open == {"entropy_collapse"}


# ------------------------------------------------------------------------------------------------------ of a trainer


def lesson(story, before, after, std=10.0):
    """A lesson in which the returns are as given, after one of `before`; what is raised or cleared in it."""
    for mean in before:
        story.summary(mean=mean, std=std)
    new = story.publish(LessonChanged("Walker", story.step, "hills", 2, 3, "steep"))
    return new + [warning for mean in after for warning in story.summary(mean=mean, std=std)]


def test_return_that_falls_at_a_lesson_and_stays_low_is_a_warning_until_it_rises():
    story = Story()
    warning = only(lesson(story, (20.0, 400.0, 410.0), (60.0, 50.0, 60.0, 55.0)))
    assert warning.kind == "lesson_drop"
    assert "lesson 2 of hills (steep)" in warning.message
    assert numbers(warning.message) == ["55", "2", "410"]
    assert "min_lesson_length" in warning.advice
    assert story.summary(mean=58.0) == []
    assert story.summary(mean=90.0) == [WarningCleared("lesson_drop", "Walker")]


def test_next_lesson_ends_the_warning_about_the_one_before():
    story = Story()
    lesson(story, (20.0, 400.0, 410.0), (60.0, 50.0, 60.0, 55.0))
    assert lesson(story, (), (56.0, 54.0, 55.0, 55.0)) == [WarningCleared("lesson_drop", "Walker")]


@pytest.mark.parametrize(
    ("after", "std"),
    [
        ((395.0, 390.0, 395.0, 390.0, 385.0), 100.0),  # within the spread of episodes
        ((380.0, 375.0, 370.0, 375.0, 375.0), 1.0),  # by less than a tenth
        ((60.0, 120.0, 200.0, 250.0, 300.0), 10.0),  # it rises
        ((500.0, 510.0, 505.0, 500.0, 505.0), 10.0),  # it is better
        ((60.0, 55.0, 60.0), 10.0),  # not for long
    ],
)
def test_return_that_hardly_falls_at_a_lesson_or_rises_in_it_is_no_warning(after, std):
    assert lesson(Story(), (390.0, 400.0, 410.0, 405.0), after, std) == []


class LowEntropy:
    def judge(self, event, history):
        value = metric(event, ENTROPY)
        return None if value is None else "fine" if value > 0.5 else Finding(f"entropy {value}", "its own advice")


class Broken:
    def judge(self, event, history):
        if isinstance(event, MetricsReported) and event.step > 100_000:
            raise KeyError("Losses/Critic Loss")
        return Finding("not yet broken", "wait") if isinstance(event, MetricsReported) else None


class WithoutVerdict(LowEntropy):
    def judge(self, event, history):
        return True


def cannot_be_made():
    raise ImportError("no module named a2c")


def story_with(**health):
    return Story(health_of=lambda algorithm: TrainerHealth(**health))


def test_trainer_brings_rules_and_replaces_or_leaves_out_common_ones():
    story = story_with(rules={"low_entropy": LowEntropy, "entropy_collapse": LowEntropy, "clip_fraction": None})
    raised = story.summary({ENTROPY: 0.4, CLIP: 1.0})
    assert {warning.kind: warning.message for warning in raised} == {
        "low_entropy": "entropy 0.4",
        "entropy_collapse": "entropy 0.4",
    }
    assert story.summaries(CLIP, [1.0] * 6) == []
    story.publish(BehaviorRolledBack("Walker", story.step, story.step, "x"))
    assert len(story.summary({ENTROPY: 0.4})) == 2, "the new policy is judged by them, too"


def test_advice_of_a_trainer_replaces_that_of_a_rule():
    story = story_with(rules={"low_entropy": LowEntropy}, advice={"low_entropy": "raise entropy_bonus"})
    assert only(story.summary({ENTROPY: 0.4})).advice == "raise entropy_bonus"


@pytest.mark.parametrize("rule", [Broken, WithoutVerdict, cannot_be_made])
def test_rule_that_raises_is_reported_once_with_its_traceback_and_left_out(rule):
    story = story_with(rules={"broken": rule, "low_entropy": LowEntropy})
    for _ in range(5):
        story.summary({ENTROPY: 0.4})
    story.publish(BehaviorRolledBack("Walker", 0, story.step, "x"))
    story.publish(BehaviorStarted("Runner", "ppo", "", 0, 10, 1, 1, False))
    (report,) = [event for event in story.warnings if isinstance(event, LogEmitted)]
    first, *detail = report.message.splitlines()
    assert " broken " in first
    assert "Error" in first
    assert "Traceback" in report.message or detail[0] == "...", "the lines of its author's file are there"
    story.summary({ENTROPY: 0.4})
    assert story.open == {"low_entropy"}, "what it had raised is cleared, other rules go on judging"


# --------------------------------------------------------------------------------------------------------- progress


def test_episodes_that_do_not_end_are_warned_about_after_so_many_steps_however_quick():
    story = Story()
    assert [w for _ in range(29) for w in story.steps(after=0.01)] == []
    warning = only([w for _ in range(40) for w in story.steps(after=0.01)])
    assert numbers(warning.message) == ["30"]
    assert "max_episode_steps" in warning.advice
    ended = story.publish(EpisodesFinished("Walker", story.step, 1, 5.0, 5.0, 5.0, 100.0))
    assert ended == [WarningCleared("no_episodes", "Walker")]


def test_slow_steps_without_the_end_of_an_episode_are_no_warning():
    story = Story()
    assert [w for _ in range(1000) for w in story.steps(20, after=5.0)] == []


def test_each_of_many_agents_is_given_its_steps():
    story = Story(num_agents=100)
    assert [w for _ in range(299) for w in story.steps()] == []
    assert numbers(only(story.steps()).message) == ["300"]


def test_where_episodes_are_long_more_steps_are_given():
    story = Story()
    story.warnings = [w for _ in range(25) for w in story.steps()]
    story.publish(EpisodesFinished("Walker", story.step, 1, 5.0, 5.0, 5.0, 100.0))
    assert {w.kind for _ in range(74) for w in story.steps()} == {"rare_episodes"}
    assert numbers(only(story.steps()).message) == ["75"]


def play(story, episodes, *returns, length=100):
    """Steps in which so many episodes end, with these returns in turn."""
    raised = []
    for number in range(episodes):
        earned = returns[number % len(returns)]
        raised += story.publish(EpisodesFinished("Walker", story.step, 1, earned, earned, earned, length))
        raised += story.steps(length, after=0.01)
    return raised


def test_few_episodes_in_the_first_steps_are_a_warning_until_they_are_more():
    story = Story(num_agents=1)
    warning = only([*play(story, 7, 1.0, 2.0, length=4_000), *play(story, 3, 1.0, length=1_000)])
    assert numbers(warning.message) == ["9", "30"]
    assert "gymnasium:Walker" in warning.advice
    assert play(story, 8, 1.0, 2.0, length=4_000) == []
    assert play(story, 100, 1.0, 2.0, length=1_000) == [WarningCleared("rare_episodes", "Walker")]


@pytest.mark.parametrize("step", [0, 5_000_000])
def test_long_episodes_of_a_policy_that_has_learned_are_no_warning(step):
    story = Story(num_agents=1, step=step)
    if step == 0:
        assert play(story, 100, 1.0, 2.0, length=400) == []
    assert play(story, 50, 1.0, 2.0, length=9_000) == []


def test_returns_that_are_all_the_same_are_a_warning_until_one_differs():
    story = Story()
    assert play(story, 299, -200.0) == []
    warning = only(play(story, 1, -200.0))
    assert numbers(warning.message) == ["-200"]
    assert play(story, 500, -200.0) == []
    assert play(story, 1, -150.0) == [WarningCleared("same_returns", "Walker")]


def test_a_new_lesson_begins_with_returns_of_its_own():
    story = Story()
    play(story, 200, 7.0)
    story.publish(LessonChanged("Walker", story.step, "size", 2, 3))
    assert play(story, 299, 3.0) == []
    assert numbers(only(play(story, 1, 3.0)).message) == ["3"]


def test_returns_that_stay_as_they_were_at_first_are_a_warning_until_they_are_better():
    story = Story(goal=100_000)
    rare = [0.0] * 49 + [1.0]
    for _ in range(4):
        assert [w for w in play(story, 124, *rare) if w.kind != "same_returns"] == []
        story.publish(MetricsReported("Walker", story.step, 1.0, {}, 0.02, 0.14, None, True))
    warning = only(play(story, 5, *rare))
    assert warning.kind == "no_improvement"
    assert numbers(warning.message) == ["0.01807", "50", "0.02"]
    assert "buffer_size" in warning.advice
    assert play(story, 100, *rare) == []
    assert play(story, 100, 0.0, 1.0) == [WarningCleared("no_improvement", "Walker")]


def trial(first, later, std, episodes=150):
    """Warnings of a run whose first hundred episodes, without an update, and later ones have these mean returns."""
    story = Story(goal=100_000)
    for mean, updates in ((first, 0), (later, 10)):
        for _ in range(episodes // 3):
            story.publish(EpisodesFinished("Walker", story.step, 3, mean, mean - std, mean + std, 100.0))
            story.steps(1000 if updates else 10, updates=updates)
        for _ in range(4):
            story.publish(MetricsReported("Walker", story.step, 1.0, {}, mean, std, None, True))
    story.steps(1000, updates=10)
    return {warning.kind for warning in story.raised}


@pytest.mark.parametrize(("first", "later", "std"), [(-180.0, -125.0, 110.0), (0.012, 0.16, 0.3), (5e6, 5.5e6, 1e6)])
def test_returns_that_are_better_by_more_than_chance_are_an_improvement(first, later, std):
    """However small the gain is beside the spread of single episodes, and whatever their scale is."""
    assert trial(first, later, std) == set()
    assert trial(first, first + (later - first) / 5, std) == {"no_improvement"}


def test_task_that_is_solved_from_the_start_need_not_improve():
    story = Story(goal=100_000, reward_threshold=0.4)
    for _ in range(6):
        play(story, 100, 0.4, 0.6)
        story.publish(MetricsReported("Walker", story.step, 1.0, {}, 0.5, 0.1, None, True))
    assert story.warnings == []


@pytest.mark.parametrize("plan", [{"reward_threshold": 475.0}, {"earlier_returns": (22.0, 500.0)}])
def test_same_returns_of_a_task_that_is_solved_or_was_learned_before_are_no_trouble(plan):
    story = Story(step=100_000, **plan)
    assert play(story, 500, 500.0) == []


def test_same_returns_of_before_a_resume_are_none_that_differ():
    story = Story(step=100_000, earlier_returns=(0.0,))
    assert only(play(story, 400, 0.0)).kind == "same_returns"


def test_returns_of_before_a_roll_back_count():
    story = Story()
    play(story, 10, 20.0, 500.0)
    story.publish(BehaviorRolledBack("Walker", story.step, story.step, "x"))
    assert play(story, 500, 500.0) == []


SHARE, MAGNITUDE = "Environment/Action Cost Share", "Policy/Action Magnitude"


def test_actions_that_shrink_because_only_their_cost_counts_are_a_warning_until_something_else_does():
    story = Story(goal=1_000_000_000)
    assert [w for _ in range(4) for w in story.summary({SHARE: 0.999, MAGNITUDE: 0.9}, mean=-30.0)] == []
    warning = only([w for size in (0.8, 0.6) for w in story.summary({SHARE: 0.999, MAGNITUDE: size}, mean=-10.0)])
    assert numbers(warning.message) == ["-10", "100", "67"]
    assert story.summary({SHARE: 0.9, MAGNITUDE: 0.1}) == []
    assert story.summary({SHARE: 0.3, MAGNITUDE: 0.1}) == [WarningCleared("does_nothing", "Walker")]


def test_small_actions_where_rewards_differ_for_another_reason_are_no_warning():
    """Balancing takes small actions, too."""
    story = Story()
    for size in (0.9, 0.9, 0.5, 0.2, 0.1, 0.05, 0.05):
        story.summary({SHARE: 0.7, MAGNITUDE: size}, mean=-10.0 * size)
    assert story.warnings == []


def evaluation(story, mean, std=10.0, deterministic=True):
    return story.publish(EvaluationReported("Walker", story.step, mean, std, 10, 100.0, 1.0, deterministic))


def test_greedy_policy_that_is_far_worse_than_the_sampled_one_is_a_warning_until_it_is_not():
    story = Story()
    for number in range(5):
        story.summary(mean=-80.0 + number, std=60.0)
    assert evaluation(story, -1600.0, 500.0) == [], "the returns of training may be older"
    warning = only(evaluation(story, -1100.0, 300.0))
    assert numbers(warning.message) == ["-1100", "-76"]
    assert evaluation(story, -120.0) == []
    assert evaluation(story, -90.0) == [WarningCleared("greedy_return", "Walker")]


@pytest.mark.parametrize(
    ("mean", "std", "deterministic"), [(-120.0, 60.0, True), (-1100.0, 3000.0, True), (-1100.0, 300.0, False)]
)
def test_evaluations_within_the_spread_of_episodes_or_that_sample_are_no_warning(mean, std, deterministic):
    story = Story()
    for number in range(5):
        story.summary(mean=-80.0 + number, std=60.0)
    assert [w for _ in range(4) for w in evaluation(story, mean, std, deterministic)] == []


def test_returns_of_a_later_lesson_need_not_improve():
    story = Story(goal=100_000)
    play(story, 2, 0.4, 0.6)
    story.publish(MetricsReported("Walker", story.step, 1.0, {}, 0.5, 0.1, None, True))
    play(story, 500, 0.4, 0.6)
    assert story.open == {"no_improvement"}
    story.publish(LessonChanged("Walker", story.step, "size", 2, 3))
    assert story.open == set()
    play(story, 500, 0.4, 0.6)
    assert story.open == set()


def test_returns_have_a_fifth_of_the_training_to_improve():
    story = Story(goal=1_000_000)
    for _ in range(19):
        assert play(story, 100, 0.0, 1.0) == []
        story.publish(MetricsReported("Walker", story.step, 1.0, {}, 0.5, 0.5, None, True))
    assert only(play(story, 105, 0.0, 1.0)).kind == "no_improvement"


def test_steps_of_before_a_resume_do_not_count():
    story = Story(step=5_000_000)
    assert [w for _ in range(29) for w in story.steps()] == []
    assert numbers(only(story.steps()).message) == ["30"]


def test_paused_time_is_no_time_without_episodes_or_steps():
    story = Story()
    for _ in range(20):
        story.steps()
    story.publish(BehaviorStateChanged("Walker", "paused"))
    for _ in range(1000):
        story.publish(DEVICES, 1.0)
    story.publish(BehaviorStateChanged("Walker", "training"))
    assert [w for _ in range(9) for w in story.steps()] == []
    assert story.warnings == []


def test_steps_that_stop_are_warned_about_after_half_a_minute_even_in_silence():
    """An environment that hangs blocks its thread: only device samples arrive."""
    story = Story()
    story.steps()
    assert [w for _ in range(29) for w in story.publish(DEVICES, 1.0)] == []
    warning = only([w for _ in range(60) for w in story.publish(DEVICES, 1.0)])
    assert numbers(warning.message) == ["30", "1"]
    assert story.steps() == [WarningCleared("no_steps", "Walker")]


def test_a_behavior_that_never_steps_is_warned_about():
    story = Story()
    assert "no step" in only([w for _ in range(40) for w in story.publish(DEVICES, 1.0)]).message


def test_waiting_for_the_user_is_no_silence():
    story = Story()
    story.steps()
    story.publish(EnvironmentAwaits("gymnasium:Walker", "press Play"))
    assert [w for _ in range(600) for w in story.publish(DEVICES, 1.0)] == []
    story.publish(EnvironmentAwaits("gymnasium:Walker", ""))
    assert story.steps() == []
    assert "30" in only([w for _ in range(40) for w in story.publish(DEVICES, 1.0)]).message


def test_waiting_in_another_environment_excuses_nothing():
    story = Story()
    story.publish(EnvironmentAwaits("unity:editor", "press Play"))
    assert "no step" in only([w for _ in range(40) for w in story.publish(DEVICES, 1.0)]).message


def restart(story, behavior="Walker", after=60.0):
    """A worker fails after so many seconds of training."""
    for _ in range(int(after / 10)):
        story.steps(after=10.0)
    event = EnvironmentRestarting("unity:Ball", 1, (behavior,), "unity:Ball: killed by SIGSEGV" + "." * 300, "", 1)
    return story.publish(event)


def test_workers_that_fail_again_and_again_are_warned_about_until_they_hold_for_half_an_hour():
    story = Story()
    assert restart(story) == restart(story) == []
    warning = only(restart(story))
    assert (warning.kind, warning.behavior) == ("frequent_restarts", "Walker")
    assert "killed by SIG" in warning.message
    assert len(warning.message) <= LONGEST_MESSAGE
    assert restart(story, after=1700) == []
    assert [w for _ in range(180) for w in story.steps(after=10.0)] == []
    assert story.steps(after=10.0) == [WarningCleared("frequent_restarts", "Walker")]


def test_rare_restarts_and_those_of_another_environment_give_no_warning():
    story = Story()
    assert [w for _ in range(5) for w in restart(story, after=1000)] == []
    assert [w for _ in range(5) for w in restart(story, "Crawler")] == []


def test_long_updates_are_waited_for_where_they_are_known():
    story = Story()
    for _ in range(5):
        for _ in range(25):
            story.publish(DEVICES, 1.0)
        story.steps()
    assert [w for _ in range(70) for w in story.publish(DEVICES, 1.0)] == []


def test_a_machine_that_slept_is_no_run_that_stopped():
    story = Story()
    for _ in range(10):
        story.steps()
        story.publish(DEVICES, 1.0)
    assert story.publish(DEVICES, 8 * 3600.0) == []
    assert story.steps() == []


@pytest.mark.parametrize("event", [BehaviorStateChanged("Walker", "finished"), RunStateChanged("stopping", "saving")])
def test_what_has_ended_does_not_stand_still(event):
    story = Story()
    for _ in range(40):
        story.publish(DEVICES, 1.0)
    assert story.publish(event) == [WarningCleared("no_steps", "Walker")]
    assert [w for _ in range(400) for w in story.publish(DEVICES, 1.0)] == []


def test_a_failed_checkpoint_is_warned_about_until_one_is_saved():
    story = Story()
    warning = only(story.publish(CheckpointFailed("Walker", 1_200_000, "interval", "/x: No space left " + "." * 500)))
    assert "/x: No space left" in warning.message
    assert len(warning.message) <= LONGEST_MESSAGE
    assert story.publish(CheckpointFailed("Walker", 1_300_000, "interval", "again")) == []
    saved = CheckpointSaved("Walker", 1_400_000, "x", "interval", None, False, 1, 0.1)
    assert story.publish(saved) == [WarningCleared("checkpoint_failed", "Walker")]


def test_rolling_back_ends_what_was_said_of_the_policy():
    story = Story()
    story.summaries(ENTROPY, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    story.publish(CheckpointFailed("Walker", 1, "interval", "full"))
    assert story.open == {"entropy_collapse", "checkpoint_failed"}
    story.publish(BehaviorRolledBack("Walker", 100_000, story.step, "x"))
    assert story.open == {"checkpoint_failed"}
    assert story.summaries(ENTROPY, [0.0, 0.0, 0.0]) == [], "there is a warm-up again"


def test_a_resumed_run_starts_without_warnings():
    story = Story()
    story.summaries(ENTROPY, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    assert story.publish(RUN) == [WarningCleared("entropy_collapse", "Walker")]


# ---------------------------------------------------------------------------------------------------------- machine


def devices(free=500 * GIB, total=1000 * GIB, used=4 * GIB, memory=16 * GIB, heats=()):
    gpus = tuple(Gpu(i, "H200", 50.0, GIB, 2 * GIB, heat, 100.0, 700.0, False) for i, heat in enumerate(heats))
    return DevicesSampled(gpus, "", 50.0, 2, used, memory, GIB, free, total)


DEVICES = devices()


def test_a_disk_that_fills_is_warned_about_in_minutes():
    story = Story(state="paused")
    warnings = []
    for second in range(0, 900, 5):
        warnings += story.publish(devices(free=8 * GIB - second * (3 << 20)), 5.0)
    warning = only(warnings)
    assert (warning.kind, warning.behavior) == ("disk_filling", "")
    assert numbers(warning.message) == ["41", "7.1"]
    assert story.publish(devices(free=100 * GIB), 10.0) == [WarningCleared("disk_filling", "")]


def test_a_large_disk_may_lose_as_much():
    story = Story(state="paused")
    assert [w for s in range(0, 900, 5) for w in story.publish(devices(free=80 * GIB - s * (30 << 20)), 5.0)] == []


def test_a_disk_nearly_full_is_warned_about():
    story = Story(state="paused")
    assert numbers(only(story.publish(devices(free=GIB - 1))).message) == ["1023"]
    assert story.publish(devices(free=GIB + 1)) == []
    assert story.publish(devices(free=2 * GIB)) == [WarningCleared("disk_full", "")]
    assert Story(state="paused").publish(devices(free=GIB // 2, total=2 * GIB)) == [], "half of a small disk is enough"
    assert Story(state="paused").publish(devices(free=0, total=0)) == [], "unknown"


def test_memory_close_to_its_limit_is_warned_about():
    story = Story(state="paused")
    full = devices(used=15 * GIB)
    assert (
        story.publish(full) + story.publish(full) + story.publish(DEVICES) + story.publish(full) + story.publish(full)
        == []
    )
    assert numbers(only(story.publish(full)).message) == ["94", "1", "16"]
    assert story.publish(devices(used=int(14.4 * GIB))) == []
    assert story.publish(DEVICES) == [WarningCleared("memory_full", "")]


def using(share, own, is_limited, processes=()):
    """A machine, or a control group, of 100 GiB."""
    sample = devices(used=int(share * 100 * GIB), memory=100 * GIB)
    return replace(
        sample, process_memory_bytes=int(own * GIB), is_memory_limited=is_limited, processes=tuple(processes)
    )


def test_memory_of_a_control_group_is_warned_about_at_four_fifths_with_who_has_most():
    story, worker = Story(), RunProcess(7, "worker 2 of gymnasium:Walker", 40 * GIB, 9)
    assert [w for _ in range(9) for w in story.publish(using(0.79, 60, is_limited=True))] == []
    warning = only([w for _ in range(9) for w in story.publish(using(0.82, 60, True, [worker]))])
    assert numbers(warning.message) == ["82", "60", "100", "40", "2"]
    assert story.publish(using(0.75, 60, is_limited=True)) == [WarningCleared("memory_full", "")]


@pytest.mark.parametrize(("share", "own", "is_limited"), [(0.97, 1.0, True), (0.97, 1.0, False), (0.9, 60.0, False)])
def test_memory_that_others_fill_or_of_a_machine_that_has_some_left_is_no_warning(share, own, is_limited):
    story = Story()
    assert [w for _ in range(9) for w in story.publish(using(share, own, is_limited))] == []


LEAKING = "worker 2 of gymnasium:Walker"


def sampled(memory=300 << 20, descriptors=20, pid=7):
    """The run's process, which stays as it is, and a worker's."""
    own = RunProcess(1, "training", GIB, 40)
    return replace(
        DEVICES, processes=(own, RunProcess(pid, LEAKING, int(memory), int(descriptors))), max_descriptors=1024
    )


def minutes(story, count, memory=lambda second: 300 << 20, descriptors=lambda second: 20, start=0):
    """Samples of so many minutes, with 500 steps a second; the warnings about the machine."""
    raised = []
    for second in range(start, start + 60 * count, 5):
        story.steps(2500, 2.5)
        raised += story.publish(sampled(memory(second), descriptors(second)), 2.5)
    return raised


def test_memory_that_grows_steadily_is_warned_about_with_its_process_and_rate():
    story = Story()
    warning = only(minutes(story, 6, memory=lambda second: (300 << 20) + 1e6 * second))
    assert (warning.kind, warning.behavior) == ("memory_growth", "")
    assert warning.message.startswith(f"{LEAKING} grows by 2 MB ")
    assert numbers(warning.message)[-1] == "215"
    assert minutes(story, 40, memory=lambda second: 660e6, start=360) == [WarningCleared("memory_growth", "")]


def test_memory_that_begins_to_grow_after_an_hour_is_warned_about_within_another():
    story = Story()
    assert minutes(story, 60) == []
    warning = only(minutes(story, 50, memory=lambda second: (300 << 20) + 1e5 * (second - 3600), start=3600))
    assert warning.message.startswith(f"{LEAKING} grows by 0.2 MB ")


def test_processes_that_come_and_go_by_the_hundred_are_no_trouble():
    story = Story(state="paused")
    for pid in range(2, 400):
        assert story.publish(sampled(pid=pid), 1.0) == []


def test_garbage_that_is_collected_now_and_then_hides_no_leak():
    story = Story()
    warnings = minutes(story, 12, memory=lambda second: (300 << 20) + 4e5 * second + 1e6 * (second % 90))
    assert only(warnings).kind == "memory_growth"


@pytest.mark.parametrize(
    "memory",
    [
        lambda second: (300 << 20) + 2e6 * (second % 90),
        lambda second: (300 << 20) + 4e8 * (1 - math.exp(-second / 60)),
        lambda second: (300 << 20) + 1e4 * second,
        lambda second: (300 << 20) * (1 + second // 400),
        lambda second: (300 << 20) + 1e3 * second + 60e6 * (second > 424),
    ],
    ids=["garbage", "a cache that fills", "a few MiB", "a few steps", "libraries of the first export"],
)
def test_memory_that_does_not_grow_steadily_is_no_warning(memory):
    assert minutes(Story(), 20, memory) == []


def test_replay_buffer_that_fills_is_no_leak():
    story = Story("sac", replay_steps=500 * 60 * 10, first_update_step=1000)
    assert minutes(story, 10, memory=lambda second: 1e6 * second) == []
    assert minutes(story, 10, memory=lambda second: 6e8, start=600) == []


def test_descriptors_that_are_never_closed_are_warned_about_and_again_when_few_are_left():
    story = Story()
    growth, full = minutes(story, 14, descriptors=lambda second: 20 + second)
    assert (growth.kind, full.kind) == ("descriptor_growth", "descriptors_full")
    assert growth.message.startswith(f"{LEAKING} opens 2 descriptors ")
    assert growth.message.endswith(" of 1,024 now")
    assert full.message.startswith(f"{LEAKING} has 830 of 1,024 ")
    assert {change.kind for change in minutes(story, 1)} == {"descriptor_growth", "descriptors_full"}
    assert story.open.isdisjoint({"descriptor_growth", "descriptors_full"})


def test_a_hot_gpu_is_named_by_its_number():
    story = Story(state="paused")
    hot = devices(heats=(60.0, 87.0, None))
    assert numbers(only([w for _ in range(5) for w in story.publish(hot)]).message) == ["1", "87"]
    assert story.publish(devices(heats=(60.0, 82.0))) == []
    assert story.publish(devices(heats=(60.0, 79.0))) == [WarningCleared("gpu_hot", "")]


# ------------------------------------------------------------------------------------------------------------ ranks


def ranks(*waiting, hosts="abcd"):
    return RanksReported(tuple(RankStatus(at, hosts[at], "cpu", 100.0, share) for at, share in enumerate(waiting)))


def reported(story, *waiting, seconds, every=2.0, hosts="abcd"):
    """The warnings of so many seconds in which ranks wait that much."""
    reports = range(round(seconds / every))
    return [warning for _ in reports for warning in story.publish(ranks(*waiting, hosts=hosts), every)]


@pytest.mark.parametrize("every", [2.0, 10.0])
def test_rank_that_makes_the_others_wait_for_a_minute_is_warned_about(every):
    story = Story(state="paused")
    assert reported(story, 0.5, 0.1, 0.3, seconds=50, every=every) == []
    warning = only(reported(story, 0.5, 0.1, 0.3, seconds=10 + every, every=every))
    assert (warning.kind, warning.behavior) == ("slow_rank", "")
    assert warning.message == "rank 1 on b is slow: the others wait 40% of the time"
    assert reported(story, 0.3, 0.1, 0.3, seconds=120, every=every) == [], "between the two limits nothing changes"
    assert reported(story, 0.2, 0.1, 0.3, seconds=60, every=every) == []
    assert reported(story, 0.1, 0.1, 0.1, seconds=60, every=every) == [WarningCleared("slow_rank", "")]


def test_slow_rank_of_two_on_one_machine_is_warned_about():
    assert only(reported(Story(state="paused"), 0.02, 0.5, seconds=60, hosts="aa")).message.startswith(
        "rank 0 is slow: the other"
    )


@pytest.mark.parametrize("waiting", [(0.7, 0.6, 0.7), (0.24, 0.0, 0.24), (0.0, 0.0), (0.9,)])
def test_ranks_that_wait_alike_are_no_warning(waiting):
    assert reported(Story(state="paused"), *waiting, seconds=200) == []


def test_rank_that_was_slow_for_a_moment_is_no_warning():
    story = Story(state="paused")
    assert reported(story, 0.1, 0.1, seconds=60) + reported(story, 0.9, 0.0, seconds=10) == []
    assert reported(story, 0.1, 0.1, seconds=120) == []


def test_resumed_run_has_no_warning_about_its_former_ranks():
    story = Story(state="paused")
    only(reported(story, 0.9, 0.0, 0.9, seconds=60))
    assert story.publish(RUN) == [WarningCleared("slow_rank", "")]
    assert reported(story, 0.9, 0.0, 0.9, seconds=40) == []


# --------------------------------------------------------------------------------------------------------- in general


def metrics_of(random_source, progress, is_continuous):
    """What a good run reports at that progress, with realistic noise."""
    noise = random_source.lognormvariate
    entropy = 1.4 - 1.9 * progress if is_continuous else 0.69 * (1 - 0.7 * progress)
    return {
        ENTROPY: entropy + random_source.gauss(0, 0.03),
        KL: 0.012 * (1 - progress / 2) * noise(0, 0.4),
        CLIP: min(0.35, 0.12 * noise(0, 0.4)),
        VALUE_LOSS: (0.1 + 3 * progress) ** 2 * noise(0, 1.0),
        "Losses/Policy Loss": 0.01 * noise(0, 0.5),
    }


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_a_good_run_with_noise_raises_nothing(seed):
    source, story = random.Random(seed), Story()
    is_continuous, span = seed % 2 == 0, source.choice([1.0, 50.0, 500.0, 5000.0])
    low = source.choice([-200.0, 0.0, 1000.0]) - span / 2
    for number in range(150):
        progress = min(1.0, number / 100)
        spread = span * 0.2
        for _ in range(10):
            story.steps(5000, source.uniform(0.2, 3.0))
            mean = low + span * progress + source.gauss(0, spread / 3)
            story.publish(EpisodesFinished("Walker", story.step, 5, mean, mean, mean, 100.0))
            story.publish(TimeSplit("Walker", 1.0, 1.0, 1.0, 0.0, 0.0))
            story.publish(devices(free=20 * GIB - number * (10 << 20), used=12 * GIB, heats=(70.0,)), 0.1)
        metrics = metrics_of(source, progress, is_continuous)
        story.publish(MetricsReported("Walker", story.step, 0.0, metrics, low, spread, None, True))
    assert story.warnings == []


ANY_FLOAT = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 1e-320, 1e308, -1e308, math.nan, math.inf, -math.inf, 0.01, 100.0])
)
WHOLE = st.integers(-(2**63), 2**63)
NAMES = st.sampled_from(["", "Walker", "\x1b[31m"])
TAGS = st.sampled_from(
    [ENTROPY, KL, CLIP, VALUE_LOSS, Q1, Q2, COEFFICIENT, SHARE, MAGNITUDE, "Losses/Policy Loss", "Losses/\n"]
)
ANY_EVENT = st.one_of(
    st.just(RUN),
    st.builds(RunStateChanged, st.sampled_from(["training", "paused", "stopping", "finished"])),
    st.builds(
        BehaviorStarted, NAMES, st.sampled_from(["ppo", "sac"]), st.just(""), *[WHOLE] * 4, st.booleans(), *[WHOLE] * 3
    ),
    st.builds(HyperparametersReported, NAMES, st.dictionaries(st.just("target_entropy"), ANY_FLOAT)),
    st.builds(BehaviorStateChanged, NAMES, st.sampled_from(["training", "paused", "finished"])),
    st.builds(ProgressReported, NAMES, WHOLE, WHOLE, ANY_FLOAT, WHOLE),
    st.builds(EpisodesFinished, NAMES, WHOLE, WHOLE, ANY_FLOAT, ANY_FLOAT, ANY_FLOAT, ANY_FLOAT),
    st.builds(
        MetricsReported,
        NAMES,
        WHOLE,
        ANY_FLOAT,
        st.dictionaries(TAGS, ANY_FLOAT),
        st.one_of(st.none(), ANY_FLOAT),
        st.one_of(st.none(), ANY_FLOAT),
        st.none(),
        st.booleans(),
    ),
    st.builds(EvaluationReported, NAMES, WHOLE, ANY_FLOAT, ANY_FLOAT, WHOLE, ANY_FLOAT, ANY_FLOAT),
    st.builds(
        LeagueReported,
        NAMES,
        WHOLE,
        ANY_FLOAT,
        WHOLE,
        st.booleans(),
        st.sampled_from([(), (0,), (0, 1)]),
        WHOLE,
        st.lists(st.builds(LeagueSnapshot, st.integers(0, 2), ANY_FLOAT, WHOLE, WHOLE, WHOLE), max_size=3).map(tuple),
    ),
    st.builds(CheckpointFailed, NAMES, WHOLE, st.just("interval"), st.text()),
    st.builds(BehaviorRolledBack, NAMES, WHOLE, WHOLE, st.just("")),
    st.builds(DevicesSampled, st.just(()), st.just(""), ANY_FLOAT, *[WHOLE] * 6),
    st.builds(
        lambda *processes: replace(DEVICES, processes=processes, max_descriptors=10),
        st.builds(RunProcess, st.integers(1, 3), NAMES, WHOLE, WHOLE),
    ),
    st.builds(ranks, ANY_FLOAT, ANY_FLOAT),
    st.builds(devices, free=WHOLE, total=WHOLE, heats=st.lists(st.one_of(st.none(), ANY_FLOAT), max_size=3)),
)


@given(st.lists(st.tuples(ANY_FLOAT, ANY_EVENT), max_size=60))
def test_no_event_in_any_order_breaks_the_watch(timed):
    """Every warning is raised once before it is cleared, has text, and comes again from the same events."""
    one, two, raised = HealthMonitor(trainer_health), HealthMonitor(trainer_health), set()
    for number, (time, event) in enumerate(timed):
        envelope = Envelope(number, time, event)
        warnings = one.apply(envelope)
        assert warnings == two.apply(envelope)
        for warning in warnings:
            key = warning.kind, warning.behavior
            assert (key in raised) == isinstance(warning, WarningCleared)
            raised ^= {key}
            if isinstance(warning, WarningRaised):
                assert 0 < len(warning.message) <= LONGEST_MESSAGE
                assert warning.advice


@given(st.lists(ANY_FLOAT, max_size=80), TAGS, st.lists(ANY_FLOAT, min_size=1, max_size=20))
def test_no_value_of_a_metric_breaks_the_watch(values, tag, means):
    story = Story()
    for number, value in enumerate(values):
        story.summary({tag: value}, mean=means[number % len(means)], std=means[0])
    assert story.open <= {kind.kind for kind in story.raised}


def test_a_long_run_needs_no_more_memory_than_a_short_one():
    def size(value, seen):
        if id(value) in seen or isinstance(value, type):
            return 0
        seen.add(id(value))
        parts = []
        if isinstance(value, dict):
            parts = [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set)) or type(value).__name__ == "deque":
            parts = list(value)
        slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
        parts += [getattr(value, slot) for slot in slots if hasattr(value, slot)]
        parts += [vars(value)] if hasattr(value, "__dict__") else []
        return sys.getsizeof(value) + sum(size(part, seen) for part in parts)

    story, sizes = Story(), []
    for number in range(4000):
        story.summary(
            {ENTROPY: 1.0, KL: 0.01, VALUE_LOSS: 1.0, Q1: 1.0, COEFFICIENT: 1.0}, mean=float(number % 7), episodes=3
        )
        story.publish(DEVICES, 10.0)
        if number in (1000, 3999):
            sizes.append(size(story.watch, set()))
    assert sizes[1] < sizes[0] * 1.05
