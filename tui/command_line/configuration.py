"""The configuration that a command line names, with what its flags set.

The configuration's libraries are imported inside the functions, so that --help and --version answer at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import closest, must_be_one_of, one_of, visible
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.tui.command_line.commands import COMMANDS
from rl_tui.tui.command_line.train_arguments import TrainArguments

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

LONGEST_NAME = 400  # in a message
ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the settings of a command line come from: the file at `path`, or without one what `trainer` has for the
    environment.

    named_after: what names the run without --run-id. is_profile: CONFIG names a profile. note: what was chosen where
    there is no CONFIG, in words.
    """

    named_after: str
    path: Path | None = None
    trainer: str = ""
    is_profile: bool = False
    note: str = ""


def read_configuration(arguments: TrainArguments) -> RunConfig:
    """The configuration of the file and the flags together. Raises ConfigError with every diagnostic.

    Without a file the environment is made, to see what it needs. Raises RlTuiError if it cannot be.
    """
    choice = choose_settings(arguments)
    with imports_that_stay():
        from rl_tui.engine.config.loading import load_config

        if choice.path is None:
            from rl_tui.engine.running.profiles import profiled_config

    if choice.path is not None:
        config = load_config(choice.path, arguments.overrides)
    else:
        config = profiled_config(choice.trainer, arguments.overrides, only_profiled=choice.is_profile)
    return config.acting_deterministically("--deterministic") if arguments.is_deterministic else config


def runnable_configuration(arguments: TrainArguments) -> RunConfig:
    """The same, complete and with nothing in it that is not supported yet. Raises ConfigError and NotSupportedError."""
    with imports_that_stay():
        from rl_tui.engine.config.support import require_supported
    config = read_configuration(arguments)
    require_supported(config)
    return config


def choose_settings(arguments: TrainArguments) -> Choice:
    """What CONFIG names; without it a preset for the environment, PPO's first, or else what the trainer has for it.

    Raises ConfigError.
    """
    from rl_tui.engine.config.presets import preset_path, presets_in

    if arguments.config:
        return _typed_choice(arguments)
    env, trainer = arguments.overrides.get("env_settings.env"), arguments.trainer
    presets = presets_in(env, trainer) if isinstance(env, str) else []
    if presets:
        path = preset_path(presets[0])
        return Choice(str(path), path, note=f"no CONFIG: the preset {presets[0]}")
    return _choice_of_trainer(arguments, trainer or "ppo")


def _typed_choice(arguments: TrainArguments) -> Choice:
    """The file, preset or profile that CONFIG names."""
    config = arguments.config
    if arguments.trainer:
        named = visible(config, limit=LONGEST_NAME)
        raise ConfigError(f"--trainer: must be left out with a CONFIG: {named} names the trainer itself")
    from rl_tui.engine.config.presets import trainer_of_profile

    path = find_config(config)
    trainer = "" if Path(config).exists() else trainer_of_profile(config)
    return _choice_of_trainer(arguments, trainer, is_profile=True) if trainer else Choice(str(path), path)


def _choice_of_trainer(arguments: TrainArguments, trainer: str, *, is_profile: bool = False) -> Choice:
    """The profile of a trainer, or its defaults; for the environment of the flags."""
    from rl_tui.engine.config.environment_name import EDITOR, full_name
    from rl_tui.engine.config.environments import has_mlagents_defaults
    from rl_tui.engine.config.hyperparameters import trainer_names
    from rl_tui.engine.config.presets import profile_name
    from rl_tui.engine.config.profiles import name_without_file

    if trainer not in (known := trainer_names()):
        raise ConfigError(f"--trainer: {must_be_one_of(known, trainer)}")
    env = arguments.overrides.get("env_settings.env", EDITOR)
    environment = full_name(env) if isinstance(env, str) else [*env] if isinstance(env, dict) else EDITOR
    named_after = name_without_file(trainer, environment)
    if is_profile:
        return Choice(named_after, trainer=trainer, is_profile=True)
    profile = profile_name(trainer)
    if not profile or (isinstance(environment, str) and has_mlagents_defaults(environment)):
        note = f"no CONFIG: every behavior is trained by {trainer.upper()} with its default settings"
    else:
        note = f"no CONFIG: using the profile {profile}; --dry-run prints its settings"
    return Choice(named_after, trainer=trainer, note=note)


def find_config(name: str) -> Path:
    """The file of that name, or else the preset of that name. Raises ConfigError if there is neither."""
    from rl_tui.engine.config.presets import preset_names, preset_path

    path = Path(name)
    if path.exists():
        return path
    if name in preset_names():
        return preset_path(name)
    raise ConfigError(f"{visible(name, limit=LONGEST_NAME)}: no such file, preset or command. {suggest_names(name)}")


def suggest_names(name: str) -> str:
    """A similar file, command or preset, as a question; else how to list them."""
    from rl_tui.engine.config.presets import presets_like

    files = _files_beside(name)
    bare = _without_ending(name.rpartition("/")[2]).lower()
    same = [file for file in files if _without_ending(file.rpartition("/")[2]).lower() == bare]
    command = closest(name, COMMANDS) if "/" not in name else None
    if same:
        similar = one_of(map(visible, same))
    elif command is not None:
        similar = f"the command {command}"
    elif presets := presets_like(name):
        similar = one_of(presets)
    elif (file := closest(name, files)) is not None:
        similar = visible(file)
    else:
        return "`rl-tui presets` lists the presets, `rl-tui --help` the commands"
    return f"Did you mean {similar}?"


def _files_beside(name: str) -> list[str]:
    """The YAML files of the folder that the name is in, with the folder as it was typed."""
    folder, slash, _ = name.rpartition("/")
    try:
        names = sorted(path.name for path in Path(folder + slash or ".").iterdir() if path.suffix in ENDINGS)
    except OSError:
        return []
    return [f"{folder}{slash}{each}" for each in names]


def _without_ending(name: str) -> str:
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
