"""The configurations that come with rl-tui: config/ in a checkout, rl_tui/presets/ where it is installed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from rl_tui.engine.config.diagnostics import closest, one_of, visible
from rl_tui.engine.errors import ConfigError

_FOLDER = Path(__file__).parents[2] / "presets"
_PROFILE = "gymnasium"  # the name of a profile, in the folder of its trainer


def preset_names() -> list[str]:
    """Every preset as `folder/name`, sorted."""
    return sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in _FOLDER.rglob("*.yaml"))


def preset_path(name: str) -> Path:
    """The file of a preset, named with or without .yaml. Raises ConfigError for a name that no preset has."""
    wanted = name.removesuffix(".yaml")
    if wanted not in preset_names():
        raise ConfigError(f"{visible(name)}: no such preset.{preset_hint(wanted)}")
    return _FOLDER / f"{wanted}.yaml"


def is_preset(file: str) -> bool:
    """Whether this is the file of a preset, as `preset_path` names it."""
    return Path(file).is_relative_to(_FOLDER)


def read_preset(name: str) -> str:
    """The text of a preset, comments included, and the whole path of demonstrations next to it, so that it is the same
    preset in any folder. Raises ConfigError for a name that no preset has."""
    path = preset_path(name)
    text = path.read_text(encoding="utf-8")
    return re.sub(r"(?<=demo_path: )\S+", lambda found: json.dumps(str(path.parent / found[0])), text)


def preset_hint(name: str) -> str:
    """How to find a preset, for a name that none has."""
    similar = presets_like(name)
    return f" Did you mean {one_of(similar)}?" if similar else " `rl-tui presets` lists them"


def profile_names() -> list[str]:
    """The profile of every trainer that has one."""
    return [name for name in preset_names() if name.endswith(f"/{_PROFILE}")]


def profile_name(trainer: str) -> str:
    """The preset with what a trainer has for any environment; "" where there is none."""
    name = f"{trainer}/{_PROFILE}"
    return name if name in profile_names() else ""


def trainer_of_profile(name: str) -> str:
    """The trainer whose profile the preset of that name is; "" for other names."""
    trainer = name.partition("/")[0]
    return trainer if name and name == profile_name(trainer) else ""


def presets_like(name: str) -> list[str]:
    """Presets of a similar name: misspelled, in another case, without its folder or in one folder too many."""
    known, wanted = preset_names(), name.lower().removesuffix(".yaml")
    last = wanted.rpartition("/")[2]
    same = [preset for preset in known if f"/{wanted}".endswith(f"/{preset.lower()}")]
    same = same or [preset for preset in known if preset.lower().endswith(f"/{last}")]
    near = closest(name, [preset for preset in known if closest(last, [preset.rpartition("/")[2].lower()])])
    return same or ([near] if near else [])


def presets_in(environment: str, trainer: str = "") -> list[str]:
    """Presets that train in this environment, those of PPO first, then SAC's. trainer: of any, unless one is named."""
    named = re.compile(rf"^  env: {re.escape(environment.strip())}$", re.MULTILINE)
    names = [name for name in preset_names() if not trainer or name.startswith(f"{trainer}/")]
    found = [name for name in names if named.search(read_preset(name))]
    return sorted(found, key=lambda name: (not name.startswith("ppo/"), not name.startswith("sac/")))


@dataclass(frozen=True, slots=True)
class PresetSummary:
    """A line of the list. steps: the length of its training. words: what it is, what it needs, how long it takes."""

    name: str
    steps: int
    words: str


def summarize_preset(name: str) -> PresetSummary:
    """From its file: the first sentence of its comment, and those on what it needs and how long it takes."""
    text = read_preset(name)
    comment = " ".join(row.removeprefix("#").strip() for row in takewhile(lambda row: row[:1] == "#", text.split("\n")))
    first, *rest = comment.removesuffix(".").split(". ")
    words = ". ".join([first, *(each for each in rest if re.search(r"^Needs |\b(minute|hour)", each))])
    steps = re.search(r"^ +max_steps: (\d+)", text, re.MULTILINE)
    return PresetSummary(name, int(steps[1]) if steps else 0, words)
