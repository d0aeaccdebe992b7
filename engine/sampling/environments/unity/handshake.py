"""The first two messages of a player or the Editor: versions, and what each side can do."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from rl_tui.engine.sampling.environments.unity.wire.packages import version_numbers

COMMUNICATION_VERSION = "1.5.0"
PACKAGE_VERSION = "1.1.0"  # of the Python package that speaks this protocol; Unity logs it
OK = 200
CLOSE = 400
FAREWELL = messages.UnityMessageProto(header=messages.HeaderProto(status=CLOSE)).SerializeToString()
_MOST_GREETING_BYTES = 65_536  # Unity's has about a hundred
_WITHOUT = {  # capability -> what follows where it is missing
    "base": "the player lacks the basic capabilities of this protocol: its package is old, and training may fail",
    "concatenated_png": "the player cannot compress images of more than three channels, which makes it slow",
    "channel_mapping": "the player cannot say what the channels of compressed images are, and sends some uncompressed",
    "variable_length": "the player does not support observations of variable length",
    "groups": "the player does not support groups of agents: group rewards are not sent",
}


@dataclass(frozen=True)
class Capabilities:
    """What the other side can do, under the names of the protocol in our spelling."""

    base: bool
    concatenated_png: bool
    channel_mapping: bool
    hybrid_actions: bool
    training_analytics: bool
    variable_length: bool
    groups: bool


@dataclass(frozen=True)
class Greeting:
    """What Unity says of itself first."""

    communication_version: str
    package_version: str
    capabilities: Capabilities


def is_greeting(content: bytes) -> bool:
    """Whether these bytes are Unity's first message, whatever version it speaks."""
    if len(content) > _MOST_GREETING_BYTES:
        return False
    try:
        message = messages.UnityMessageProto.FromString(content)
    except DecodeError:
        return False
    return bool(message.header.status == OK and message.unity_output.HasField("rl_initialization_output"))


def read_greeting(message: messages.UnityMessageProto) -> Greeting:
    """What the first message says. Raises EnvironmentFailure for another message, or an incompatible version."""
    said = message.unity_output.rl_initialization_output
    if not message.unity_output.HasField("rl_initialization_output"):
        raise EnvironmentFailure("the first message must be Unity's greeting (rl_initialization_output), got another")
    if not is_compatible(said.communication_version):
        raise EnvironmentFailure(
            f"its com.unity.ml-agents package {said.package_version or '(without a version)'} speaks version "
            f"{said.communication_version or '(none)'} of the protocol, this program {COMMUNICATION_VERSION}: "
            "build it with version 3.0.0 of the package or newer"
        )
    can = said.capabilities
    return Greeting(
        said.communication_version,
        said.package_version,
        Capabilities(
            can.baseRLCapabilities,
            can.concatenatedPngObservations,
            can.compressedChannelMapping,
            can.hybridActions,
            can.trainingAnalytics,
            can.variableLengthObservation,
            can.multiAgentGroups,
        ),
    )


def is_compatible(version: str) -> bool:
    """Whether we speak that version: the same major one, and under 0 the same minor one."""
    theirs, ours = version_numbers(version), version_numbers(COMMUNICATION_VERSION)
    if theirs is None or ours is None:
        return False
    return theirs[0] == ours[0] and (ours[0] != 0 or theirs[1] == ours[1])


def introduction(seed: int, num_areas: int) -> messages.UnityMessageProto:
    """The answer to a greeting. All capabilities are ours."""
    answer = messages.UnityMessageProto(header=messages.HeaderProto(status=OK))
    first = answer.unity_input.rl_initialization_input
    first.seed = seed
    first.communication_version = COMMUNICATION_VERSION
    first.package_version = PACKAGE_VERSION
    first.num_areas = num_areas
    first.capabilities.CopyFrom(
        messages.UnityRLCapabilitiesProto(
            baseRLCapabilities=True,
            concatenatedPngObservations=True,
            compressedChannelMapping=True,
            hybridActions=True,
            trainingAnalytics=True,
            variableLengthObservation=True,
            multiAgentGroups=True,
        )
    )
    return answer


def consequences(capabilities: Capabilities) -> list[str]:
    """What follows from the capabilities that are missing, one line each."""
    return [text for name, text in _WITHOUT.items() if not getattr(capabilities, name)]
