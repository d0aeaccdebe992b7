"""What a player says of its behaviors and agents, as messages of the protocol.

Shapes: A continuous actions, K discrete branches, N agents that wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.unity_player.images import pngs

Form = Literal["floats", "png"]
ROWS_FIRST = "3.0.0-exp.1", "3.0.0", "4.0.0"  # packages that write the floats of an image as H, W, C


@dataclass(frozen=True)
class Sensor:
    """One observation of a behavior's agents.

    shape: as it is announced, (C, H, W) of an image. mapping: the channel of the image that each channel of the PNG
    files counts towards, -1 for none. properties: of each dimension, bits.
    """

    name: str
    shape: tuple[int, ...]
    form: Form = "floats"
    mapping: tuple[int, ...] = ()
    properties: tuple[int, ...] = ()
    is_goal: bool = False

    def message(self, values: NDArray[np.float32], package_version: str = "") -> messages.ObservationProto:
        """What it sees now. values: of its shape; for PNG files from 0 to 1, of `shape_seen`."""
        said = messages.ObservationProto(
            shape=self.shape,
            dimension_properties=self.properties,
            observation_type=messages.GOAL_SIGNAL if self.is_goal else messages.DEFAULT,
            name=self.name,
        )
        if self.form == "png":
            said.compression_type = messages.PNG
            said.compressed_data = pngs(values)
            said.compressed_channel_mapping.extend(self.mapping)
        else:
            seen = self._mapped(values)
            has_rows_first = seen.ndim == 3 and package_version in ROWS_FIRST
            said.float_data.data.extend((seen.transpose(1, 2, 0) if has_rows_first else seen).ravel())
        return said

    @property
    def shape_seen(self) -> tuple[int, ...]:
        """Of what it is given: as many channels as its PNG files have, three each."""
        num = len(self.mapping) or self.shape[0]
        return (num + -num % 3, *self.shape[1:]) if self.form == "png" else self.shape

    def _mapped(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What a trainer makes of the channels of PNG files: the mean of those that count towards a channel."""
        if values.shape == self.shape:
            return values
        mapping = np.array(self.mapping or ([0, 0, 0] if self.shape[0] == 1 else range(len(values))))
        return np.stack([values[mapping == channel].mean(0) for channel in range(self.shape[0])])

    def sent_to(self, capabilities: messages.UnityRLCapabilitiesProto) -> Sensor:
        """Itself, or uncompressed where the trainer cannot read its PNG files."""
        is_stack = self.form == "png" and self.shape[0] > 3
        is_mapped = self.form == "png" and self.mapping not in {(), (0, 1, 2)}
        needs_more = (is_stack and not capabilities.concatenatedPngObservations) or (
            is_mapped and not capabilities.compressedChannelMapping
        )
        return replace(self, form="floats") if needs_more else self


@dataclass(frozen=True)
class Brain:
    """A behavior, or a team of one, such as Striker?team=1."""

    name: str
    sensors: tuple[Sensor, ...]
    continuous: int = 0
    branches: tuple[int, ...] = ()

    def parameters(self, deprecated: bool = False) -> messages.BrainParametersProto:
        """What is said of it once. deprecated: as packages before hybrid actions said it."""
        said = messages.BrainParametersProto(brain_name=self.name, is_training=True)
        if deprecated:
            kind = messages.continuous if self.continuous else messages.discrete
            said.vector_action_space_type_deprecated = kind
            said.vector_action_size_deprecated.extend([self.continuous] if self.continuous else self.branches)
        else:
            said.action_spec.num_continuous_actions = self.continuous
            said.action_spec.num_discrete_actions = len(self.branches)
            said.action_spec.discrete_branch_sizes.extend(self.branches)
        return said


@dataclass(slots=True)
class Info:
    """What is said of one agent. values: of each sensor. forbidden: of each choice of each branch; empty: none is."""

    id: int
    values: Sequence[NDArray[np.float32]]
    reward: float = 0.0
    is_done: bool = False
    is_interrupted: bool = False
    forbidden: Sequence[bool] = ()
    group_id: int = 0
    group_reward: float = 0.0


@dataclass(slots=True)
class Said:
    """One message of all behaviors: AgentInfoListProto by name, and how many of its agents wait for an action.

    num_over, num_won: games that have ended with it, and those of them that a side has won.
    """

    lists: Mapping[str, bytes]
    waiting: Mapping[str, int]
    num_over: int = 0
    num_won: int = 0


@dataclass(slots=True)
class Acts:
    """Actions for the agents of one behavior that wait, in their order: f32[N, A], i32[N, K]."""

    continuous: NDArray[np.float32]
    discrete: NDArray[np.int32]


class ActionsMismatch(Exception):
    """The trainer sent actions that do not fit the agents that wait."""


@dataclass
class Speech:
    """How infos become messages. capabilities: the trainer's."""

    capabilities: messages.UnityRLCapabilitiesProto = field(default_factory=messages.UnityRLCapabilitiesProto)
    package_version: str = "3.0.0"

    def info(self, brain: Brain, info: Info) -> messages.AgentInfoProto:
        """The message of one agent."""
        sensors = (sensor.sent_to(self.capabilities) for sensor in brain.sensors)
        return messages.AgentInfoProto(
            reward=info.reward,
            done=info.is_done,
            max_step_reached=info.is_interrupted,
            id=info.id,
            action_mask=info.forbidden,
            observations=[
                sensor.message(values, self.package_version)
                for sensor, values in zip(sensors, info.values, strict=True)
            ],
            group_id=info.group_id,
            group_reward=info.group_reward,
        )

    def list(self, brain: Brain, infos: Sequence[Info]) -> bytes:
        """The AgentInfoListProto of a behavior, in the order of `infos`."""
        said = messages.AgentInfoListProto(value=[self.info(brain, info) for info in infos])
        return bytes(said.SerializeToString())


def read_actions(content: bytes | None, brain: Brain, num_waiting: int, deprecated: bool = False) -> Acts:
    """The actions of a reply for the agents of a behavior that wait; zeros where there are none at all.

    content: an AgentActionListProto. Raises ActionsMismatch, where Unity would raise or ignore some.
    """
    acts = Acts(
        np.zeros((num_waiting, brain.continuous), np.float32), np.zeros((num_waiting, len(brain.branches)), "i4")
    )
    if content is None:
        return acts
    actions = messages.AgentActionListProto.FromString(content).value
    if len(actions) != num_waiting:
        raise ActionsMismatch(f"{brain.name}: there must be {num_waiting} actions, got {len(actions)}")
    try:
        for target, name in ((acts.continuous, "continuous_actions"), (acts.discrete, "discrete_actions")):
            if target.size:
                field_name = "vector_actions_deprecated" if deprecated else name
                target[:] = [getattr(action, field_name) for action in actions]
    except ValueError as error:
        raise ActionsMismatch(f"{brain.name}: {error}") from error
    return acts
