"""How `env_settings` adapts environments that were written for other programs. Keys are described in run.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What a kind of environments needs to know besides `env_kwargs`.

    parameters: by environment parameter, the attribute that it sets. has_parameters: the run has any environment
    parameters, which the environment must take.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    has_parameters: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """What `from_json` reads."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, JsonValue]) -> Adaptation:
        """The adaptation that was written."""
        parameters = cast(Mapping[str, str], fields["parameters"])
        return Adaptation(parameters, bool(fields["has_parameters"]))
