"""What Unity's analytics receive of a training, if `env_settings.training_analytics` asks for it."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version

from pydantic import JsonValue

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.environment_parameters import CurriculumSettings
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.sampling.environments.training_analytics import Field, TrainingAnalytics, hashed
from rl_tui.engine.version import VERSION

_SIGNALS = ("extrinsic", "gail", "curiosity", "rnd")  # those that have a field
_NAMED = frozenset({"behaviors", "environment_parameters", "env", "env_kwargs", "writers"})  # their keys are names
_CHOICES = frozenset(  # all other texts may say who or where the user is
    {
        *("trainer_type", "learning_rate_schedule", "beta_schedule", "epsilon_schedule", "normalize_advantage"),
        *("vis_encode_type", "goal_conditioning_type", "activation", "precision", "sampler_type", "measure", "device"),
    }
)


def describe_training(config: RunConfig, device: str) -> TrainingAnalytics:
    """How it is set up: versions and settings, with names, paths and all other free text hashed.

    device: such as cpu or cuda.
    """
    environment: dict[str, Field] = {
        "mlagents_version": f"rl-tui {VERSION}",
        "mlagents_envs_version": f"rl-tui {VERSION}",
        "python_version": platform.python_version(),
        "torch_version": version("torch"),
        "torch_device_type": device,
        "num_envs": config.env_settings.num_envs,
        "num_environment_parameters": len(config.environment_parameters or ()),
        "run_options": json.dumps(_without_names(config.model_dump(mode="json"))),
    }
    settings = {**config.behaviors, "": config.default_settings}
    behaviors = {name: _behavior(config, name, one) for name, one in settings.items() if one is not None}
    return TrainingAnalytics(environment=environment, behaviors=behaviors)


def _behavior(config: RunConfig, name: str, settings: BehaviorConfig) -> dict[str, Field]:
    network, signals = settings.network_settings, settings.reward_signals
    return {
        "trainer_type": settings.trainer_type,
        **{f"{signal}_reward_enabled": signal in signals for signal in _SIGNALS},
        "behavioral_cloning_enabled": settings.behavioral_cloning is not None,
        "recurrent_enabled": network.memory is not None,
        "visual_encoder": network.vis_encode_type,
        "num_network_layers": network.num_layers,
        "num_network_hidden_units": network.hidden_units,
        "trainer_threaded": settings.threaded,
        "self_play_enabled": settings.self_play is not None,
        "curriculum_enabled": any(_has_lessons(one, name) for one in (config.environment_parameters or {}).values()),
        "config": json.dumps(_without_names(settings.model_dump(mode="json"))),
    }


def _has_lessons(parameter: object, behavior: str) -> bool:
    """Whether that behavior's progress decides about lessons of the parameter."""
    lessons = parameter.curriculum if isinstance(parameter, CurriculumSettings) else ()
    return any(one.completion_criteria and one.completion_criteria.behavior == behavior for one in lessons)


def _without_names(value: JsonValue, key: str = "") -> JsonValue:
    """The same settings with every text hashed that is not one of a few known words."""
    match value:
        case dict():
            if key in _NAMED:
                return {hashed(name): _without_names(one) for name, one in value.items()}
            return {name: _without_names(one, name) for name, one in value.items()}
        case list():
            return [_without_names(one, key) for one in value]
        case str() if key not in _CHOICES:
            return hashed(value)
    return value
