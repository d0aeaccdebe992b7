"""The timer tree and the gauges of timers.json."""

import functools
import json
import math
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.running.timers import Gauge, GaugeWriter, Timer, Timers, run_metadata
from engine.session.messages import Envelope, Histogram, LogEmitted, MetricsReported

REWARD = "Environment/Cumulative Reward"


def summary(step: int, returns: Histogram | None = None, **metrics: float) -> Envelope:
    return Envelope(step, 0.0, MetricsReported("My Agent", step, 1.0, metrics, None, None, returns, True))


def test_a_tree_has_totals_counts_and_what_no_child_accounts_for():
    timers = Timers()
    timers.node("advance").add(5.0)
    timers.node("advance", "env_step").add(2.0, count=10)
    timers.node("advance").node("env_step").add(1.0, count=5)
    tree = timers.as_json({})["children"]["advance"]
    assert tree == {
        "total": 5.0,
        "count": 1,
        "self": 2.0,
        "children": {"env_step": {"total": 3.0, "count": 15, "self": 3.0}},
    }


def test_self_is_never_below_zero():
    timer = Timer("advance")
    timer.add(1.0)
    timer.node("workers").add(900.0)
    assert timer.as_json()["self"] == 0.0


def test_the_root_counts_from_its_making():
    timers = Timers()
    time.sleep(0.01)
    first = timers.as_json({})
    time.sleep(0.01)
    second = timers.as_json({})
    assert (first["name"], first["count"]) == ("root", 1)
    assert 0.01 <= first["total"] <= second["total"] - 0.01
    assert "children" not in first


def test_a_tree_filled_in_afterwards_counts_what_its_nodes_hold():
    tree = Timers("CartPole")
    tree.node("env_step").add(20.0)
    tree.node("update").add(10.0)
    thread = Timers().as_json({}, parallel=[tree])["children"]["trainer_threads"]["children"]["CartPole"]
    assert (thread["total"], thread["count"], thread["self"]) == (30.0, 1, 0.0)


def test_a_block_is_measured_also_when_it_raises():
    timers = Timers()
    timer = timers.node("update")

    def fail() -> None:
        with timer:
            time.sleep(0.01)
            raise KeyError

    began = time.monotonic()
    with pytest.raises(KeyError):
        fail()
    with timer:
        pass
    assert timer.count == 2
    assert 0.01 <= timer.total <= time.monotonic() - began


def test_trees_of_other_threads_are_parallel_and_equal_names_are_summed():
    root, collector, learners = Timers(), Timers("collector"), [Timers("learner"), Timers("learner")]
    collector.node("env_step").add(1.0)
    for learner in learners:
        learner.node("update", "minibatch").add(2.0, count=3)
    for _ in range(2):  # writing changes nothing: it happens at every checkpoint
        threads = root.as_json({}, parallel=[collector, *learners])["children"]["trainer_threads"]
    assert list(threads["children"]) == ["collector", "learner"]
    assert threads["self"] == 0.0
    merged = threads["children"]["learner"]
    assert (merged["count"], merged["is_parallel"]) == (2, True)
    assert merged["children"]["update"]["children"]["minibatch"] == {
        "total": 4.0,
        "count": 6,
        "is_parallel": True,
        "self": 4.0,
    }
    assert "is_parallel" not in threads


def test_a_tree_can_be_written_while_its_thread_works():
    timers, stop = Timers(), threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            timers.node("node", str(number % 5000)).add(0.001)

    worker = threading.Thread(target=work)
    worker.start()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        json.dumps(timers.as_json({}))
    stop.set()
    worker.join(10)


def test_a_timer_costs_a_hot_loop_almost_nothing():
    add = Timers().node("env_step").add
    best = math.inf
    for _ in range(5):
        began = time.thread_time()
        for _ in range(20_000):
            add(0.001)
        best = min(best, (time.thread_time() - began) / 20_000)
    assert best < 0.3e-6


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.floats(0, 9), st.integers(1, 5)))
)
def test_merging_is_the_same_as_measuring_in_one_tree(measurements):
    whole, halves = Timer("x"), (Timer("x"), Timer("x"))
    for number, (path, seconds, count) in enumerate(measurements):
        for root in (whole, halves[number % 2]):
            functools.reduce(Timer.node, path, root).add(seconds, count)
    merged = Timer("x")
    merged.merge(halves[0])
    merged.merge(halves[1])

    def flat(timer: Timer, path: str = "") -> dict[str, tuple[float, int]]:
        own = {path: (pytest.approx(timer.total), timer.count)}
        return own | {k: v for c in timer.children.values() for k, v in flat(c, f"{path}/{c.name}").items()}

    assert flat(merged) == flat(whole)


def test_gauges_have_mlagents_names_and_extremes():
    writer = GaugeWriter()
    returns = Histogram(1.0, 3.0, 3, 6.0, 14.0, (3.0,), (3.0,))
    writer.write(summary(1000, returns, **{REWARD: 2.0, "Losses/Policy Loss": 0.5, "Environment/Episode Length": 7.0}))
    writer.write(summary(2000, **{REWARD: 1.0, "Losses/Policy Loss": math.nan}))
    writer.write(Envelope(9, 0.0, LogEmitted("info", "", "no gauge")))
    gauges = {name: gauge.as_json() for name, gauge in writer.gauges.items()}
    assert gauges == {
        "MyAgent.Environment.CumulativeReward.mean": {"value": 1.0, "min": 1.0, "max": 2.0, "count": 2},
        "MyAgent.Environment.CumulativeReward.sum": {"value": 6.0, "min": 6.0, "max": 6.0, "count": 1},
        "MyAgent.Environment.EpisodeLength.mean": {"value": 7.0, "min": 7.0, "max": 7.0, "count": 1},
        "MyAgent.Environment.EpisodeLength.sum": {"value": 21.0, "min": 21.0, "max": 21.0, "count": 1},
        "MyAgent.Losses.PolicyLoss.mean": {"value": 0.5, "min": 0.5, "max": 0.5, "count": 1},
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
    """Every key that mlagents-learn writes is there with the same type; only its own version numbers differ."""
    if "MLAGENTS_DATA" not in os.environ:
        pytest.skip("MLAGENTS_DATA does not name a folder with results of mlagents-learn")
    path = Path(os.environ["MLAGENTS_DATA"]) / "results" / "first3DBallRun" / "run_logs" / "timers.json"
    real = json.loads(path.read_text())
    timers, writer = Timers(), GaugeWriter()
    worker = Timers("thread_root")
    worker.node("update").add(1.0)
    timers.node("TrainerController.advance").add(0.5)
    metrics = {
        REWARD: 1.0,
        "Environment/Episode Length": 9.0,
        "Losses/Value Loss": 1.0,
        "Policy/Extrinsic Value Estimate": 1.0,
    }
    writer.write(Envelope(1, 0.0, MetricsReported("3DBall", 12000, 1.0, metrics, 1.0, 0.0, None, True)))
    ours = json.loads(json.dumps(timers.as_json(run_metadata(0.0), writer.gauges, [worker])))
    assert set(ours) == set(real)
    assert {key: type(value) for key, value in ours.items()} == {key: type(value) for key, value in real.items()}
    versions = {"mlagents_version", "mlagents_envs_version", "communication_protocol_version"}
    assert set(ours["metadata"]) - {"rl_tui_version"} == set(real["metadata"]) - versions
    assert set(writer.gauges) <= set(real["gauges"])
    assert all(set(gauge) == {"value", "min", "max", "count"} for gauge in ours["gauges"].values())
    real_nodes, our_nodes = _node_shapes(real), _node_shapes(ours)
    assert our_nodes <= real_nodes


def _node_shapes(node: dict) -> set[frozenset[str]]:
    children = node.get("children", {}).values()
    return {frozenset(node)} | {shape for child in children for shape in _node_shapes(child)}


def test_a_gauge_remembers_its_extremes():
    gauge = Gauge(1.0, 1.0, 1.0)
    for value in (3.0, -2.0, 0.5):
        gauge.set(value)
    assert gauge.as_json() == {"value": 0.5, "min": -2.0, "max": 3.0, "count": 4}
