"""Whether a run would start, as far as can be known without starting an environment or importing torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from rl_tui.engine.config.environments import kind_of
from rl_tui.engine.config.run import CheckpointSettings, RunConfig
from rl_tui.engine.config.support import find_unsupported
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.sampling.environments.factory import require_environment
from rl_tui.engine.storage.run_folder import RunFolder


def refusals(config: RunConfig) -> list[str]:
    """One line for each reason why a run of this configuration cannot start.

    Nothing is created or changed. The user's modules with environments are imported, torch is not: whether the device
    exists, the memory suffices and a checkpoint fits is not known before the start.
    """
    refused = find_unsupported(config)
    for check in _checks(config):
        try:
            check()
        except RlTuiError as error:
            refused.append(str(error))
        except OSError as error:
            refused.append(f"{error.filename}: cannot be used ({error.strerror})")
    return refused


def require_startable(config: RunConfig) -> None:
    """The same without importing the user's modules, which may take long. Raises RlTuiError for the first reason."""
    for check in _checks(config, with_modules=False):
        with suppress(OSError):  # the run will say so
            check()


def _checks(config: RunConfig, with_modules: bool = True) -> Iterator[Callable[[], object]]:
    settings = config.checkpoint_settings
    yield lambda: _require_folder(config)
    if settings.initialize_from is not None and not settings.resume:
        yield lambda: _require_origin(settings)
    env = config.env_settings.env
    for name in [env] if isinstance(env, str) else dict.fromkeys((env or {}).values()):
        kind = kind_of(name)
        if kind is not None and not kind.implementation:
            continue  # refused already
        if with_modules or (kind is not None and not kind.runs_user_code(name.partition(":")[2])):
            yield partial(require_environment, name)


def _require_folder(config: RunConfig) -> None:
    """The folder of the run may be used, and permissions allow to create it or to write there."""
    settings, folder = config.checkpoint_settings, RunFolder.of(config)
    folder.require_startable(settings.resume, settings.force)
    path = folder.path
    nearest = next(parent for parent in (path, *path.absolute().parents) if _is_there(parent))
    if not nearest.is_dir():
        raise ConfigError(f"{path}: cannot be made: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: cannot be made: {nearest} cannot be written to")


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True  # what else the system says of such a path is raised


def _require_origin(settings: CheckpointSettings) -> None:
    assert settings.initialize_from is not None
    RunFolder(Path(settings.results_dir), settings.initialize_from).require_exists("--initialize-from")
