"""Driving whole runs in this process: small configurations, waiting for events, and checking what is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import yaml

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.running.ranks.requested import Ranks
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    DELTAS,
    Command,
    CommandAsked,
    CommandFinished,
    Envelope,
    EpisodesFinished,
    Event,
    MetricsReported,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.specs import Ending, Trajectories
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.run_folder import RunFolder
from tests.deadline import DEADLINE_SECONDS

ENDLESS = 100_000_000
# With `threaded: true`. Without, learners run in the collector's thread, as in all tests that do not say.
THREADED = [True, pytest.param(False, marks=pytest.mark.slow)]

E = TypeVar("E")


def behavior(**changes: Any) -> dict[str, Any]:
    """Settings of a behavior that updates every 64 steps and ends after 512; dotted names with `__`."""
    settings: dict[str, Any] = {
        "trainer_type": "ppo",
        "hyperparameters": {"batch_size": 32, "buffer_size": 64, "num_epoch": 1},
        "network_settings": {"hidden_units": 8, "num_layers": 1},
        "time_horizon": 16,
        "max_steps": 512,
        "summary_freq": 100,
        "checkpoint_interval": ENDLESS,
    }
    for name, value in changes.items():
        section, _, key = name.rpartition("__")
        (settings[section] if section else settings)[key] = value
    return settings


def configuration(
    folder: Path, behaviors: Mapping[str, Mapping[str, Any]], env: Any = "toy:line", **changes: Any
) -> RunConfig:
    """A run of these behaviors in `folder`/results/run; changes: of other sections, in part."""
    document = {
        "behaviors": dict(behaviors),
        "env_settings": {"env": env, "num_envs": 4, "seed": 1} | changes.get("env_settings", {}),
        "checkpoint_settings": {"run_id": "run", "results_dir": str(folder / "results")}
        | changes.get("checkpoint_settings", {}),
        "torch_settings": {"device": "cpu"} | changes.get("torch_settings", {}),
        "writers": changes.get("writers", {}),
        "environment_parameters": changes.get("environment_parameters"),
    }
    return parse_config(yaml.safe_dump(document).encode(), "test.yaml")


def block(num_rows: int, value: float, policy_version: int = 0) -> Trajectories:
    """One segment of one agent that ends its episode."""
    seen = np.full((num_rows, 1), value, np.float32)
    return Trajectories(
        observations=(seen,),
        continuous_actions=np.zeros((num_rows, 0), np.float32),
        discrete_actions=np.zeros((num_rows, 1), np.int64),
        log_probs=np.full((num_rows, 1), -1.0, np.float32),
        action_mask=None,
        rewards=np.full(num_rows, value, np.float32),
        lengths=np.array([num_rows], np.int64),
        begins=np.ones(1, np.bool_),
        endings=np.array([Ending.TERMINATED], np.int8),
        next_observations=(seen[:1],),
        agent_ids=np.zeros(1, np.int64),
        episode_returns=np.array([num_rows * value], np.float32),
        episode_lengths=np.array([num_rows], np.int64),
        policy_version=policy_version,
    )


class LiveRun:
    """A Launch and all its events so far. Starts at once."""

    def __init__(
        self,
        config: RunConfig,
        *commands: Command,
        hooks: Hooks = NO_HOOKS,
        bus: EventBus | None = None,
        ranks: Ranks | None = None,
    ):
        """commands: sent before anything else can happen. bus: one with another clock. ranks: of several."""
        self.folder = RunFolder.of(config).path
        self.mail: list[Envelope] = []
        self.launch = Launch(bus or EventBus())
        self._subscription = self.launch.subscribe()
        for command in commands:
            self.launch.send(command)
        self.launch.start(config, hooks, ranks)

    @property
    def events(self) -> list[Event]:
        """Everything that was read so far, oldest first."""
        return [envelope.event for envelope in self.mail]

    def of(self, kind: type[E]) -> list[E]:
        """The events of that class."""
        return [event for event in self.events if isinstance(event, kind)]

    def wait_for(self, kind: type[E], when: Callable[[E], bool] = lambda _: True, after: int = 0) -> E:
        """The first such event, from the `after`-th event on; all before it have been read."""
        deadline, seen = time.monotonic() + DEADLINE_SECONDS, after
        while True:
            for event in self.events[seen:]:
                if isinstance(event, kind) and when(event):
                    return event
            seen = len(self.mail)
            assert time.monotonic() < deadline, f"no such {kind.__name__} among\n" + self.recent_events()
            assert not (self._is_over and not self._read(0)), (
                f"over without such a {kind.__name__}:\n" + self.recent_events()
            )
            self._read(0.1)

    def send(self, command: Command) -> CommandFinished:
        """The outcome of the command."""
        self.launch.send(command)
        return self.wait_for(CommandFinished, lambda event: event.id == command.id)

    def wait(self) -> int:
        """The exit code of the run, once it is over and everything was read."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.launch.wait(0):
            assert time.monotonic() < deadline, "still running:\n" + self.recent_events()
            self._read(0.02)  # after the last event it ends without another one
        self._read(0)
        return self.launch.exit_code

    def recent_events(self) -> str:
        """The newest events that matter, for a message."""
        happened = [
            event for event in self.events if not isinstance(event, (*DELTAS, MetricsReported, EpisodesFinished))
        ]
        return "\n".join(str(event)[:300] for event in happened[-40:])

    @property
    def _is_over(self) -> bool:
        return self.launch.wait(0)

    def _read(self, seconds: float) -> bool:
        mail = self._subscription.drain(seconds)
        self.mail += mail
        return bool(mail)


@contextmanager
def live(
    config: RunConfig, *commands: Command, hooks: Hooks = NO_HOOKS, bus: EventBus | None = None
) -> Iterator[LiveRun]:
    """A run that is stopped, if it is still running.

    Afterwards its threads are gone, every command has had exactly one outcome, and the exit code was published once.
    """
    others = set(threading.enumerate())
    run = LiveRun(config, *commands, hooks=hooks, bus=bus)
    try:
        yield run
    finally:
        if not run.launch.wait(0):
            run.launch.send(Stop("now"))
            run.launch.wait(DEADLINE_SECONDS)
        left = threads_left(others)
        assert not left, f"threads that did not end: {left}\n{run.recent_events()}"
    run.wait()
    asked = sorted(event.id for event in run.of(CommandAsked))
    assert sorted(event.id for event in run.of(CommandFinished)) == asked, (
        f"not one outcome each:\n{run.recent_events()}"
    )
    endings = [event for event in run.of(RunStateChanged) if event.exit_code is not None]
    assert [event.exit_code for event in endings] == [run.launch.exit_code], run.recent_events()


def run_to_end(config: RunConfig, *commands: Command, hooks: Hooks = NO_HOOKS) -> LiveRun:
    """The run is over."""
    with live(config, *commands, hooks=hooks) as run:
        run.wait()
    return run


def threads_left(others: set[threading.Thread], seconds: float = 5.0) -> list[str]:
    """Threads of a run that are still alive after so many seconds."""
    deadline = time.monotonic() + seconds
    workers = set(threading.enumerate()) - others
    for thread in workers:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread.name for thread in workers if thread.is_alive()]


def ending(run: LiveRun) -> RunStateChanged:
    """The last state of the run, after which only commands that came too late are asked and refused."""
    last = next(event for event in reversed(run.events) if not isinstance(event, (CommandAsked, CommandFinished)))
    assert isinstance(last, RunStateChanged), run.recent_events()
    return last


def tensors_of(checkpoint: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Every array in a checkpoint by name."""
    return dict(read(checkpoint)[0].tensors)


def equal(left: Mapping[str, np.ndarray[Any, Any]], right: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    """Whether both hold the same arrays, bit for bit."""
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].tobytes() == right[name].tobytes() for name in left
    )
