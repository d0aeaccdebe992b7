"""Workers that fail in a run: it goes on, and says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil

from rl_tui.engine.learning.on_policy.advantages import gae
from rl_tui.engine.session.messages import (
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    Pause,
    ProgressReported,
    Resume,
    Stop,
)
from rl_tui.engine.specs import TERMINATED, TRUNCATED, Trajectories
from tests.running.runs import ENDLESS, behavior, configuration, ending, live
from tests.sampling.pools.test_restarts import Run, mortals

MORTAL = "tests.sampling.mortal:Mortal"


def settings(folder: Path, *faults: str, **changes: object) -> dict[str, object]:
    """Two Mortals with a worker each; the n-th life has the n-th fault."""
    kwargs = {"folder": str(folder), "faults": [*faults], "at": 10}
    return {"env_kwargs": kwargs, "num_envs": 2, "num_workers": 2, "timeout_wait": 60, **changes}


def test_run_whose_workers_fail_now_and_then_goes_on(tmp_path: Path) -> None:
    others = set(psutil.Process().children(recursive=True))
    env_settings = settings(tmp_path, "dies", "raises", "exits", restarts_rate_limit_n=3)
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, MORTAL, env_settings=env_settings)
    with live(config) as run:
        while len(run.of(EnvironmentRestarted)) < 3:
            run.wait_for(EnvironmentRestarted, after=len(run.mail))
        assert run.send(Stop()).ok
    assert run.launch.exit_code == 0, ending(run)
    restarting = run.of(EnvironmentRestarting)
    assert {(event.environment, event.behaviors) for event in restarting} == {(MORTAL, ("Walker",))}
    assert {event.worker for event in restarting} <= {0, 1}
    assert any("raise ValueError(" in event.detail for event in restarting)
    assert not run.of(EnvironmentFailed)
    assert set(psutil.Process().children(recursive=True)) <= others


def test_run_whose_worker_hangs_goes_on(tmp_path: Path) -> None:
    """A step that a busy machine makes as slow counts as hanging, too: restarts are not limited."""
    limits = {"timeout_wait": 1, "restarts_rate_limit_n": -1, "max_lifetime_restarts": -1}
    env_settings = settings(tmp_path, "hangs", **limits)
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, MORTAL, env_settings=env_settings)
    with live(config) as run:
        hanging = run.wait_for(EnvironmentRestarting, lambda event: "has not returned for 1 s" in event.reason)
        run.wait_for(EnvironmentRestarted, lambda event: event.worker == hanging.worker)
        assert run.send(Stop()).ok
    assert run.launch.exit_code == 0, ending(run)
    assert not run.of(EnvironmentFailed)


def test_run_can_be_paused_and_stopped_during_a_restart(tmp_path: Path) -> None:
    others = set(psutil.Process().children(recursive=True))
    env_settings = settings(tmp_path, "dies", "behaves", "is_made_slowly")
    config = configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, MORTAL, env_settings=env_settings)
    with live(config) as run:
        run.wait_for(EnvironmentRestarting)
        assert run.send(Pause()).ok
        assert run.send(Resume()).ok
        run.wait_for(ProgressReported)
        last = run.of(ProgressReported)[-1].sampled
        run.wait_for(ProgressReported, lambda event: event.sampled > last + 100, after=len(run.mail))
        assert run.send(Stop()).ok
    assert ending(run).state == "stopped"
    assert not run.of(EnvironmentRestarted)
    assert set(psutil.Process().children(recursive=True)) <= others


def test_a_restart_is_no_end_to_the_value_of_a_state(tmp_path: Path) -> None:
    """Every step of this Walker costs 0.01 and it dies before any end: all states are worth the same. With those
    values no action has an advantage, unless a restart is learned as a real end."""
    with mortals(tmp_path, *["dies"] * 6) as pool:
        run = Run(pool)
        run.until(lambda: len(run.blocks) >= 6)
    gamma, cost = 0.9, -0.01
    value = cost / (1 - gamma)
    assert {int(ending) for block in run.blocks for ending in block.endings} == {int(TRUNCATED)}
    for block in run.blocks:
        np.testing.assert_allclose(advantages(block, value, gamma), 0.0, atol=1e-6)


def advantages(block: Trajectories, value: float, gamma: float) -> np.ndarray:
    """Where every state has that value."""
    values = np.full((block.num_rows, 1), value, np.float32)
    ends = (block.endings == TERMINATED)[:, None]
    after = np.where(ends, 0.0, value).astype(np.float32)
    return gae(block.rewards[:, None], values, after, block.lengths, np.full(1, gamma, np.float32), 0.95)[0]
