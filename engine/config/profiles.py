"""Profiles: presets for any environment. What one says depends on what a behavior observes and does.

That of a trainer is the preset TRAINER/gymnasium, whose section `where` has further settings for behaviors with
certain traits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from rl_tui.engine.config.environment_name import short_name
from rl_tui.engine.config.environments import has_mlagents_defaults
from rl_tui.engine.config.loading import WHERE, merge
from rl_tui.engine.config.presets import profile_name, read_preset
from rl_tui.engine.config.yaml_document import read_yaml

Trait: TypeAlias = Literal["discrete_actions", "continuous_actions", "large_observations", "images"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile's file has. default: for every behavior; where: by trait, in the order of the file."""

    default: Mapping[str, object]
    env_settings: Mapping[str, object]
    where: Mapping[str, Mapping[str, object]]

    def settings_for(self, traits: Collection[Trait]) -> dict[str, object]:
        """The settings of a behavior with these traits."""
        settings = merge(self.default, {})
        for trait, further in self.where.items():
            if trait in traits:
                settings = merge(settings, further)
        return settings


def read_profile(trainer: str) -> Profile:
    """The profile of a trainer; of one without, nothing but its name."""
    name = profile_name(trainer)
    values = (
        cast(Mapping[str, dict[str, dict[str, object]]], read_yaml(read_preset(name).encode()).values) if name else {}
    )
    default = values.get("default_settings", {"trainer_type": trainer})
    return Profile(default, values.get("env_settings", {}), values.get(WHERE, {}))


def name_without_file(trainer: str, environment: str | Collection[str]) -> str:
    """What a run without a file is called: after its environment or behaviors. Where that is one with ML-Agents'
    defaults, after its trainer, as `mlagents-learn` has it.

    environment: one name, or the behaviors that have one each. Raises PluginError.
    """
    if not isinstance(environment, str):
        return "-".join(environment)
    return trainer if has_mlagents_defaults(environment) else short_name(environment)
