"""Why a checkpoint does not fit a run, in the words of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import describe, visible
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.specs import BehaviorSpec, ObservationSpec
from rl_tui.engine.storage.checkpoint_format import Checkpoint
from rl_tui.engine.storage.file_names import CONFIGURATION


def trained_otherwise(checkpoint: Checkpoint, spec: BehaviorSpec, config: BehaviorConfig) -> str:
    """What the checkpoint was trained with and this run is not: "num_layers 2 (here 1)"; "" where nothing is known.

    Its settings are those in the folder of its run.
    """
    found = [] if checkpoint.spec is None else [*spec_differences(checkpoint.spec, spec)]
    with suppress(ConfigError):  # it may have been copied from its run's folder
        earlier = load_config(checkpoint.path.parents[2] / CONFIGURATION, {"writers": {}})
        found += _differences(_shaping(settings_of(earlier, checkpoint.behavior)), _shaping(config))
    return ", ".join(found)


def spec_differences(before: BehaviorSpec, now: BehaviorSpec) -> Iterator[str]:
    """What differs between two specs: "actions 1 continuous and 0 discrete [] (here ...)"."""
    if before.observations != now.observations:
        yield f"observations {_observations(before.observations)} (here {_observations(now.observations)})"
    if before.actions != now.actions:
        then, here = (
            f"{own.continuous} continuous and {len(own.branches)} discrete {list(own.branches)}"
            for own in (before.actions, now.actions)
        )
        yield f"actions {then} (here {here})"


def _observations(observations: tuple[ObservationSpec, ...]) -> str:
    return " and ".join(f"{visible(one.name)} {list(one.shape)}" for one in observations) or "none"


def _shaping(config: BehaviorConfig) -> dict[str, object]:
    """The settings that shape networks and optimizers, by path."""
    shared = getattr(config.hyperparameters, "shared_critic", None)
    own = {"trainer_type": config.trainer_type, "hyperparameters": {} if shared is None else {"shared_critic": shared}}
    networks = config.network_settings.model_dump(exclude={"deterministic"})
    signals = {
        name: {"network_settings": signal.network_settings.model_dump()} if signal.learns else {}
        for name, signal in config.reward_signals.items()
    }
    return dict(_flat({**own, "network_settings": networks, "reward_signals": signals}))


def _flat(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _differences(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    if before["trainer_type"] != now["trainer_type"]:  # the others have other defaults then
        before, now = ({"trainer_type": of["trainer_type"]} for of in (before, now))
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [f"{key} {_value(before, key)} (here {_value(now, key)})" for key in keys]


def _value(settings: Mapping[str, object], key: str) -> str:
    if key not in settings:
        return "unset"
    value = settings[key]
    return visible(value) if isinstance(value, str) else describe(value)
