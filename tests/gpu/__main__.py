"""`make gpu`: all that a GPU may change, proven and measured on a CUDA device; one line where there is none.

Tests (those marked `gpu` in all of tests/), then what each precision costs and gains, then the benchmarks of training.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from tests.devices import VARIABLE

ROOT = Path(__file__).parents[2]
PARTS = ("tests", "precision", "bench")
SECONDS = 1200  # for one test: the first use of a GPU's libraries takes a minute on some machines


def main(words: Sequence[str] | None = None) -> int:
    """Run the chosen parts one after the other; the exit code of the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or cpu to try out the tests themselves (cuda)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, of {', '.join(PARTS)} (all)")
    parser.add_argument("--quick", action="store_true", help="short benchmarks, whose numbers mean little")
    arguments = parser.parse_args(words)
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only: must be of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    device = device_named(arguments.device)
    if device is None:
        parser.error(f"--device: must be cuda, cuda:N or cpu, got {arguments.device}")
    if device.type == "cuda" and not torch.cuda.is_available():
        print(f"make gpu: torch {torch.__version__} finds no CUDA device; nothing was checked")
        return 0
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        parser.error(f"--device: {device} is not there; torch finds {torch.cuda.device_count()} CUDA devices")
    print(described(device), flush=True)
    quick = ["--quick"] if arguments.quick else []
    commands = {
        "tests": ["-m", "pytest", "-m", "gpu", "--timeout", str(SECONDS)],
        "precision": ["-m", "tests.gpu.precision", "--device", arguments.device, *quick],
        "bench": ["-m", "tests.benchmarks.throughput", "--device", arguments.device, "--only", "a,c,i,j", *quick],
    }
    surroundings = {**os.environ, VARIABLE: arguments.device, "PYTHONPATH": str(ROOT / "src")}
    for part in parts:
        code = subprocess.run([sys.executable, *commands[part]], cwd=ROOT, env=surroundings, check=False).returncode
        if code:
            return code
    return 0


def device_named(name: str) -> torch.device | None:
    """What a run may name as its device and these checks know; None for anything else."""
    with suppress(RuntimeError):  # torch knows no such kind, or no such number
        device = torch.device(name)
        return device if device.type in ("cuda", "cpu") else None
    return None


def described(device: torch.device) -> str:
    """The device in one line, and what computes on it."""
    if device.type != "cuda":
        return f"{device}, torch {torch.__version__}: this tries out the tests themselves, and says nothing about a GPU"
    major, minor = torch.cuda.get_device_capability(device)
    memory = torch.cuda.get_device_properties(device).total_memory / (1 << 30)
    cudnn = torch.backends.cudnn.version()
    return (
        f"{torch.cuda.get_device_name(device)}, {memory:.0f} GiB, compute capability {major}.{minor};"
        f" torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}"
    )


if __name__ == "__main__":
    sys.exit(main())
