"""What a behavior imitates: found before a run starts; demonstrations are opened when it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.demonstrations.opened import OpenedDemonstrations
from rl_tui.engine.demonstrations.opening import open_demonstrations, require_found
from rl_tui.engine.errors import ConfigError, DemonstrationError
from rl_tui.engine.running.policy_paths import require_policy
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import BehaviorSpec

TEACHER: Final = "hyperparameters.teacher"


def require_imitated(config: RunConfig) -> None:
    """The demonstrations and teachers of this run are there. Raises DemonstrationError or ConfigError for the first
    that is not."""
    if config.checkpoint_settings.inference:
        return
    for name, behavior in config.behaviors.items():
        for key, path in behavior.demo_paths.items():
            with _named(f"behaviors.{name}.{key}"):
                require_found(path)
        if behavior.hyperparameters.teacher_path is not None:
            with _named(f"behaviors.{name}.{TEACHER}"):
                require_policy(Path(behavior.hyperparameters.teacher_path), config.checkpoint_settings.results_dir)


def opened_for(
    spec: BehaviorSpec, config: BehaviorConfig, log: Callable[[str], object]
) -> Mapping[str, OpenedDemonstrations]:
    """All that it learns from, by path; `log` gets a line about each. Raises DemonstrationError where they cannot be
    read, or do not fit it."""
    found: dict[str, OpenedDemonstrations] = {}
    for key, path in config.demo_paths.items():
        if path not in found:
            with _named(f"behaviors.{spec.name}.{key}"):
                found[path] = opened = open_demonstrations(path, spec)
            episodes = counted(len(opened.episodes), "episode")
            log(f"demonstrations: {counted(opened.num_steps, 'step')} in {episodes} of {path}")
    return found


@contextmanager
def _named(key: str) -> Iterator[None]:
    try:
        yield
    except (ConfigError, DemonstrationError) as error:
        raise type(error)(f"{key}: {error}") from error
