"""Whether a run would start, as far as can be known without starting an environment or importing torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from rl_tui.engine import registry
from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath
from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.environments import kind_of
from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.config.naming import name_of
from rl_tui.engine.config.plugin_settings import PluginSettings
from rl_tui.engine.config.requirements import missing_library
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.run import CheckpointSettings, RunConfig
from rl_tui.engine.config.support import find_unsupported
from rl_tui.engine.config.wrappers import read_wrappers
from rl_tui.engine.config.writers import KIND as WRITERS
from rl_tui.engine.errors import ConfigError, PluginError, RlTuiError
from rl_tui.engine.running.evaluation.named_opponents import require_opponents
from rl_tui.engine.running.imitated import require_imitated
from rl_tui.engine.running.ranks.supported import require_supported
from rl_tui.engine.sampling.environments.factory import require_environment
from rl_tui.engine.sampling.environments.wrapping import require_wrapper
from rl_tui.engine.storage.run_folder import RunFolder


def refusals(config: RunConfig, num_ranks: int = 1) -> list[str]:
    """One line for each reason why a run of this configuration cannot start on so many ranks.

    No file is created or changed. The user's modules with environments and the installed plug-ins that the file names
    are imported; where one of these learns, the environments and trainers are made, too. Otherwise torch is not
    imported. Whether the device exists, the memory suffices and a checkpoint fits is not known before the start.
    """
    refused = [*find_unsupported(config), *config.source.lines(_unusable_plugins(config))]
    checks = [lambda: require_supported(config, num_ranks), *_checks(config), *([] if refused else _rehearsals(config))]
    for check in checks:
        try:
            check()
        except RlTuiError as error:
            refused.append(str(error))
        except OSError as error:
            refused.append(f"{error.filename}: cannot be used ({error.strerror})")
    return refused


def start_note(config: RunConfig) -> str | None:
    """What resume_or_start would choose now; None without it."""
    folder = RunFolder.of(config)
    return resumed_or_started(folder.path, folder.has_begun) if config.checkpoint_settings.resume_or_start else None


def resumed_or_started(path: Path, has_begun: bool) -> str:
    """What resume_or_start chooses. path: the run's folder."""
    return f"{path} holds a run: continuing it" if has_begun else f"no run in {path} yet: starting"


def environments_of(config: RunConfig) -> list[str]:
    """The environments that the run names, each once."""
    env = config.env_settings.environment
    return [env] if isinstance(env, str) else list(dict.fromkeys(env.values()))


def require_startable(config: RunConfig) -> None:
    """The same without importing the user's modules, which may take long. Raises RlTuiError for the first reason."""
    for check in _checks(config, with_modules=False):
        with suppress(OSError):  # the run will say so
            check()


def _checks(config: RunConfig, with_modules: bool = True) -> Iterator[Callable[[], object]]:
    settings = config.checkpoint_settings
    yield lambda: _require_folder(config)
    is_resumed = settings.resume or (settings.resume_or_start and RunFolder.of(config).has_begun)
    if settings.initialize_from is not None and not is_resumed:
        yield lambda: _require_origin(settings)
    yield lambda: require_imitated(config)
    yield lambda: require_opponents(config)
    for name in environments_of(config):
        kind = kind_of(name)
        if kind is not None and not kind.implementation:
            continue  # refused already
        if with_modules or (kind is not None and not kind.runs_user_code(name.partition(":")[2])):
            yield partial(require_environment, name)
    if with_modules:
        for wrapper in read_wrappers(config.env_settings.wrappers):
            yield partial(require_wrapper, wrapper.name)


def _rehearsals(config: RunConfig) -> Iterator[Callable[[], object]]:
    """What an installed trainer, reward signal or encoder is made in, and what it is made with."""
    learning = (kind != WRITERS and registry.package_of(kind, name) for _, kind, name, _ in _named_plugins(config))
    if any(learning):
        from rl_tui.engine.running.rehearsal import require_makable  # imports torch

        yield lambda: require_makable(config)


def require_players(config: RunConfig) -> None:
    """The file of each Unity player is there and may be executed. Raises ConfigError for the first that is not."""
    for name in environments_of(config):
        if is_of_unity(name):
            require_environment(name)


def require_writers(config: RunConfig) -> None:
    """The installed writers of a run that trains can be made. Raises PluginError for the first that cannot."""
    if not config.checkpoint_settings.inference:
        for name, writer in config.writers.items():
            if writer is not None and registry.package_of(WRITERS, name):
                registry.implementation(WRITERS, name)


def _unusable_plugins(config: RunConfig) -> Iterator[Diagnostic]:
    """Each installed plug-in that the file names and whose implementation cannot be imported or lacks something.

    Environments are found by `require_environment`, and missing libraries by `find_unsupported`.
    """
    for path, kind, name, settings in _named_plugins(config):
        if registry.package_of(kind, name) and not missing_library(settings):
            try:
                _require_whole(kind, name, settings)
            except PluginError as error:
                yield Diagnostic(path, str(error))


def _require_whole(kind: str, name: str, settings: PluginSettings) -> None:
    """What implements an installed plug-in has all that it must have. Raises PluginError."""
    if isinstance(settings, Hyperparameters):
        from rl_tui.engine.learning.trainer import require_trainer  # imports torch, as an installed trainer does

        require_trainer(name)
    elif isinstance(settings, RewardSignalSettings):
        from rl_tui.engine.learning.rewards.streams import require_signal

        require_signal(name, settings)
    else:
        registry.implementation(kind, name)


def _named_plugins(config: RunConfig) -> Iterator[tuple[KeyPath, str, str, PluginSettings]]:
    for behavior, settings in config.behaviors.items():
        path, network = ("behaviors", behavior), settings.network_settings
        yield (*path, "trainer_type"), "trainers", settings.trainer_type, settings.hyperparameters
        for name, signal in settings.reward_signals.items():
            yield (*path, "reward_signals", name), "reward_signals", name, signal
        place = (*path, "network_settings", "vis_encode_type")
        yield place, "encoders", network.vis_encode_type, network.encoder_settings
    for name, writer in config.writers.items():
        if writer is not None:
            yield (WRITERS, name), WRITERS, name, writer


def _require_folder(config: RunConfig) -> None:
    """The folder of the run may be used, and permissions allow to create it or to write there."""
    settings, folder = config.checkpoint_settings, RunFolder.of(config)
    folder.require_startable(settings.resume, settings.force, or_start=settings.resume_or_start)
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
    origin = RunFolder(Path(settings.results_dir), settings.initialize_from)
    origin.require_exists(name_of("checkpoint_settings.initialize_from"))
