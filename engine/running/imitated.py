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
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import BehaviorSpec
from rl_tui.engine.storage.file_names import MANIFEST

TEACHER: Final = "hyperparameters.teacher"
ONNX: Final = ".onnx"


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


def require_policy(path: Path, results_dir: str = "") -> None:
    """There is something at the path that might be a policy. results_dir: where runs are. Raises ConfigError."""
    from rl_tui.engine.storage.checkpoints import trained_behaviors  # imports safetensors, which only a teacher needs

    is_checkpoint = (path / MANIFEST).is_file() or (path.is_dir() and bool(trained_behaviors(path)))
    if is_checkpoint or (path.suffix == ONNX and path.is_file()):
        return
    must = "must be the folder of a run, a checkpoint in it, or an ONNX file"
    if not path.exists():
        run = Path(results_dir) / path
        hint = f" Did you mean {run}?" if run.is_dir() else ""
        raise ConfigError(f"{path}: there is no such file or folder; it {must}.{hint}")
    raise ConfigError(f"{path}: {must}, got {'a folder without checkpoints' if path.is_dir() else 'another file'}")


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
