"""An exchange with a Unity player beside mlagents_envs 1.1.0: `python -m tests.benchmarks.unity_wire --peer FOLDER`.

FOLDER is a virtual environment with mlagents_envs 1.1.0 and protobuf 3.20, whose wheel is compiled on Python 3.10 at
most. `--python PYTHON3.10` makes it where it is missing. Without a peer only rl-tui is measured.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    PNG,
    ActionSpecProto,
    AgentInfoListProto,
    AgentInfoProto,
    BrainParametersProto,
    ObservationProto,
    UnityMessageProto,
)
from rl_tui.engine.sampling.environments.unity.wire.actions import write_actions
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.specs import Actions
from tests.benchmarks.tables import table, verdict

NAME = "Walker?team=0"
NUM_AGENTS, NUM_FLOATS = 256, 64
NUM_IMAGES, IMAGE_SIZE = 32, 84
VECTOR_MARK, IMAGE_MARK = 10.0, 2.0  # times as fast as mlagents_envs
ROUNDS = 25  # short ones: a core of a shared machine is at times twice as fast as at others
PACKAGES = (
    "numpy==1.23.5",
    "protobuf>=3.19,<3.21",
    "cloudpickle",
    "filelock",
    "gymnasium",
    "pillow",
    "pyyaml",
    "grpcio",
)


def vector_request() -> bytes:
    """256 agents that each observe 64 floats."""
    chance = np.random.default_rng(1)
    observations = [
        ObservationProto(
            shape=[NUM_FLOATS],
            float_data=ObservationProto.FloatData(data=chance.normal(size=NUM_FLOATS)),
            dimension_properties=[1],
            name=f"VectorSensor_size{NUM_FLOATS}",
        )
        for _ in range(NUM_AGENTS)
    ]
    return _request(observations)


def image_request(*, is_textured: bool) -> bytes:
    """32 agents that each observe an image of 84x84 pixels: of areas of one color, or with noise on every pixel."""
    chance = np.random.default_rng(2)
    return _request([_image(_pixels(chance, is_textured=is_textured)) for _ in range(NUM_IMAGES)])


def _request(observations: list[ObservationProto]) -> bytes:
    infos = [AgentInfoProto(id=i, reward=0.1, observations=[o]) for i, o in enumerate(observations)]
    message = UnityMessageProto()
    output = message.unity_output
    output.rl_output.agentInfos[NAME] = AgentInfoListProto(value=infos).SerializeToString()
    actions = ActionSpecProto(num_continuous_actions=2)
    output.rl_initialization_output.brain_parameters.append(BrainParametersProto(brain_name=NAME, action_spec=actions))
    return bytes(message.SerializeToString())


def _pixels(chance: np.random.Generator, *, is_textured: bool) -> np.ndarray:
    pixels = np.zeros((IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
    for _ in range(5):  # the recorded images are a few areas of one color, too
        (top, left), color = chance.integers(0, IMAGE_SIZE - 20, 2), chance.integers(0, 256, 3)
        pixels[top : top + 20, left : left + 20] = color
    if is_textured:
        pixels = (pixels + chance.normal(0, 12, pixels.shape)).clip(0, 255).astype(np.uint8)
    return pixels


def _image(pixels: np.ndarray) -> ObservationProto:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return ObservationProto(
        shape=[3, IMAGE_SIZE, IMAGE_SIZE],
        compression_type=PNG,
        compressed_data=file.getvalue(),
        dimension_properties=[1, 2, 2],
        name="Camera",
    )


class Ours:
    """One behavior of a player."""

    def __init__(self, first: bytes) -> None:
        output = UnityMessageProto.FromString(first).unity_output
        [brain] = output.rl_initialization_output.brain_parameters
        self.reader = BehaviorReader(NAME, brain, output.rl_output.agentInfos[NAME], "3.0.0")

    def exchange(self, request: bytes, actions: Actions) -> bytes:
        """The reply's bytes."""
        infos = UnityMessageProto.FromString(request).unity_output.rl_output.agentInfos
        self.reader.read(infos[NAME])
        reply = UnityMessageProto()
        reply.unity_input.rl_input.agent_actions[NAME] = write_actions(actions, with_deprecated=True)
        return bytes(reply.SerializeToString())


def measure_ours(request: bytes, times: int) -> float:
    """Median seconds of an exchange."""
    ours = Ours(request)
    count = len(
        ours.reader.read(
            UnityMessageProto.FromString(request).unity_output.rl_output.agentInfos[NAME]
        ).decisions.agent_ids
    )
    actions = Actions(np.full((count, 2), 0.5, np.float32), np.empty((count, 0), np.int64))
    return _median(lambda: ours.exchange(request, actions), times)


def measure_decoding(request: bytes, times: int) -> float:
    """Median seconds in which Pillow decodes every image of a request, in one thread: what remains is ours."""
    content = UnityMessageProto.FromString(request).unity_output.rl_output.agentInfos[NAME]
    files = [info.observations[0].compressed_data for info in AgentInfoListProto.FromString(content).value]
    return _median(lambda: [Image.open(io.BytesIO(file)).load() for file in files], times)


def _median(call: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def make_peer(folder: Path, python: str) -> None:
    """A virtual environment with mlagents_envs 1.1.0, whose own pins no longer resolve together."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(python_of(folder)), "-m", "pip", "--quiet", "install"]
    subprocess.run([*pip, *PACKAGES], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "pettingzoo==1.15.0"], check=True)
    subprocess.run([*pip, "--no-deps", "--ignore-requires-python", "mlagents-envs==1.1.0"], check=True)


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "bin" / "python"


@contextmanager
def peer_in(folder: Path) -> Iterator[Callable[[Path, int], float]]:
    """What measures a request with the mlagents_envs of that folder."""
    script = Path(__file__).with_name("unity_wire_peer.py")
    with subprocess.Popen(
        [str(python_of(folder)), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def measure(path: Path, times: int) -> float:
            print(path, times, file=child.stdin, flush=True)
            line = child.stdout.readline()
            if not line:
                raise SystemExit(f"{folder}: mlagents_envs 1.1.0 must be installed there, but it ended, see above")
            return float(line)

        yield measure
        child.stdin.close()


def compare(folder: Path, request: bytes, times: int) -> tuple[float, float, float]:
    """Median seconds of an exchange, ours and mlagents_envs', taking turns, and the median of the rounds' ratios."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as temporary, peer_in(folder) as measure_peer:
        path = Path(temporary, "request")
        path.write_bytes(request)
        rounds = [(measure_ours(request, times), measure_peer(path, times)) for _ in range(ROUNDS)]
    ours, peers = zip(*rounds, strict=True)
    ratio = statistics.median(peer / own for own, peer in rounds)
    return statistics.median(ours), statistics.median(peers), ratio


def main() -> int:
    """Print the table; 1 if a mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.unity_wire")
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_PEER"), help="default: $MLAGENTS_PEER")
    parser.add_argument("--python", help="a Python 3.10 that makes the peer's virtual environment if it is missing")
    chosen = parser.parse_args()
    if chosen.peer and chosen.python and not Path(chosen.peer).exists():
        make_peer(Path(chosen.peer), chosen.python)
    if chosen.peer and not python_of(Path(chosen.peer)).exists():
        parser.error(f"--peer must be a virtual environment, got {chosen.peer} without bin/python: see --python")
    plain, textured = image_request(is_textured=False), image_request(is_textured=True)
    cases = [
        (f"{NUM_AGENTS} agents, {NUM_FLOATS} floats", vector_request(), 20, VECTOR_MARK),
        (f"{NUM_IMAGES} plain PNG", plain, 10, IMAGE_MARK),
        (f"{NUM_IMAGES} textured PNG", textured, 10, IMAGE_MARK),
    ]
    rows, are_reached = [], True
    for name, request, times, mark in cases:
        floor = f"{measure_decoding(request, times) * 1000:.2f} ms" if mark == IMAGE_MARK else ""
        if not chosen.peer:
            rows.append((name, f"{measure_ours(request, times) * 1000:.2f} ms", "", floor, "", ""))
            continue
        ours, peers, ratio = compare(Path(chosen.peer), request, times)
        are_reached &= ratio >= mark
        outcome = f"{mark:.0f}: {verdict(ratio >= mark)}"
        rows.append((name, f"{ours * 1000:.2f} ms", f"{peers * 1000:.2f} ms", floor, f"{ratio:.1f}", outcome))
    print(table(("exchange", "rl-tui", "mlagents_envs", "bare decoding", "ratio", "mark"), rows))
    return 0 if are_reached else 1


if __name__ == "__main__":
    sys.exit(main())
