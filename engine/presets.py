"""The configurations that come with the program: config/ in a checkout, packed into the installed wheel."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ConfigError
from engine.mistakes import one_of, suggest, visible

_ENGINE = Path(__file__).resolve().parent
_FOLDERS = (_ENGINE / "_presets", _ENGINE.parent / "config")  # installed, checkout


def preset_names() -> list[str]:
    """Every preset as `folder/name`, sorted."""
    folder = _folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def preset_path(name: str) -> Path:
    """The file of a preset, named with or without .yaml. Raises ConfigError for a name that no preset has."""
    wanted = name.removesuffix(".yaml")
    if wanted not in preset_names():
        raise ConfigError(f"{visible(name)}: no such preset.{preset_hint(wanted)}")
    return _folder() / f"{wanted}.yaml"


def read_preset(name: str) -> str:
    """The text of a preset, comments included. Raises ConfigError for a name that no preset has."""
    return preset_path(name).read_text(encoding="utf-8")


def preset_hint(name: str) -> str:
    """How a sentence about a name that no preset has goes on; the folder of a trainer is easily forgotten."""
    known, ending = preset_names(), f"/{name.lower()}"
    if same := [preset for preset in known if preset.lower().endswith(ending)]:
        return f" Did you mean {one_of(same)}?"
    return suggest(name, known) or " `rl-tui presets` lists them"


def _folder() -> Path:
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])
