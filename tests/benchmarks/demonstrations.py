"""Reading .demo files beside mlagents 1.1.0's loader: `python -m tests.benchmarks.demonstrations --peer FOLDER`.

FOLDER is a virtual environment of Python 3.10 with mlagents, mlagents_envs, h5py and protobuf 3.20, whose wheel is
compiled. Both read the same files, from the path to steps: the loader makes its buffer, and rl-tui decodes every step
in batches of 1024. Then rl-tui reads a million steps alone, each time in a new process, with the memory that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter, Episode
from rl_tui.engine.specs import TERMINATED, ActionSpec, BehaviorSpec, ObservationSpec
from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table, verdict
from tests.benchmarks.unity_wire import _pixels

MARK = 5.0  # times as fast as mlagents' loader
ROUNDS = 3
EPISODE_STEPS = 1000
BALL = BehaviorSpec("3DBall", (ObservationSpec("ball", (8,)),), ActionSpec(2))
CAMERA = BehaviorSpec("Camera", (ObservationSpec("camera", (84, 84, 3), "uint8"),), ActionSpec(0, (5,)))
READ = """
import json, resource, sys, time
import numpy as np
from rl_tui.engine.demonstrations.opening import open_demonstrations
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, begun = peak(), time.perf_counter()
steps = open_demonstrations(sys.argv[1], keep_bytes=int(sys.argv[2]))
opened = time.perf_counter() - begun
for first in range(0, steps.num_steps, 1024):
    steps.transitions(np.arange(first, min(first + 1024, steps.num_steps)))
print(json.dumps([opened, time.perf_counter() - begun, peak() - before]))
"""


def write(path: Path, spec: BehaviorSpec, num_steps: int) -> Path:
    """A file of that many steps of random numbers, or of images with a few areas of one color."""
    chance = np.random.default_rng(1)
    count, size = EPISODE_STEPS, spec.observations[0].shape
    with DemonstrationWriter(path, spec, path.stem) as writer:
        for _ in range(num_steps // count):
            if spec is CAMERA:
                seen = np.stack([_pixels(chance, is_textured=False) for _ in range(count + 1)])
            else:
                seen = chance.normal(size=(count + 1, *size)).astype(np.float32)
            discrete = chance.integers(0, 5, (count, len(spec.actions.branches)))
            continuous = chance.uniform(-1, 1, (count, spec.actions.continuous)).astype(np.float32)
            rewards = np.full(count, 0.1, np.float32)
            writer.write(
                Episode(
                    observations=(seen,), continuous=continuous, discrete=discrete, rewards=rewards, ending=TERMINATED
                )
            )
    return path


def measure(path: Path, keep_bytes: int = 0) -> tuple[float, float, float]:
    """Seconds until the file is open, and until every step was read; MB beyond those of the program itself."""
    command = [sys.executable, "-c", READ, str(path), str(keep_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    opened, read, megabytes = json.loads(done.stdout)
    return opened, read, megabytes


@contextmanager
def peer_in(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The loader of mlagents, which waits for paths."""
    script = Path(__file__).with_name("demonstrations_peer.py")
    command = [str(folder / "bin/python"), str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield child
        assert child.stdin is not None
        child.stdin.close()


def ask(child: subprocess.Popen[str], path: Path) -> float:
    """The seconds that its loader takes."""
    assert child.stdin is not None
    assert child.stdout is not None
    print(path, file=child.stdin, flush=True)
    line = child.stdout.readline()
    if not line:
        raise SystemExit("mlagents' loader ended, see above")
    return float(line)


def compare(peer: Path, path: Path) -> tuple[float, float, float]:
    """Median seconds, ours and its loader's, taking turns, and the median of the rounds' ratios."""
    with peer_in(peer) as child:
        rounds = [(measure(path)[1], ask(child, path)) for _ in range(ROUNDS)]
    ours, theirs = zip(*rounds, strict=True)
    return statistics.median(ours), statistics.median(theirs), statistics.median(b / a for a, b in rounds)


def main() -> int:
    """Print the tables; 1 if the mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.demonstrations")
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_PEER"), help="default: $MLAGENTS_PEER")
    parser.add_argument("--steps", type=int, default=1_000_000, help="that rl-tui reads alone (default 1000000)")
    chosen = parser.parse_args()
    if chosen.peer and (fault := fault_of(Path(chosen.peer) / "bin/python", "mlagents_envs")):
        parser.error(f"--peer: {fault}")
    is_reached = True
    with TemporaryDirectory(prefix="rl-tui-bench-") as temporary:
        vectors = write(Path(temporary, "vectors.demo"), BALL, 50_000)
        images = write(Path(temporary, "images.demo"), CAMERA, 10_000)
        if chosen.peer:
            rows = []
            for name, path in (("50,000 steps of 8 floats", vectors), ("10,000 PNG of 84x84x3", images)):
                ours, theirs, ratio = compare(Path(chosen.peer), path)
                is_reached &= ratio >= MARK
                marked = f"{MARK:.0f}: {verdict(ratio >= MARK)}"
                rows.append((name, f"{ours:.2f} s", f"{theirs:.2f} s", f"{ratio:.1f}", marked))
            print(table(("file", "rl-tui", "mlagents", "ratio", "mark"), rows))
        many = write(Path(temporary, "many.demo"), BALL, chosen.steps)
        rows = []
        for name, path in ((f"{chosen.steps:,} steps of 8 floats", many), ("10,000 PNG of 84x84x3", images)):
            for keep_bytes in (0, 2**29):
                opened, read, megabytes = measure(path, keep_bytes)
                kept = "kept" if keep_bytes else "decoded each time"
                size = f"{path.stat().st_size / 2**20:.0f} MB"
                rows.append((name, size, kept, f"{opened:.2f} s", f"{read:.2f} s", f"{megabytes:.0f} MB"))
        print(table(("file", "size", "observations", "open", "all steps", "memory"), rows))
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
