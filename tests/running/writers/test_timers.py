"""The timer tree and the gauges of timers.json."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rl_tui.engine.running.writers.timers import Timers, run_metadata
from rl_tui.engine.session.messages import Event, LogEmitted, MetricsReported, TimeSplit

REWARD = "Environment/Cumulative Reward"


def timers(*events: Event) -> Timers:
    made = Timers()
    for event in events:
        made.add(event)
    return made


def summary(step: int, metrics: Mapping[str, float], counts: Mapping[str, int]) -> MetricsReported:
    return MetricsReported("My Agent", step, 1.0, metrics, None, None, None, True, counts)


def split(behavior: str, environment: float, inference: float, update: float) -> TimeSplit:
    return TimeSplit(behavior, environment, inference, update, waiting_seconds=0.5, other_seconds=0.25)


def test_the_tree_says_where_the_time_of_each_behavior_went():
    splits = [split("Walker", 1.0, 0.5, 1.0), split("Walker", 4.0, 2.0, 1.0), split("Crawler", 4.0, 2.0, 1.0)]
    tree = timers(*splits).as_json(8.0, {})
    assert (tree["name"], tree["total"], tree["count"], tree["self"]) == ("root", 8.0, 1, 8.0)
    threads = tree["children"]["trainer_threads"]
    assert list(threads["children"]) == ["Walker", "Crawler"]
    assert "is_parallel" not in threads
    assert threads["self"] == 0.0, "never below zero"
    walker = threads["children"]["Walker"]
    assert (walker["total"], walker["self"], walker["is_parallel"]) == (7.75, 0.0, True)
    assert {name: node["total"] for name, node in walker["children"].items()} == {
        "env_step": 6.0,
        "trainer_advance": 1.0,
        "waiting": 0.5,
        "other": 0.25,
    }
    acting = walker["children"]["env_step"]
    assert acting["self"] == 4.0
    assert acting["children"]["TorchPolicy.evaluate"]["total"] == 2.0


def test_a_run_that_never_trained_has_a_root_alone():
    assert "children" not in timers().as_json(1.0, {})


def test_gauges_have_mlagents_names_and_extremes():
    first = {REWARD: 2.0, "Losses/Policy Loss": 0.5, "Environment/Episode Length": 7.0}
    made = timers(
        summary(1000, first, {REWARD: 3, "Losses/Policy Loss": 1, "Environment/Episode Length": 3}),
        summary(2000, {REWARD: 1.0, "Losses/Policy Loss": math.nan}, {REWARD: 4, "Losses/Policy Loss": 2}),
        LogEmitted("info", "", "no gauge"),
    )
    assert made.as_json(1.0, {})["gauges"] == {
        "MyAgent.Environment.CumulativeReward.mean": {"value": 1.0, "min": 1.0, "max": 2.0, "count": 2},
        "MyAgent.Environment.CumulativeReward.sum": {"value": 4.0, "min": 4.0, "max": 6.0, "count": 2},
        "MyAgent.Environment.EpisodeLength.mean": {"value": 7.0, "min": 7.0, "max": 7.0, "count": 1},
        "MyAgent.Environment.EpisodeLength.sum": {"value": 21.0, "min": 21.0, "max": 21.0, "count": 1},
        "MyAgent.Losses.PolicyLoss.mean": {"value": 0.5, "min": 0.5, "max": 0.5, "count": 1},
        "MyAgent.Losses.PolicyLoss.sum": {"value": 0.5, "min": 0.5, "max": 0.5, "count": 1},
        "MyAgent.Step.mean": {"value": 2000.0, "min": 1000.0, "max": 2000.0, "count": 2},
        "MyAgent.Step.sum": {"value": 2000.0, "min": 1000.0, "max": 2000.0, "count": 2},
        "MyAgent.IsTraining.mean": {"value": 1.0, "min": 1.0, "max": 1.0, "count": 2},
        "MyAgent.IsTraining.sum": {"value": 1.0, "min": 1.0, "max": 1.0, "count": 2},
    }


def test_metadata_is_all_text():
    metadata = run_metadata(1701357757.9, ["rl-tui", "config/ppo/CartPole.yaml"])
    assert metadata["timer_format_version"] == "0.1.0"
    assert metadata["start_time_seconds"] == "1701357757"
    assert metadata["command_line_arguments"] == "rl-tui config/ppo/CartPole.yaml"
    assert int(metadata["end_time_seconds"]) > 1701357757
    assert all(isinstance(value, str) and value for value in metadata.values())


def test_the_file_has_the_shape_of_a_real_one():
    """Every key that mlagents-learn writes is present with the same type; only the version numbers differ."""
    if "MLAGENTS_DATA" not in os.environ:
        pytest.skip("MLAGENTS_DATA does not name a folder with results of mlagents-learn")
    path = Path(os.environ["MLAGENTS_DATA"]) / "results" / "first3DBallRun" / "run_logs" / "timers.json"
    real = json.loads(path.read_text())
    names = {name.removeprefix("3DBall.").removesuffix(".mean") for name in real["gauges"]} - {"Step", "IsTraining"}
    metrics = {name.replace(".", "/", 1): 1.0 for name in names if not name.endswith(".sum")}
    counts = dict.fromkeys(metrics, 2)
    reported = MetricsReported("3DBall", 12000, 1.0, metrics, 1.0, 0.0, None, True, counts)
    made = timers(reported, split("3DBall", 4.0, 2.0, 1.0))
    ours = json.loads(json.dumps(made.as_json(8.0, run_metadata(0.0))))
    assert set(ours) == set(real)
    assert {key: type(value) for key, value in ours.items()} == {key: type(value) for key, value in real.items()}
    assert set(ours["metadata"]) == {*real["metadata"], "rl_tui_version"}
    assert set(ours["gauges"]) == set(real["gauges"])
    assert all(set(gauge) == {"value", "min", "max", "count"} for gauge in ours["gauges"].values())
    assert _node_shapes(ours) <= _node_shapes(real)


def _node_shapes(node: dict) -> set[frozenset[str]]:
    children = node.get("children", {}).values()
    return {frozenset(node)} | {shape for child in children for shape in _node_shapes(child)}
