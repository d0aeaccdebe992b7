"""What the configuration of a run means for everything that is made of it: its seed, its device, its folder."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from rl_tui.engine.config.diagnostics import Diagnostic
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import AUTO, DEVICES
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.policies import CPU
from rl_tui.engine.running.hooks import Hooks
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.machine.memory import MemoryBudget, available_bytes
from rl_tui.engine.running.ranks.role import ALONE, Role
from rl_tui.engine.running.restoring import Restorer
from rl_tui.engine.running.saver import Files, Saver
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Report
from rl_tui.engine.storage.run_folder import RunFolder

RANDOM_SEEDS = 10_000  # ML-Agents draws a seed from 0 to 9999 when none is given


@dataclass
class RunSetup:
    """What all behaviors of a run share.

    config: with this rank's environments, of all `num_envs`. folder: open. report: where learners answer commands.
    files: of behaviors, by name; they grow when one appears, and other threads iterate over copies. device: as of
    `device_of`. started_at: monotonic seconds.
    """

    config: RunConfig
    num_envs: int
    folder: RunFolder
    seed: int
    device: torch.device
    bus: EventBus
    report: Report
    hooks: Hooks
    lessons: Lessons
    saver: Saver
    files: dict[str, Files]
    step: int  # the largest that a behavior resumes at
    role: Role = ALONE
    started_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.is_training = not self.config.checkpoint_settings.inference
        self.working_directory = Path.cwd()  # before there is an environment, which may change it
        self.restorer = Restorer(self.config.checkpoint_settings, self.folder, self.bus)
        settings = self.config.env_settings
        num_environments = 1 if isinstance(settings.environment, str) else len(settings.environment)
        self.copies_apart = itertools.count(self.num_envs * num_environments, settings.num_envs)  # for evaluations
        self.first_env, _ = self.role.own_part(self.num_envs)  # of this rank's copies of an environment

    @cached_property
    def budget(self) -> MemoryBudget:
        """The memory that replay buffers share."""
        return MemoryBudget(available_bytes())


def _ignore(_: str) -> None:
    pass


def run_seed(config: RunConfig) -> int:
    """The configured seed, or a random one."""
    seed = config.env_settings.seed
    return seed if seed >= 0 else random.SystemRandom().randrange(RANDOM_SEEDS)


def device_of(config: RunConfig, log: Callable[[str], object] = _ignore, number: int = 0) -> torch.device:
    """The configured device, with its index where it has one; with `auto`, what may be chosen besides the CPU: the GPU
    that torch finds, else the CPU itself.

    number: of the GPU where no index is named, counted over those that torch finds.
    Raises ConfigError where it cannot be used; with `auto`, `log` gets a line instead.
    """
    name, is_auto = config.torch_settings.device, config.torch_settings.device == AUTO
    if is_auto:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and number and (count := torch.cuda.device_count()):
        name = f"cuda:{number % count}"
    try:
        return torch.zeros(1, device=torch.device(name)).device
    except (RuntimeError, AssertionError) as error:
        reason = "torch was built without it" if isinstance(error, NotImplementedError) else str(error).splitlines()[0]
        is_unknown = reason.startswith("Expected one of")  # torch knows no such kind
        text = f'must be {DEVICES}, got "{name}"' if is_unknown else f"{name} is not available: {reason}"
        if not is_auto:
            place = config.source.place(Diagnostic(("torch_settings", "device"), ""))
            raise ConfigError(f"{place}: {text}") from error
    log(f"{text}; all is computed on the CPU")
    return CPU


def derived_seed(*parts: int) -> int:
    """An independent seed for every combination of parts."""
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0])
