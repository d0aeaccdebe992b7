"""How `env_settings` adapts environments that were written for other programs. Keys are described in run.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from pydantic import JsonValue

from rl_tui.engine.config.wrappers import Wrapper


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What a kind of environments needs to know besides `env_kwargs`.

    parameters: by environment parameter, the attribute that it sets. has_parameters: the run has any environment
    parameters, which the environment must take. behaviors: by behavior, patterns of its agents' names. groups: those
    of them whose agents cooperate, and whether they have a common reward. random_agents: patterns of agents that are
    not trained. wrappers: around each copy, the first innermost.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    has_parameters: bool = False
    behaviors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    groups: Mapping[str, bool] = field(default_factory=dict)
    random_agents: Sequence[str] = ()
    wrappers: tuple[Wrapper, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """What `from_json` reads."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, JsonValue]) -> Adaptation:
        """The adaptation that was written."""
        parameters = cast(Mapping[str, str], fields["parameters"])
        behaviors = cast(Mapping[str, Sequence[str]], fields["behaviors"])
        groups, random_agents = cast(Mapping[str, bool], fields["groups"]), cast(Sequence[str], fields["random_agents"])
        wrappers = tuple(Wrapper(**wrapper) for wrapper in cast(list[dict[str, Any]], fields["wrappers"]))
        return Adaptation(parameters, bool(fields["has_parameters"]), behaviors, groups, random_agents, wrappers)
