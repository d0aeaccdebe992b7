"""Training analytics, as a player receives them: how a training is set up, never what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rl_tui.engine.sampling.environments.training_analytics import Field, TrainingAnalytics, hashed
from rl_tui.engine.sampling.environments.unity.wire.side_channels import TRAINING_ANALYTICS, write_message
from rl_tui.engine.sampling.environments.unity.wire.varints import write_varint

_TYPE_URL = "type.googleapis.com/communicator_objects."
ENVIRONMENT = (  # fields of TrainingEnvironmentInitialized, numbered from 1
    *("mlagents_version", "mlagents_envs_version", "python_version", "torch_version", "torch_device_type"),
    *("num_envs", "num_environment_parameters", "run_options"),
)
BEHAVIOR = (  # fields of TrainingBehaviorInitialized, numbered from 1
    *("behavior_name", "trainer_type", "extrinsic_reward_enabled", "gail_reward_enabled", "curiosity_reward_enabled"),
    *("rnd_reward_enabled", "behavioral_cloning_enabled", "recurrent_enabled", "visual_encoder", "num_network_layers"),
    *("num_network_hidden_units", "trainer_threaded", "self_play_enabled", "curriculum_enabled", "config"),
)


class AnalyticsReports:
    """What one player receives of the training, once for each connection."""

    def __init__(self, analytics: TrainingAnalytics, send: Callable[[bytes], None]) -> None:
        """send: called with messages of side channels."""
        self._analytics, self._send = analytics, send
        self._met: set[str] = set()
        send(_message("TrainingEnvironmentInitialized", ENVIRONMENT, analytics.environment))

    def meet(self, names: Iterable[str]) -> None:
        """Send those of these behaviors that were not there before, the teams of one as one."""
        for behavior in sorted({name.partition("?")[0] for name in names} - self._met):
            self._met.add(behavior)
            fields = self._analytics.behaviors.get(behavior) or self._analytics.behaviors.get("")
            if fields is not None:
                named = {**fields, "behavior_name": hashed(behavior)}
                self._send(_message("TrainingBehaviorInitialized", BEHAVIOR, named))


def _message(kind: str, names: Iterable[str], fields: Mapping[str, Field]) -> bytes:
    content = _encoded(fields[name] for name in names)
    return write_message(TRAINING_ANALYTICS, _encoded([_TYPE_URL + kind, content]))  # a google.protobuf.Any


def _encoded(values: Iterable[Field | bytes]) -> bytes:
    """A message of protobuf whose fields are numbered from 1, in their order. Numbers must not be negative."""
    parts = []
    for number, value in enumerate(values, 1):
        if isinstance(value, int):
            parts.append(write_varint(number << 3) + write_varint(value))
        else:
            content = value.encode() if isinstance(value, str) else value
            parts.append(write_varint(number << 3 | 2) + write_varint(len(content)) + content)
    return b"".join(parts)
