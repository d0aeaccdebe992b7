"""Whether demonstrations show what a behavior observes and does."""

from __future__ import annotations

from collections.abc import Iterator

from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.specs import BehaviorSpec, ObservationSpec


def require_fit(found: BehaviorSpec, behavior: BehaviorSpec, where: str) -> None:
    """Return if demonstrations with this spec can be learned from by the behavior.

    Names need not be equal, and images may be bytes in one and floats in the other. where: the demonstrations, for the
    error. Raises DemonstrationError with a line for every difference.
    """
    lines = list(_differences(found, behavior))
    if lines:
        head = f"{where}: these demonstrations are not of the behavior {behavior.name}:"
        raise DemonstrationError("\n".join([head, *(f"  {line}" for line in lines)]))


def _differences(found: BehaviorSpec, behavior: BehaviorSpec) -> Iterator[str]:
    shown, wanted = found.actions, behavior.actions
    if shown.continuous != wanted.continuous:
        yield f"continuous actions: must be {wanted.continuous}, got {shown.continuous}"
    if shown.branches != wanted.branches:
        yield f"discrete actions: must have branches of {_sizes(wanted.branches)} choices, got {_sizes(shown.branches)}"
    if len(found.observations) != len(behavior.observations):
        yield (
            f"observations: must be {len(behavior.observations)} ({_listed(behavior)}), "
            f"got {len(found.observations)} ({_listed(found)})"
        )
        return
    for number, (one, other) in enumerate(zip(found.observations, behavior.observations, strict=True)):
        if one.shape != other.shape:
            yield f"observation {number} ({other.name}): must be {described(other)}, got {described(one)}"


def described(observation: ObservationSpec) -> str:
    """Its kind and shape in words."""
    sizes = "x".join(map(str, observation.shape))
    match observation.kind:
        case "vector":
            return f"a vector of {sizes}"
        case "entities":
            return f"{observation.shape[0]} entities of {observation.shape[1]} features"
        case _:
            return f"an image of {sizes}"


def _listed(spec: BehaviorSpec) -> str:
    return ", ".join(described(observation) for observation in spec.observations) or "none"


def _sizes(branches: tuple[int, ...]) -> str:
    return str(list(branches)) if branches else "no"
