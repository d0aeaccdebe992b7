"""A run from outside: what a front end may rely on before, during and after it."""

from __future__ import annotations

import sys
import threading
import weakref
from pathlib import Path

import gymnasium
import pytest

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.session.messages import (
    AddNote,
    CheckpointSaved,
    MetricsReported,
    Pause,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
    WorkerFailed,
)
from tests.running.runs import ENDLESS, behavior, configuration, ending, live, run_to_end
from tests.sampling.worlds import Counting


class SlowToFree:
    """Notes when it is freed, which takes a moment, as large tensors do."""

    freed = 0

    def __del__(self) -> None:
        threading.Event().wait(0.2)
        SlowToFree.freed += 1


class NeverMade(PPOTrainer):
    """A trainer with a mistake in its constructor."""

    def __init__(self, *_: object) -> None:
        self.held = SlowToFree()
        raise ZeroDivisionError("an internal error")


class Held(Counting):
    """Notes which copies exist, as ale-py does, which prints those that are left when Python exits."""

    copies = weakref.WeakSet[Counting]()

    def __init__(self) -> None:
        super().__init__()
        Held.copies.add(self)


def needs_more(env: object) -> None:
    """A wrapper that cannot be put around an environment."""
    raise gymnasium.error.DependencyNotInstalled("moviepy is not installed")


def test_run_that_is_refused_holds_no_environment(tmp_path: Path) -> None:
    settings = {"wrappers": [f"{__name__}:needs_more"]}
    env = "tests.running.test_launch:Held"
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, env, env_settings=settings))
    assert "moviepy is not installed" in str(run.launch.error)
    assert run.launch.failure is run.launch.error
    assert not sys.modules["tests.running.test_launch"].Held.copies


def test_commands_sent_from_several_threads_until_after_the_end_all_have_outcomes(tmp_path: Path) -> None:
    with live(configuration(tmp_path, {"Walker": behavior()})) as run:
        over = threading.Event()

        def send() -> None:
            while not over.is_set():
                run.launch.send(SaveCheckpoint())
                over.wait(0.01)
            run.launch.send(SaveCheckpoint())

        threads = [threading.Thread(target=send, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            assert run.wait() == 0
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_mistake_while_starting_ends_the_run_with_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PPOSettings, "implementation", "tests.running.test_launch:NeverMade")
    SlowToFree.freed = 0
    with live(configuration(tmp_path, {"Walker": behavior()}), Pause(), SaveCheckpoint()) as run:
        run.wait()
        assert SlowToFree.freed == 1, "tensors that are freed while the program exits abort it"
    assert run.launch.exit_code == 1
    assert run.launch.error is None
    (failure,) = run.of(WorkerFailed)
    assert failure.worker == "coordinator"
    assert "in __init__" in failure.traceback
    assert "ZeroDivisionError: an internal error" in "".join(event.reason for event in run.of(RunStateChanged))


@pytest.mark.parametrize("paused", [False, True])
def test_internal_error_of_the_coordinator_stops_every_thread_and_loses_nothing(tmp_path: Path, paused: bool) -> None:
    with live(configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)})) as run:
        run.wait_for(MetricsReported)
        if paused:
            run.send(Pause())
        run.launch.send(AddNote(7))  # type: ignore[arg-type]  # nothing that a front end sends: it raises
        assert run.wait() == 1
        assert run.of(WorkerFailed)[0].worker == "coordinator"
        (saved,) = run.of(CheckpointSaved)
        assert saved.reason == "interrupted"


def test_error_of_the_user_is_kept_for_the_front_end(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Walker": behavior()})
    config = config.model_copy(update={"torch_settings": config.torch_settings.model_copy(update={"device": "abc"})})
    run = run_to_end(config, Stop(exit_code=130))
    assert run.launch.exit_code == 2
    assert isinstance(run.launch.error, RlTuiError)
    assert "torch_settings.device: must be auto, cpu, cuda, cuda:N or mps, got" in ending(run).reason
    assert not run.folder.exists()
