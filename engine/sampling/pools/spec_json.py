"""A behavior's spec as plain JSON, and back."""

from __future__ import annotations

from typing import Literal, TypedDict

from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Json, ObservationSpec


class SpecJson(TypedDict):
    """The fields of a spec in JSON; observations are name, shape, dtype and whether it is a goal."""

    name: str
    observations: list[tuple[str, list[int], Literal["float32", "uint8"], bool]]
    continuous: int
    branches: list[int]


def spec_to_json(spec: BehaviorSpec) -> Json:
    """What `spec_from_json` turns into an equal spec."""
    return {
        "name": spec.name,
        "observations": [[o.name, list(o.shape), o.dtype, o.is_goal] for o in spec.observations],
        "continuous": spec.actions.continuous,
        "branches": list(spec.actions.branches),
    }


def spec_from_json(fields: SpecJson) -> BehaviorSpec:
    """The spec that was written."""
    observations = tuple(
        ObservationSpec(name, tuple(shape), dtype, is_goal) for name, shape, dtype, is_goal in fields["observations"]
    )
    return BehaviorSpec(fields["name"], observations, ActionSpec(fields["continuous"], tuple(fields["branches"])))
