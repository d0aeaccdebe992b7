"""Warnings about returns, in histories of real environments.

The files are events.jsonl of runs on Gymnasium's environments with seed 1, without what the rules do not read, and with
the episodes between two reports together: PPO's defaults on FrozenLake-v1, MountainCarContinuous-v0 and LunarLander-v3
(4 copies, evaluations), config/ppo/LunarLander.yaml, and config/ppo/CartPole.yaml resumed after its end.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rl_tui.engine.running.trainer_health import trainer_health
from rl_tui.engine.session.health.monitor import HealthMonitor
from rl_tui.engine.session.messages import BehaviorStarted, Envelope, WarningCleared, WarningRaised
from rl_tui.engine.storage.event_log import read_events
from tests.session.test_health import numbers

FOLDER = Path(__file__).parent / "recorded_returns"


def history(name: str) -> list[Envelope]:
    """The events of that run."""
    return list(read_events(FOLDER / f"{name}.jsonl"))


def warnings_of(envelopes: list[Envelope]) -> list[tuple[str, str]]:
    """The messages raised, and "cleared", each after its kind."""
    monitor, found = HealthMonitor(trainer_health), []
    for envelope in envelopes:
        for change in monitor.apply(envelope):
            assert isinstance(change, WarningRaised | WarningCleared)
            found.append((change.kind, change.message if isinstance(change, WarningRaised) else "cleared"))
    return found


def test_rare_successes_that_are_ten_times_as_many_later_are_an_improvement() -> None:
    """At a fifth of the training there is none yet; what is said then is cleared once, for good."""
    (kind, first), *later = warnings_of(history("frozen_lake"))
    assert (kind, numbers(first)) == ("no_improvement", ["0.01881", "60.9", "0"])
    assert later == [("no_improvement", "cleared")]


def test_returns_that_rise_by_half_their_spread_are_an_improvement() -> None:
    assert warnings_of(history("lunar_lander")) == []


@pytest.mark.parametrize("known", ["the threshold", "the history", "neither"])
def test_solved_task_that_is_resumed_is_no_trouble(known: str) -> None:
    envelopes = []
    for envelope in history("cartpole_resumed"):
        event = envelope.event
        if isinstance(event, BehaviorStarted):
            event = replace(
                event,
                reward_threshold=event.reward_threshold if known == "the threshold" else None,
                earlier_returns=event.earlier_returns if known == "the history" else (),
            )
        envelopes.append(replace(envelope, event=event))
    found = [(kind, numbers(message)) for kind, message in warnings_of(envelopes)]
    assert found == ([("same_returns", ["500"])] if known == "neither" else [])


def test_policy_that_learns_to_do_nothing_is_warned_about() -> None:
    ((kind, message),) = warnings_of(history("mountain_car"))
    assert kind == "does_nothing"
    assert numbers(message) == ["-10.55", "100", "96"]


def test_greedy_policy_that_is_far_worse_than_the_sampled_one_is_warned_about() -> None:
    (found,) = (message for kind, message in warnings_of(history("lunar_lander_greedy")) if kind == "greedy_return")
    assert numbers(found) == ["-2573", "-190.6"]
