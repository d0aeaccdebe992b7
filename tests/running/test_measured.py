"""What an environment measures is a statistic of the run, in its summaries and in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.session.messages import LogEmitted, MetricsReported
from rl_tui.engine.specs import Actions, Statistic, Steps
from tests.running.runs import behavior, configuration, run_to_end

REPORTING = "tests.sampling.environments.test_measuring:Reporting"


@pytest.mark.parametrize("workers", [0, 2])
def test_named_keys_of_info_are_means_of_each_summary(tmp_path: Path, workers: int) -> None:
    settings = {"metrics": ["step", "Maze/last", "stepp"], "num_workers": workers, "env_kwargs": {"length": 3}}
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(max_steps=600)}, REPORTING, env_settings=settings))
    assert run.launch.exit_code == 0, run.recent_events()
    summaries = run.of(MetricsReported)
    assert len(summaries) > 1
    for summary in summaries:
        assert summary.metrics["Environment/step"] == pytest.approx(2.0, abs=0.1)
        assert summary.metrics["Maze/last"] == pytest.approx(3.0)
        assert not [tag for tag in summary.metrics if tag in ("Environment/stepp", "Environment/start")]
    [warning] = [event.message for event in run.of(LogEmitted) if "metrics" in event.message]
    assert warning == "env_settings.metrics: no info had a number under 'stepp' so far"
    [events] = (run.folder / "Walker").glob("events.out.tfevents.*")
    assert b"Environment/step" in events.read_bytes()
    assert b"Maze/last" in events.read_bytes()


class Announcing(Line):
    """A Line that reports statistics at every step, some under names that are taken."""

    def __init__(self) -> None:
        super().__init__("Walker", 4)
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        answer = super().step(actions)
        self._count += 1
        answer["Walker"].statistics = (
            Statistic("Speed", 3.0),
            Statistic("Maze/Steps", self._count, "last"),
            Statistic("Maze/Falls", 1.0, "sum"),
            Statistic("Environment/Height", self._count % 2, "histogram"),
            Statistic("Return", 1000.0),
            Statistic("Policy/Entropy", 1000.0),
            Statistic("Strange", float("nan")),
        )
        return answer


@pytest.mark.parametrize("workers", [0, 1])
def test_statistics_of_an_environment_have_its_own_names_everywhere(tmp_path: Path, workers: int) -> None:
    walker = behavior(max_steps=600, summary_freq=200)  # each of 20 steps or more: copies may be a step apart
    settings = {"num_workers": workers}
    run = run_to_end(configuration(tmp_path, {"Walker": walker}, f"{__name__}:Announcing", env_settings=settings))
    assert run.launch.exit_code == 0, run.recent_events()
    summaries = run.of(MetricsReported)
    falls = [summary.metrics["Maze/Falls"] for summary in summaries]
    last = summaries[-1].metrics["Maze/Steps"]
    assert last > 25
    assert abs(sum(falls) - 4 * last) <= 3, "the other three copies may be a step ahead of that one, or behind"
    for summary in summaries:
        assert summary.metrics["Speed"] == 3.0
        assert summary.metrics["Environment/Height"] == pytest.approx(0.5, abs=0.1)
        assert summary.metrics.get("Policy/Entropy", 0.0) < 2.0
        assert not {"Return", "Strange"} & summary.metrics.keys()
        height = summary.histograms["Environment/Height"]
        assert (height.count, height.minimum, height.maximum) == (summary.counts["Environment/Height"], 0, 1)
    warnings = [event.message for event in run.of(LogEmitted) if "statistic" in event.message]
    taken = "is left out: rl-tui has a statistic of that name. Rename it in the environment"
    assert warnings == [
        f"the environment's statistic Return {taken}",
        f"the environment's statistic Policy/Entropy {taken}",
        "the environment's statistic Strange was not finite; only its finite values count",
    ]
    back = EventAccumulator(str(run.folder / "Walker"), size_guidance={"histograms": 0, "scalars": 0}).Reload()
    assert [event.value for event in back.Scalars("Maze/Falls")] == falls
    assert [event.step for event in back.Histograms("Environment/Height_hist")] == [each.step for each in summaries]
    assert len(back.Histograms("Environment/Cumulative Reward_hist"))
