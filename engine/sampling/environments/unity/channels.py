"""Side channels of one player: what waits to be sent with the next reply, and what came with a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast
from uuid import UUID

from rl_tui.engine.config.environment_parameters import (
    ConstantSampler,
    GaussianSampler,
    MultiRangeUniformSampler,
    SamplerSettings,
    UniformSampler,
)
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.named_callable import find_callable
from rl_tui.engine.sampling.environments.settings import UnitySettings
from rl_tui.engine.sampling.environments.unity.wire import side_channels as wire
from rl_tui.engine.sampling.parameters import ParameterValues
from rl_tui.engine.specs import Statistic

_TAKEN = (
    wire.ENGINE_CONFIGURATION,
    wire.ENVIRONMENT_PARAMETERS,
    wire.STATISTICS,
    wire.TRAINING_ANALYTICS,
)


class SideChannel(Protocol):
    """A user's own channel, named in `env_kwargs: {side_channels: [package.module:Class]}` and made without arguments.

    One is made for each player, in the player's worker process. Payloads are bytes, which both ends agree on.
    """

    channel_id: UUID

    def on_message(self, payload: bytes) -> None:
        """Unity sent this on the channel."""

    def pop_messages(self) -> Sequence[bytes]:
        """What is to be sent with the next actions, in order; each once."""


class Channels:
    """Owned by one environment."""

    def __init__(self, own: Sequence[SideChannel], warn: Callable[[str], None]) -> None:
        """own: the user's. warn: called with lines for the user."""
        self._own = {channel.channel_id: channel for channel in own}
        self._warn = warn
        self._unsent: list[bytes] = []
        self._statistics: list[Statistic] = []
        self._unknown: set[UUID] = set()

    def configure_engine(self, settings: UnitySettings) -> None:
        """Send the settings of the engine with the next reply."""
        self._unsent += [
            wire.resolution(settings.width, settings.height),
            wire.quality_level(settings.quality_level),
            wire.time_scale(settings.time_scale),
            wire.target_frame_rate(settings.target_frame_rate),
            wire.capture_frame_rate(settings.capture_frame_rate),
        ]

    def set_parameters(self, values: ParameterValues) -> None:
        """Send environment parameters with the next reply; Unity draws from samplers itself."""
        self._unsent += [_parameter(name, value) for name, value in values.items()]

    def send(self, message: bytes) -> None:
        """Send a message of any channel with the next reply."""
        self._unsent.append(message)

    def forget(self) -> None:
        """Nothing waits any more: another client has connected."""
        self._unsent.clear()
        self._statistics.clear()

    def pop_unsent(self) -> bytes:
        """What goes with the next reply."""
        for channel in self._own.values():
            self._unsent += [wire.write_message(channel.channel_id, payload) for payload in channel.pop_messages()]
        content = b"".join(self._unsent)
        self._unsent.clear()
        return content

    def receive(self, content: bytes) -> None:
        """Take in what came with a message. Raises WireError."""
        for channel, payload in wire.read_messages(content):
            if channel in self._own:
                self._own[channel].on_message(payload)
            elif channel == wire.STATISTICS:
                self._statistics.append(Statistic(*wire.read_statistic(payload)))
            elif channel == wire.FLOAT_PROPERTIES:
                wire.read_float_property(payload)  # nothing here asks for them
            elif channel not in self._unknown:
                self._unknown.add(channel)
                self._warn(f"messages of side channel {channel} are ignored: no channel of that id is in side_channels")

    def pop_statistics(self) -> tuple[Statistic, ...] | None:
        """What Unity reported since the last call."""
        statistics, self._statistics = self._statistics, []
        return tuple(statistics) or None


def _parameter(name: str, value: float | SamplerSettings) -> bytes:
    """The message that sets one environment parameter."""
    match value:
        case UniformSampler(sampler_parameters=of):
            return wire.sampled_parameter(name, of.seed, "uniform", (of.min_value, of.max_value))
        case GaussianSampler(sampler_parameters=of):
            return wire.sampled_parameter(name, of.seed, "gaussian", (of.mean, of.st_dev))
        case MultiRangeUniformSampler(sampler_parameters=of):
            bounds = [bound for interval in of.intervals for bound in interval]
            return wire.sampled_parameter(name, of.seed, "multirange", bounds)
        case ConstantSampler(sampler_parameters=of):
            return wire.environment_parameter(name, of.value)
        case _:
            return wire.environment_parameter(name, value)


def make_channels(names: Sequence[str]) -> list[SideChannel]:
    """The user's channels. Raises ConfigError for what is none, or has an id of another."""
    made: list[SideChannel] = []
    for name in names:
        channel = cast(SideChannel, find_callable(name)())
        missing = [word for word in ("channel_id", "on_message", "pop_messages") if not hasattr(channel, word)]
        if missing:
            raise ConfigError(
                f"side_channels: {name} must have channel_id, on_message and pop_messages, has no {missing[0]}"
            )
        if not isinstance(channel.channel_id, UUID):
            raise ConfigError(f"side_channels: channel_id of {name} must be a uuid.UUID, got {channel.channel_id!r}")
        if channel.channel_id in (*_TAKEN, *(other.channel_id for other in made)):
            raise ConfigError(
                f"side_channels: channel_id of {name} must differ from every other, got {channel.channel_id}"
            )
        made.append(channel)
    return made
