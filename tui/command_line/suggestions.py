"""What a word of the command line was probably meant to be, where it names nothing."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.diagnostics import closest, one_of, visible
from rl_tui.engine.config.presets import presets_like
from rl_tui.tui.command_line.commands import COMMANDS

ENDINGS = (".yaml", ".yml")


def meant_by(name: str) -> str:
    """A question with what may have been meant: a file beside it, a command or a preset; else where they are listed."""
    files = _files_beside(name)
    bare = _without_ending(name.rpartition("/")[2]).lower()
    same = [file for file in files if _without_ending(file.rpartition("/")[2]).lower() == bare]
    command = closest(name, COMMANDS) if "/" not in name else None
    if same:
        meant = one_of(map(visible, same))
    elif command is not None:
        meant = f"the command {command}"
    elif presets := presets_like(name):
        meant = one_of(presets)
    elif (file := closest(name, files)) is not None:
        meant = visible(file)
    else:
        return "`rl-tui presets` lists the presets, `rl-tui --help` the commands"
    return f"Did you mean {meant}?"


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
