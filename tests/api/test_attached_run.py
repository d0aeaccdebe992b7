"""A run that another part of a program, or another process, has started."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rl_tui
from rl_tui import messages
from rl_tui.engine.remote.sockets import FOLDER_VARIABLE
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.end_to_end.program import finish
from tests.end_to_end.program import start as start_program
from tests.end_to_end.test_screen import CARTPOLE, ENDLESS, SLOW


@pytest.fixture(autouse=True)
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "sockets"))


def endless(folder: Path, **keywords: Any) -> rl_tui.RunHandle:
    return rl_tui.start(
        "ppo/CartPole",
        run_id="run",
        results_dir=folder / "results",
        set={"behaviors.CartPole.max_steps": 10**8},
        **keywords,
    )


def endless_program(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that trains, and the folder of its run."""
    (folder / "cartpole.yaml").write_text(CARTPOLE)
    (folder / "slow.py").write_text(SLOW)
    process = start_program("cartpole.yaml", *ENDLESS, "--no-ui", folder=folder)
    results = folder / "results/cartpole"
    wait_until((results / "run.lock").exists)
    return process, results


def step_of(run: rl_tui.RunHandle) -> int:
    behavior = run.view.behaviors.get("CartPole")
    return 0 if behavior is None else behavior.step


def episodes_of(run: rl_tui.RunHandle) -> int:
    behavior = run.view.behaviors.get("CartPole")
    return 0 if behavior is None else behavior.num_episodes


def test_attached_run_is_watched_and_controlled_as_one_that_was_started(tmp_path: Path) -> None:
    process, results = endless_program(tmp_path)
    try:
        with rl_tui.attach(results) as run:
            assert run.path == results
            wait_until(lambda: step_of(run) > 1000)
            saved = Path(run.checkpoint().wait(DEADLINE_SECONDS))
            assert saved.is_dir()
            assert saved.parent == results / "CartPole/checkpoints"
            with pytest.raises(rl_tui.CommandError, match="beta"):
                run.set_hyperparameter("CartPole", "beta", -1.0).wait(DEADLINE_SECONDS)
            assert (run.is_over, run.exit_code, run.error) == (False, None, None)
            with pytest.raises(rl_tui.NotSupportedError, match="stopped_by: only the process that has started the run"):
                _ = run.stopped_by
            metrics = next(e.event for e in run.events() if isinstance(e.event, messages.MetricsReported))
            assert metrics.behavior == "CartPole"
        assert process.poll() is None
        with rl_tui.attach(results) as run:
            assert run.view.behaviors["CartPole"].checkpoints[0][1].path == str(saved)  # what was before, too
            run.stop().wait(DEADLINE_SECONDS)
            assert run.wait(DEADLINE_SECONDS)
            assert (run.exit_code, run.error) == (0, None)
        assert finish(process)[0] == 0
    finally:
        process.kill()
    with pytest.raises(rl_tui.AttachError, match="no process trains it now"):
        rl_tui.attach(results)


def test_commands_to_a_process_that_is_gone_are_refused(tmp_path: Path) -> None:
    process, results = endless_program(tmp_path)
    try:
        run = rl_tui.attach(results)
        process.send_signal(signal.SIGSTOP)  # it hears nothing any more
        asked = run.pause()
        process.kill()
        with pytest.raises(rl_tui.CommandError, match=r"without a word|is lost"):
            asked.wait(DEADLINE_SECONDS)
        assert run.wait(DEADLINE_SECONDS)
        with pytest.raises(rl_tui.CommandError, match="without a word"):
            run.pause().wait(DEADLINE_SECONDS)
        assert run.exit_code is None
        assert isinstance(run.error, rl_tui.AttachError)
    finally:
        process.kill()
        finish(process)


def test_run_of_this_program_can_be_attached_to_unless_it_says_otherwise(tmp_path: Path) -> None:
    with endless(tmp_path / "open") as run, rl_tui.attach(run.path) as other:
        wait_until(lambda: step_of(other) > 0)
        other.pause().wait(DEADLINE_SECONDS)
        wait_until(lambda: run.view.state == "paused")  # the run's own view hears of it by another way
    with endless(tmp_path / "closed", attachable=False) as run:
        path = run.path
        with pytest.raises(rl_tui.AttachError, match="does not answer"):
            rl_tui.attach(path)


def test_run_that_is_resumed_shows_what_was_before(tmp_path: Path) -> None:
    with endless(tmp_path) as run:
        wait_until(lambda: episodes_of(run) > 20)
    episodes = episodes_of(run)
    with endless(tmp_path, resume=True) as run, rl_tui.attach(run.path) as other:
        wait_until(lambda: episodes_of(other) >= episodes)
