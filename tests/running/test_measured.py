"""Keys of `info` that the file names are statistics of the run, in its summaries and in TensorBoard."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.session.messages import LogEmitted, MetricsReported
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
