"""The configuration that a command line names, with what its flags set.

The configuration's libraries are imported inside the functions, so that --help and --version answer at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import closest, one_of, visible
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.tui.command_line.commands import COMMANDS
from rl_tui.tui.command_line.train_arguments import TrainArguments

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

LONGEST_NAME = 400  # in a message
ENDINGS = (".yaml", ".yml")


def read_configuration(arguments: TrainArguments) -> RunConfig:
    """The configuration of the file and the flags together. Raises ConfigError with every diagnostic."""
    path = find_config(arguments.config)
    with imports_that_stay():
        from rl_tui.engine.config.loading import load_config

    config = load_config(path, arguments.overrides)
    return config.acting_deterministically() if arguments.is_deterministic else config


def runnable_configuration(arguments: TrainArguments) -> RunConfig:
    """The same, complete and with nothing in it that is not supported yet. Raises ConfigError and NotSupportedError."""
    with imports_that_stay():
        from rl_tui.engine.config.support import require_supported
    config = read_configuration(arguments)
    require_supported(config)
    return config


def find_config(name: str) -> Path:
    """The file of that name, or else the preset of that name. Raises ConfigError if there is neither.

    name: "" for the defaults of PPO.
    """
    from rl_tui.engine.config.presets import DEFAULTS, preset_names, preset_path

    if not name:
        return DEFAULTS
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
