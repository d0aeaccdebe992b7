"""What happens between reading a file and checking it: the command line on top, default_settings underneath.

All functions work on plain mappings as they were written; wrong types are left for the schema to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath
from rl_tui.engine.config.hyperparameters import TRAINERS

_RESUME: KeyPath = ("checkpoint_settings", "resume")
_INITIALIZE: KeyPath = ("checkpoint_settings", "initialize_from")


def override(raw: dict[str, object], path: KeyPath, value: object) -> None:
    """Put one value in; a section that is no mapping stays as it is, for its own mistake to be told."""
    section: object = raw
    for part in path[:-1]:
        section = section.setdefault(str(part), {}) if isinstance(section, dict) else section
    if isinstance(section, dict):
        section[str(path[-1])] = value


def settle_start(raw: Mapping[str, object], typed: Mapping[KeyPath, str]) -> tuple[str, ...]:
    """Keep only one of resume and initialize_from; returns a note when both were there.

    What was typed wins over the file, then resume wins, as in ML-Agents.
    """
    section = raw.get("checkpoint_settings")
    if not isinstance(section, dict) or section.get("resume") is not True or section.get("initialize_from") is None:
        return ()
    if _INITIALIZE in typed and _RESUME not in typed:
        section["resume"] = False
        return ("both resume and initialize_from are set: --initialize-from was typed and is followed",)
    section["initialize_from"] = None
    return ("both resume and initialize_from are set: resume is followed",)


def missing_trainers(raw: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Which keys are hyperparameters depends on the trainer, so it has to be named beside them, as in ML-Agents."""
    default = raw.get("default_settings")
    if isinstance(default, dict):
        sections: list[tuple[KeyPath, dict[str, object]]] = [(("default_settings",), default)]
    else:
        sections = [(("behaviors", name), behavior) for name, behavior in _named_behaviors(raw)]
    for path, section in sections:
        if "hyperparameters" in section and "trainer_type" not in section:
            text = "trainer_type is missing beside it. trainer_type: ppo, sac or poca is right"
            yield Diagnostic((*path, "hyperparameters"), text, of_key=True)


def merge_defaults(raw: dict[str, object]) -> list[Diagnostic]:
    """Lay every behavior over the fully expanded default_settings, as ML-Agents does; the mistakes this brings.

    A behavior that only the mapping of environments names gets the defaults as they are.
    """
    default = raw.get("default_settings")
    if not isinstance(default, dict):
        return []
    behaviors = raw.setdefault("behaviors", {})
    if not isinstance(behaviors, dict):
        return []
    try:
        expanded = BehaviorConfig.model_validate(default).model_dump()
    except ValidationError:
        expanded = default  # its mistakes are told when the whole is checked
    diagnostics = [
        diagnostic for name, behavior in _named_behaviors(raw) for diagnostic in _clash(name, behavior, expanded)
    ]
    for name, behavior in list(_named_behaviors(raw)):
        behaviors[name] = _merge(_inheritable(behavior, expanded), behavior)
    for name in _mapped_environments(raw):
        behaviors.setdefault(name, _merge(expanded, {}))
    return diagnostics


def _named_behaviors(raw: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    behaviors = raw.get("behaviors")
    if isinstance(behaviors, dict):
        yield from ((name, behavior) for name, behavior in behaviors.items() if isinstance(behavior, dict))


def _trainer(section: Mapping[str, object]) -> str | None:
    """The trainer that is named, `ppo` when none is, None when it is no trainer's name."""
    name = section.get("trainer_type", "ppo")
    return name if isinstance(name, str) and name in TRAINERS else None


def _clash(name: str, behavior: Mapping[str, object], default: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Another trainer than the default's would be handed hyperparameters that it does not know."""
    own, inherited = _trainer(behavior), _trainer(default)
    if "trainer_type" in behavior and own and inherited and own != inherited:
        text = f"found {own}, which cannot use the hyperparameters of {inherited} that default_settings hand down"
        yield Diagnostic(("behaviors", name, "trainer_type"), f"{text}. {inherited} is right")


def _inheritable(behavior: Mapping[str, object], default: Mapping[str, object]) -> Mapping[str, object]:
    own = _trainer(behavior) if "trainer_type" in behavior else _trainer(default)
    if own == _trainer(default):
        return default
    return {key: value for key, value in default.items() if key != "hyperparameters"}


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
