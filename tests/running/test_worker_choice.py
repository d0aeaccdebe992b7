"""`num_workers: auto`: a copy is timed, and the run goes on with a number."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running import worker_choice
from rl_tui.engine.running.worker_choice import choose_workers, measure_steps
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.session.messages import LogEmitted, Stop
from rl_tui.engine.specs import Actions, Steps
from rl_tui.engine.storage.run_folder import RunFolder
from tests.running.environments import RELEASE
from tests.running.runs import LiveRun, behavior, configuration, ending, run_to_end

STEP_SECONDS = 0.002
SLOW = "tests.running.test_worker_choice:Slow"
SLOWER = "tests.running.test_worker_choice:Slower"


class Slow(Line):
    """A Line whose steps take longer than workers need to pay off."""

    seconds = STEP_SECONDS

    def __init__(self) -> None:
        super().__init__("Walker", 1)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        time.sleep(self.seconds)
        return super().step(actions)


class Slower(Slow):
    """Twice as slow."""

    seconds = 2 * STEP_SECONDS


def config_of(folder: Path, env: object = SLOW, *, threaded: bool = False, **settings: Any) -> RunConfig:
    names = env if isinstance(env, dict) else {"Walker": env}
    behaviors = {name: behavior(max_steps=200, threaded=threaded) for name in names}
    return configuration(folder, behaviors, env, env_settings={"num_envs": 8, "num_workers": "auto", **settings})


def choice_of(config: RunConfig, *envs: str, num_cpus: int = 4) -> tuple[int, str]:
    sources = [EnvironmentSource(env, "Walker", {}) for env in envs or (SLOW,)]
    return choose_workers(config, sources, RunFolder.of(config), num_cpus)


def test_a_step_is_timed_with_all_that_the_environment_does() -> None:
    pool = SerialPool("slow", lambda first, count: [Slow()], 1)
    pool.start()
    seconds = measure_steps(pool)
    pool.close()
    assert seconds >= STEP_SECONDS


@pytest.mark.parametrize(
    ("num_cpus", "settings", "expected", "why"),
    [
        (4, {}, 4, "and there are 4 CPUs"),
        (4, {"num_envs": 3}, 3, "and num_envs is 3"),
        (4, {"threaded": True}, 3, "and there are 4 CPUs for a learner that needs one"),
        (2, {"threaded": True}, 1, "and there are 2 CPUs for a learner that needs one"),
        (1, {}, 0, "since there is 1 CPU"),
        (1, {"threaded": True}, 0, "since there is 1 CPU for a learner that needs one"),
        (4, {"num_envs": 1}, 0, "since num_envs is 1"),
    ],
)
def test_slow_environments_get_the_cpus(
    num_cpus: int, settings: dict[str, Any], expected: int, why: str, tmp_path: Path
) -> None:
    number, reason = choice_of(config_of(tmp_path, **settings), num_cpus=num_cpus)
    assert number == expected
    assert reason.startswith(f"num_workers: auto takes {number}, since ")
    assert reason.endswith(why)


def test_a_step_that_takes_less_than_a_worker_costs_stays_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_choice, "PAYS_FROM_SECONDS", 60.0)
    number, reason = choice_of(config_of(tmp_path))
    assert number == 0
    assert "workers pay off from" in reason
    monkeypatch.undo()
    monkeypatch.setattr(worker_choice, "PAYS_FROM_SECONDS_IN_MAIN", 60.0)
    assert choice_of(config_of(tmp_path))[0] == 4
    assert choice_of(config_of(tmp_path, act_in="main"))[0] == 0


def test_environments_of_several_behaviors_share_the_cpus(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"Walker": SLOW, "Runner": SLOWER})
    number, reason = choice_of(config, SLOW, SLOWER)
    assert number == 2
    shown = float(reason.split(" ms")[0].split()[-1])
    assert shown >= 2 * STEP_SECONDS * 1000, "the slowest decides"
    assert reason.endswith("and there are 4 CPUs for 2 environments")
    assert choice_of(config, SLOW, SLOWER, num_cpus=2)[1].endswith("since there are 2 CPUs for 2 environments")


def test_nothing_is_timed_where_no_worker_could_make_the_environment(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    assert choice_of(config, "__main__:Slow")[0] == 0
    assert choice_of(config, "unity:no/player") == (0, "")


def test_environment_that_cannot_be_made_is_left_to_the_start(tmp_path: Path) -> None:
    broken = "tests.running.environments:never_made"
    number, reason = choice_of(config_of(tmp_path, broken), broken)
    assert number == 0
    assert "no screen here" in reason
    run = run_to_end(config_of(tmp_path, broken))
    assert run.launch.exit_code == 3
    assert "no screen here" in ending(run).reason


def test_stop_is_heard_while_a_copy_is_made(tmp_path: Path) -> None:
    RELEASE.clear()
    try:
        run = LiveRun(config_of(tmp_path, "tests.running.environments:made_forever"), Stop())
        run.wait()
    finally:
        RELEASE.set()
    assert (ending(run).state, ending(run).reason) == ("stopped", "before training began")
    assert not run.folder.exists()


def test_run_stores_the_number_and_keeps_it_when_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_tui.engine.running.runtime.usable_cpus", lambda: 2)
    first = run_to_end(config_of(tmp_path))
    assert first.launch.exit_code == 0
    assert stored(first.folder) == 2
    assert any("auto takes 2, since a step takes" in line for line in lines_of(first))
    monkeypatch.setattr("rl_tui.engine.running.runtime.usable_cpus", lambda: 8)
    again = config_of(tmp_path)
    settings = again.checkpoint_settings.model_copy(update={"resume": True})
    second = run_to_end(again.model_copy(update={"checkpoint_settings": settings}))
    assert any("auto takes 2, as this run has had" in line for line in lines_of(second))
    assert stored(second.folder) == 2


def lines_of(run: Any) -> list[str]:
    return [event.message for event in run.of(LogEmitted)]


def stored(folder: Path) -> object:
    return yaml.safe_load((folder / "configuration.yaml").read_text())["env_settings"]["num_workers"]
