"""Merging every behavior over `default_settings`, as ML-Agents does, in plain mappings before they are validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, one_of
from rl_tui.engine.config.hyperparameters import is_trainer, trainer_names


def missing_trainers(raw: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse hyperparameters without a trainer_type, as ML-Agents does."""
    default = raw.get("default_settings")
    if isinstance(default, dict):
        sections: list[tuple[KeyPath, dict[str, object]]] = [(("default_settings",), default)]
    else:
        sections = [(("behaviors", name), behavior) for name, behavior in _named_behaviors(raw)]
    for path, section in sections:
        if "hyperparameters" in section and "trainer_type" not in section:
            text = f"trainer_type is missing next to it, must be {one_of(trainer_names())}"
            yield Diagnostic((*path, "hyperparameters"), text, of_key=True)


def merge_defaults(raw: dict[str, object], default: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Merge every behavior over the fully expanded default_settings; yields what cannot be merged.

    A behavior that only the mapping of environments names gets the defaults as they are.
    """
    behaviors = raw.setdefault("behaviors", {})
    if not isinstance(behaviors, dict):
        return
    inherited = default.get("trainer_type", "ppo")
    for name, behavior in list(_named_behaviors(raw)):
        own, below = behavior.get("trainer_type", inherited), default
        if own != inherited:
            below = {key: value for key, value in default.items() if key != "hyperparameters"}
            if is_trainer(own) and is_trainer(inherited):
                text = f"must be {inherited} as in default_settings, whose hyperparameters it inherits, got {own}"
                yield Diagnostic(("behaviors", name, "trainer_type"), text)
        behaviors[name] = _merge(below, behavior)
    for name in _mapped_environments(raw):
        behaviors.setdefault(name, _merge(default, {}))


def _named_behaviors(raw: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    behaviors = raw.get("behaviors")
    if isinstance(behaviors, dict):
        yield from ((name, behavior) for name, behavior in behaviors.items() if isinstance(behavior, dict))


def _mapped_environments(raw: Mapping[str, object]) -> list[str]:
    section = raw.get("env_settings")
    environments = section.get("env") if isinstance(section, dict) else None
    return list(environments) if isinstance(environments, dict) else []


def _merge(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Mappings merged key by key at every level; anything else above replaces what is below. All dicts are new."""
    merged: dict[str, object] = {}
    for key in {**below, **above}:
        low, high = below.get(key), above[key] if key in above else below[key]
        if isinstance(high, dict):
            merged[key] = _merge(low if isinstance(low, dict) else {}, high)
        else:
            merged[key] = high
    return merged
