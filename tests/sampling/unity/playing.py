"""Environments on stand-in players, for tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps
from tests.deadline import DEADLINE_SECONDS
from tests.unity_player.executable import make_player
from tests.warm_start import WarmProcess

BALL = "3DBall?team=0"


def free_port() -> int:
    """A port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unity_settings(folder: Path, **changed: object) -> UnitySettings:
    """Settings with a free port and logs in the folder."""
    given = {"base_port": free_port(), "log_folder": str(folder / "logs"), "timeout_wait": int(DEADLINE_SECONDS)}
    return UnitySettings.model_validate({**given, **changed})


@contextmanager
def playing(folder: Path, *arguments: str, number: int = 0, **settings: object) -> Iterator[UnityEnvironment]:
    """An environment whose player was started with these arguments."""
    environment = UnityEnvironment(make_player(folder, *arguments), number, unity_settings(folder, **settings))
    try:
        yield environment
    finally:
        environment.close()


def zeros(specs: Mapping[str, BehaviorSpec], steps: Mapping[str, Steps]) -> dict[str, Actions]:
    """Zeros, or the first choice that is allowed, for every agent that waits."""
    actions = {}
    for name, spec in specs.items():
        num = len(steps[name].decisions.agent_ids) if name in steps else 0
        mask = steps[name].decisions.action_mask if name in steps else None
        discrete = np.zeros((num, len(spec.actions.branches)), np.int64)
        if mask is not None:
            ends = np.cumsum(spec.actions.branches)[:-1]
            discrete = np.stack([part.argmax(axis=1) for part in np.split(mask, ends, axis=1)], axis=1)
        actions[name] = Actions(np.zeros((num, spec.actions.continuous), np.float32), discrete)
    return actions


def play(environment: UnityEnvironment, num_steps: int) -> list[Mapping[str, Steps]]:
    """The answers to a reset and as many steps, all with zeros."""
    answers = [environment.reset(None)]
    for _ in range(num_steps):
        answers.append(environment.step(zeros(environment.specs, answers[-1])))
    return answers


def players_of(folder: Path) -> list[int]:
    """Processes that were started with a path in that folder, wherever they belong."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = WarmProcess.command_lines.get(process.pid) or process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(str(folder) in word for word in words):
            found.append(process.pid)
    return found
