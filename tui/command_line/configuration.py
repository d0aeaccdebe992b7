"""The configuration that a command line names, with what its flags set.

The configuration's libraries are imported inside the functions, so that --help and --version answer at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.tui.command_line.train_arguments import Arguments

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig

LONGEST_NAME = 400  # in a message


def configuration(arguments: Arguments) -> RunConfig:
    """What the file and the flags say together. Raises ConfigError with every mistake."""
    path = find_config(arguments.config)
    from rl_tui.engine.config.loading import load_config

    config = load_config(path, arguments.overrides)
    return without_chance(config) if arguments.is_deterministic else config


def runnable(arguments: Arguments) -> RunConfig:
    """The same, and all of it can be run. Raises NotSupportedError otherwise."""
    from rl_tui.engine.config.support import find_unsupported

    config = configuration(arguments)
    unsupported = find_unsupported(config)
    if unsupported:
        raise NotSupportedError("\n".join(unsupported))
    return config


def find_config(name: str) -> Path:
    """The file of that name, or else the preset of that name. Raises ConfigError when there is neither."""
    path = Path(name)
    if path.exists():
        return path
    from rl_tui.engine.config.presets import preset_names, preset_path

    if name in preset_names():
        return preset_path(name)
    from rl_tui.tui.command_line.suggestions import meant_by

    raise ConfigError(f"{visible(name, limit=LONGEST_NAME)}: no such file, preset or command. {meant_by(name)}")


def without_chance(config: RunConfig) -> RunConfig:
    """The same settings with every listed behavior acting deterministically, as ML-Agents' flag has it."""
    behaviors = {
        name: behavior.model_copy(
            update={"network_settings": behavior.network_settings.model_copy(update={"deterministic": True})}
        )
        for name, behavior in config.behaviors.items()
    }
    return config.model_copy(update={"behaviors": behaviors})
