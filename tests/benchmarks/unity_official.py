"""`python -m tests.benchmarks.unity_official --python PATH`: mlagents_envs 1.1.0 drives the stand-in player.

PATH is a Python 3.10 that has mlagents_envs 1.1.0, installed without regard to the newest version that it allows. Every
scenario is a player that records what it said; what the official client received must be that, agent by agent and
number by number, and what it chose must have arrived. Where the player makes trouble, the official error must be the
expected one. Ends with 1 where a scenario differs.
"""

from __future__ import annotations

import argparse
import io
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table
from tests.unity_player.executable import make_player
from tests.unity_player.images import SIGNATURE
from tests.unity_player.log import notes

CLIENT = Path(__file__).with_name("unity_official_client.py")
STEPS = 120
FIRST_OUTPUT = 2  # requests before it are those of the handshake
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Scenario:
    """A player's arguments. error: what the official client must end with. seconds: for which it waits."""

    name: str
    arguments: tuple[str, ...]
    error: str = ""
    steps: int = STEPS
    num_areas: int = 1
    resets: tuple[int, ...] = (0,)
    seconds: int = 20


CAPABILITIES = "concatenatedPngObservations", "compressedChannelMapping", "hybridActions", "multiAgentGroups"
SCENARIOS = (
    Scenario("ball", ("--task", "ball", "--max-steps", "40")),
    Scenario("ball, ids that change", ("--task", "ball", "--ids", "change")),
    Scenario("ball, three areas", ("--task", "ball"), num_areas=3),
    Scenario("ball, deprecated actions", ("--task", "ball", "--deprecated-actions", "--package-version", "1.0.0")),
    Scenario("ball, reset on the way", ("--task", "ball"), resets=(0, 17, 60)),
    Scenario("basic", ("--task", "basic", "--max-steps", "30")),
    Scenario("basic, deprecated actions", ("--task", "basic", "--deprecated-actions")),
    Scenario("images", ("--task", "visual")),
    Scenario("groups", ("--task", "groups")),
    Scenario("groups, ids that change", ("--task", "groups", "--ids", "change")),
    Scenario("teams", ("--task", "teams")),
    Scenario("crowd", ("--task", "crowd")),
    Scenario("crowd, ids that change", ("--task", "crowd", "--ids", "change"), resets=(0, 50)),
    Scenario("side channels", ("--task", "ball", "--statistics")),
    Scenario("wrapper", ("--task", "ball", "--wrapper")),
    Scenario("slow start", ("--task", "ball", "--slow-start", "2")),
    *(Scenario(f"without {name}", ("--task", "crowd", "--without", name)) for name in CAPABILITIES),
    Scenario(
        "another version", ("--communication-version", "2.0.0"), "UnityEnvironmentException: The communication API"
    ),
    Scenario("never connects", ("--never-connects",), "UnityTimeOutException", seconds=10),
    Scenario("hang", ("--trouble", "hang@20"), "UnityTimeOutException", seconds=10),
    Scenario(
        "crash", ("--trouble", "crash@20"), "UnityEnvironmentException: Environment shut down with return code -11"
    ),
    Scenario("exit", ("--trouble", "exit:3@20"), "UnityEnvironmentException: Environment shut down with return code 3"),
    Scenario("leave", ("--trouble", "leave@20"), "UnityCommunicatorStoppedException"),
    Scenario("longer observation", ("--trouble", "shape@20"), "UnityObservationException"),
    Scenario("not a number", ("--trouble", "nan@20"), "RuntimeError"),
    Scenario("infinite", ("--trouble", "infinite@20"), "RuntimeError"),
    Scenario("reward not a number", ("--trouble", "nan-reward@20"), "RuntimeError"),
    Scenario("garbage", ("--trouble", "garbage@20"), "UnityEnvironmentException"),
)


@dataclass
class Played:
    """What the official client received and sent, and the requests and replies that the player recorded."""

    arrays: Arrays
    notes: dict[str, Any]
    requests: list[messages.UnityMessageProto]
    replies: list[messages.UnityMessageProto]
    log: list[dict[str, object]]


def play(scenario: Scenario, python: Path, folder: Path) -> Played:
    """Raises CalledProcessError where the client itself fails."""
    player = make_player(folder, *scenario.arguments, "--record", str(folder / "record"))
    wanted = {
        "player": str(player),
        "port": free_port(),
        "seed": 5,
        "num_areas": scenario.num_areas,
        "steps": scenario.steps,
        "resets": scenario.resets,
        "arguments": ["--mine", "3"],
        "timeout": scenario.seconds,
        "log_folder": str(folder),
        "out": str(folder / "received.npz"),
    }
    subprocess.run([python, CLIENT, json.dumps(wanted)], check=True, capture_output=True, timeout=300)
    with np.load(folder / "received.npz") as file:
        arrays = dict(file)
    return Played(
        arrays,
        json.loads(str(arrays.pop("notes"))),
        *(
            [
                messages.UnityMessageProto.FromString(path.read_bytes())
                for path in sorted(folder.glob(f"record/*.{kind}"))
            ]
            for kind in ("request", "response")
        ),
        notes(folder / "Player-0.log"),
    )


def free_port() -> int:
    """A free one."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def differences(scenario: Scenario, played: Played) -> list[str]:
    """What is not as it should be."""
    error = played.notes["error"]
    if scenario.error or error:
        return [] if scenario.error and error.startswith(scenario.error) else [f"error: {error or 'none'}"]
    wrong = _wrong_arrays(scenario, played) + _wrong_specs(played) + _wrong_notes(scenario, played)
    if len(played.requests) != FIRST_OUTPUT + scenario.steps:
        wrong.append(f"requests: {len(played.requests)}")
    return wrong


def _wrong_arrays(scenario: Scenario, played: Played) -> list[str]:
    expected: Arrays = {}
    known: dict[str, int] = {}
    for number in range(scenario.steps):
        output = played.requests[FIRST_OUTPUT + number].unity_output
        known |= {said.brain_name: 0 for said in output.rl_initialization_output.brain_parameters}
        for name in known:
            lists = messages.AgentInfoListProto.FromString(output.rl_output.agentInfos.get(name) or b"").value
            for kind, infos in (
                ("decisions", [info for info in lists if not info.done]),
                ("terminals", [info for info in lists if info.done]),
            ):
                expected |= {f"{number}|{name}|{kind}|{key}": value for key, value in _columns(infos, kind).items()}
            if number + 1 < scenario.steps and number + 1 not in scenario.resets:
                reply = played.replies[FIRST_OUTPUT + number].unity_input.rl_input
                expected |= _sent(f"{number}|{name}|actions", reply.agent_actions.get(name) or b"")
    return [
        f"{key}: {_short(played.arrays.get(key))} instead of {_short(value)}"
        for key, value in expected.items()
        if not _same(played.arrays.get(key), value)
    ]


def _columns(infos: Sequence[messages.AgentInfoProto], kind: str) -> Arrays:
    columns: Arrays = {
        "agent_id": np.array([info.id for info in infos], np.int32),
        "reward": np.array([info.reward for info in infos], np.float32),
        "group_id": np.array([info.group_id for info in infos], np.int32),
        "group_reward": np.array([info.group_reward for info in infos], np.float32),
    }
    if kind == "terminals":
        columns["interrupted"] = np.array([info.max_step_reached for info in infos], bool)
    elif any(info.action_mask for info in infos):
        size = max(len(info.action_mask) for info in infos)
        columns["mask"] = np.array([list(info.action_mask) or [False] * size for info in infos], bool)
    for index in range(len(infos[0].observations) if infos else 0):
        columns[f"observation{index}"] = np.stack([_seen(info.observations[index]) for info in infos])
    return columns


def _seen(said: messages.ObservationProto) -> NDArray[np.float32]:
    shape = tuple(said.shape)
    if not said.compression_type:
        return np.array(said.float_data.data, np.float32).reshape(shape)
    files = [SIGNATURE + part for part in said.compressed_data.split(SIGNATURE)[1:]]
    images = [np.asarray(Image.open(io.BytesIO(file)), np.float32) / 255 for file in files]
    channels = np.concatenate(images, axis=2).transpose(2, 0, 1)
    mapping = np.array(said.compressed_channel_mapping or ([0, 0, 0] if shape[0] == 1 else range(len(channels))))
    return np.stack([channels[mapping == channel].mean(0) for channel in range(shape[0])])


def _sent(prefix: str, content: bytes) -> Arrays:
    actions = messages.AgentActionListProto.FromString(content).value
    if not actions:
        return {}
    return {
        f"{prefix}|continuous": np.array([list(action.continuous_actions) for action in actions], np.float32),
        f"{prefix}|discrete": np.array([list(action.discrete_actions) for action in actions], np.int32),
    }


def _same(found: NDArray[Any] | None, expected: NDArray[Any]) -> bool:
    """Images may differ in the last bit: the mean of channels depends on the order of their sum."""
    return found is not None and found.shape == expected.shape and np.allclose(found, expected, rtol=0, atol=2e-7)


def _short(value: NDArray[Any] | None) -> str:
    return "nothing" if value is None else f"{value.shape} {np.array2string(value.ravel()[:6])}"


def _wrong_specs(played: Played) -> list[str]:
    wrong = []
    for request in played.requests:
        for said in request.unity_output.rl_initialization_output.brain_parameters:
            lists = request.unity_output.rl_output.agentInfos[said.brain_name]
            first = messages.AgentInfoListProto.FromString(lists).value[0]
            found, expected = played.notes["specs"][said.brain_name], _spec(said, first)
            if found != expected:
                wrong.append(f"{said.brain_name}: {found} instead of {expected}")
    return wrong


def _spec(said: messages.BrainParametersProto, first: messages.AgentInfoProto) -> dict[str, Any]:
    deprecated = list(said.vector_action_size_deprecated)
    is_continuous = said.vector_action_space_type_deprecated == messages.continuous
    return {
        "observations": [
            [
                list(seen.shape),
                list(seen.dimension_properties) or [0] * len(seen.shape),
                seen.observation_type,
                seen.name,
            ]
            for seen in first.observations
        ],
        "continuous": said.action_spec.num_continuous_actions or (sum(deprecated) if is_continuous else 0),
        "branches": list(said.action_spec.discrete_branch_sizes) or ([] if is_continuous else deprecated),
    }


def _wrong_notes(scenario: Scenario, played: Played) -> list[str]:
    """What went over side channels, and the handshake."""
    said = {str(line.get("key")): line for line in played.log}
    found = {
        "seed": next(line["seed"] for line in played.log if "seed" in line),
        "ignored": next(line["ignored"] for line in played.log if "ignored" in line),
        "size": said["size"]["value"],
        "uniform": said["uniform"]["arguments"],
        "gaussian": said["gaussian"]["arguments"],
        "ranges": said["ranges"]["arguments"],
        "resolution": said["resolution"]["value"],
        "time_scale": said["time_scale"]["value"],
        "echoes": played.notes["echoes"],
        "height": played.notes["properties"]["height"],
    }
    expected = {
        "seed": 5,
        "ignored": ["--mine", "3"],
        "size": 1.5,
        "uniform": [1.0, 2.0],
        "gaussian": [4.0, 5.0],
        "ranges": [1.0, 2.0, 3.0, 4.0],
        "resolution": [640, 480],
        "time_scale": 20.0,
        "echoes": ["00ff01"],
        "height": 2.5,
    }
    if "--statistics" in scenario.arguments:
        names = "Player/Average", "Player/Last", "Player/Sum", "Player/Histogram"
        values = {name: [[float(k + 1), method] for k in range(STEPS)] for method, name in enumerate(names)}
        found, expected = found | {"statistics": played.notes["statistics"]}, expected | {"statistics": values}
    return [f"{key}: {found[key]} instead of {expected[key]}" for key in expected if found[key] != expected[key]]


def main() -> int:
    """Every scenario, or those whose names contain `--only`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if fault := fault_of(options.python, "mlagents_envs.environment"):
        parser.error(f"--python {fault}")
    rows, num_wrong = [], 0
    for scenario in SCENARIOS:
        if options.only in scenario.name:
            with TemporaryDirectory() as folder:
                played = play(scenario, options.python, Path(folder))
            wrong = differences(scenario, played)
            num_wrong += bool(wrong)
            print(*(f"{scenario.name}: {line}" for line in wrong[:5]), sep="\n", end="\n" if wrong else "")
            outcome = "DIFFERS" if wrong else played.notes["error"].partition(":")[0] or "equal"
            rows.append((scenario.name, f"{len(played.arrays):,}", outcome))
    print(table(("scenario", "arrays", "outcome"), rows))
    return min(num_wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
