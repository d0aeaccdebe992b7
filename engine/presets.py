"""The configurations that come with the program: config/ in a checkout, packed into the installed wheel."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ConfigError
from engine.mistakes import suggest, visible

_ENGINE = Path(__file__).resolve().parent
_FOLDERS = (_ENGINE / "_presets", _ENGINE.parent / "config")  # installed, checkout


def preset_names() -> list[str]:
    """Every preset as `folder/name`, sorted."""
    folder = _folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def preset_path(name: str) -> Path:
    """The file of a preset, named with or without .yaml. Raises ConfigError for a name that no preset has."""
    known, wanted = preset_names(), name.removesuffix(".yaml")
    if wanted not in known:
        hint = suggest(wanted, known) or _same_ending(wanted, known)
        raise ConfigError(f"{visible(name)}: no such preset.{hint or ' `rl-tui presets` lists them'}")
    return _folder() / f"{wanted}.yaml"


def read_preset(name: str) -> str:
    """The text of a preset, comments included. Raises ConfigError for a name that no preset has."""
    return preset_path(name).read_text(encoding="utf-8")


def _folder() -> Path:
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])


def _same_ending(name: str, known: list[str]) -> str:
    """The trainer's folder is easily forgotten: `CartPole` is meant as `ppo/CartPole`."""
    ending = f"/{name.lower()}"
    return next((f" Did you mean {preset}?" for preset in known if preset.lower().endswith(ending)), "")
