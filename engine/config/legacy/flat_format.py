"""The form of ML-Agents 0.16 and before: flat behaviors, without sections, over a `default` of all behaviors."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, one_of
from rl_tui.engine.config.hyperparameters import every_hyperparameters, hyperparameters_of, is_trainer, trainer_names
from rl_tui.engine.config.legacy.behaviors import MEMORY, PACE, SIGNAL_STEPS, SIGNAL_UPDATES
from rl_tui.engine.config.legacy.rewriting import Rewriting, Section
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.config.run import RunConfig

# Rewards up to ML-Agents 0.8. Later files still contain them, next to the reward_signals that replaced them.
_CURIOSITY = {"gamma": "gamma", "curiosity_strength": "strength", "curiosity_enc_size": "encoding_size"}
_REWARDS = ("use_curiosity", *_CURIOSITY)
_SECTIONS = {"trainer_type", "hyperparameters", "network_settings"}  # of today's behaviors
_TOP = RunConfig.model_fields  # today's sections of a file


def sort_flat_behaviors(rewriting: Rewriting) -> None:
    """Move flat behaviors under `behaviors`, and their keys into today's sections.

    They are at the top of the file or, between 0.16 and 0.17, under `behaviors` already. A key of a behavior,
    reward_signals included, replaces that of `default`, as it did then. A default alone is today's default_settings.
    """
    values = rewriting.values
    is_top = "behaviors" not in values
    root, names = _root(values)
    if not names:
        return
    place: KeyPath = () if is_top else ("behaviors",)
    default = root.pop("default") if "default" in names else {}
    behaviors = [name for name in names if name != "default"]
    rewriting.has_default = bool(default and behaviors)
    rewriting.flat = [(*place, name) for name in behaviors or names]
    if is_top:
        rewriting.written.update({("behaviors", name): (name,) for name in root})
    for name in behaviors:
        root[name] = _over_default(rewriting, (*place, name), default, root[name])
        _sort(Section(rewriting, ("behaviors", name), root[name]))
    if not behaviors:
        rewriting.written["default_settings",] = (*place, "default")
        _sort(Section(rewriting, ("default_settings",), default))
        if "default_settings" in values:
            text = "default_settings is written too. Remove one of the two"
            rewriting.diagnostics.append(Diagnostic((*place, "default"), text, of_key=True))
        values["default_settings"] = default
    if is_top:
        kept = {name: value for name, value in values.items() if name in _TOP}
        values.clear()
        values.update({"behaviors": root} | kept)


def is_flat(values: Mapping[str, object]) -> bool:
    """Whether any behavior in a file has this form."""
    return bool(_root(values)[1])


def _root(values: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """The mapping that holds the behaviors, and the names of the flat ones."""
    is_top = "behaviors" not in values
    root = {name: value for name, value in values.items() if name not in _TOP} if is_top else values["behaviors"]
    return (root, _flat_names(root, is_top)) if isinstance(root, dict) else ({}, [])


def _flat_names(root: Mapping[str, object], is_top: bool) -> list[str]:
    """The flat behaviors, default included: those with a `trainer`."""
    mappings = {name: value for name, value in root.items() if isinstance(value, dict)}
    with_trainer = [name for name, value in mappings.items() if "trainer" in value]
    if is_top:
        return list(mappings) if with_trainer or "default" in mappings else []
    flat = [name for name, value in mappings.items() if not _SECTIONS & set(value)]
    return flat if "default" in with_trainer else [name for name in flat if name in with_trainer]


def _over_default(
    rewriting: Rewriting, place: KeyPath, default: Mapping[str, object], own: Mapping[str, object]
) -> dict[str, object]:
    for key in default:
        if key not in own:
            rewriting.written["behaviors", place[-1], key] = (*place[:-1], "default", key)
    return copy.deepcopy({**default, **own})


def _sort(behavior: Section) -> None:
    """Move the keys of a flat behavior into today's sections."""
    keys = behavior.keys
    trainer = keys.get("trainer")
    if not isinstance(trainer, str) or not is_trainer(trainer):
        if "trainer" not in keys:
            behavior.miss("trainer", f", must be {one_of(trainer_names())}")
        behavior.remove([key for key in keys if key != "trainer"])  # their meaning depends on it
        return
    ordered = {"trainer": trainer, "hyperparameters": {}, "network_settings": {}} | keys
    keys.clear()
    keys.update(ordered)
    _sort_rewards(behavior, trainer)
    if keys.get("use_recurrent", False) is False:
        behavior.remove(MEMORY)
    network = (*NetworkSettings.model_fields, *MEMORY)
    behavior.move([key for key in keys if key in _hyperparameters(trainer)], behavior.inner("hyperparameters"))
    behavior.move([key for key in keys if key in network], behavior.inner("network_settings"))
    for other in every_hyperparameters():
        for key in behavior.present(_hyperparameters(other)):
            behavior.ignore(key, f"{trainer} has no such setting")
    behavior.remove([key for key in ("hyperparameters", "network_settings") if keys[key] == {}])


def _hyperparameters(trainer: str) -> tuple[str, ...]:
    """A trainer's keys, today's and legacy ones."""
    fields = hyperparameters_of(trainer).model_fields
    return (*fields, *((*PACE, SIGNAL_UPDATES) if "steps_per_update" in fields else ()))


def _sort_rewards(behavior: Section, trainer: str) -> None:
    signals = behavior.inner("reward_signals")
    if signals:
        unknown = [key for key in (SIGNAL_UPDATES, SIGNAL_STEPS) if key not in _hyperparameters(trainer)]
        for key in signals.present(unknown):
            signals.ignore(key, f"{trainer} has no such setting")
    old = behavior.present(_REWARDS)
    if "reward_signals" in behavior.keys:
        for key in old:
            behavior.ignore(key, "reward_signals replaces it")
    elif old:
        _make_signals(behavior)


def _make_signals(behavior: Section) -> None:
    """gamma discounted the environment's reward and, where used, curiosity."""
    keys, origins = behavior.keys, {key: behavior.origin(key) for key in behavior.present(_REWARDS)}
    signals: dict[str, dict[str, object]] = {"extrinsic": {"gamma": keys["gamma"]} if "gamma" in keys else {}}
    if keys.get("use_curiosity") is True:
        signals["curiosity"] = {new: keys[old] for old, new in _CURIOSITY.items() if old in keys}
    behavior.deprecate(list(origins), "reward_signals")
    behavior.replace(list(origins), "reward_signals", signals)
    for signal in signals:
        for old, new in _CURIOSITY.items():
            if old in origins:
                behavior.rewriting.written[*behavior.path, "reward_signals", signal, new] = origins[old]
