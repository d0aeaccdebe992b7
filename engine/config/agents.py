"""`env_settings.behaviors` and `random_agents`: what the agents of an environment are, by patterns of their names."""

from __future__ import annotations

import re
from typing import Annotated, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.types import Settings, refusal

_BEHAVIOR = re.compile(r"[^?]+(\?team=[0-9]{1,9})?", re.DOTALL)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _as_section(value: object) -> object:
    """Patterns alone stand for a section with nothing else."""
    return {"agents": value} if isinstance(value, str | list) else value


def _check_name(name: object) -> object:
    if not isinstance(name, str) or not _BEHAVIOR.fullmatch(name):
        raise refusal(must_be("NAME or NAME?team=N, N a whole number from 0", name))
    return name


Pattern: TypeAlias = Annotated[str, Field(min_length=1)]
Patterns: TypeAlias = Annotated[list[Pattern], BeforeValidator(_as_list)]


class AgentPatterns(Settings):
    """The agents of one behavior, or of one of its teams. group: those of one copy cooperate. common_reward: what these
    earn is their group's, the mean of them."""

    agents: Annotated[Patterns, Field(min_length=1)]
    group: bool = False
    common_reward: bool = False

    @model_validator(mode="after")
    def _require_group(self) -> Self:
        if self.common_reward and not self.group:
            raise refusal("only a group has one. Add group: true", "common_reward")
        return self


BehaviorPatterns: TypeAlias = dict[
    Annotated[str, BeforeValidator(_check_name)], Annotated[AgentPatterns, BeforeValidator(_as_section)]
]
