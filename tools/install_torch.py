"""Install torch as TORCH says: python tools/install_torch.py auto|cpu|default PIP-INSTALL-COMMAND...

On Linux the torch of PyPI brings CUDA, gigabytes that are of no use without an NVIDIA driver. PyTorch's own index has
a build for the CPU. Only torch itself is taken from there: what it needs comes with everything else.
"""

from __future__ import annotations

import ctypes.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
FROM_CPU_INDEX = ("--no-deps", "--index-url", CPU_INDEX, "--timeout", "15", "--retries", "2")
DRIVER = Path("/proc/driver/nvidia")


def main(choice: str, *pip: str) -> int:
    """The exit code. choice: auto, cpu, or default, which leaves it to pip's own settings."""
    if choice not in ("auto", "cpu", "default"):
        print(f"TORCH must be auto, cpu or default, got {choice}", file=sys.stderr)
        return 2
    if choice == "cpu" or (choice == "auto" and needs_choice() and not has_nvidia_driver()):
        print("Setting up torch for the CPU, about 200 MB (TORCH=default leaves the choice to pip) ...", flush=True)
        tried = subprocess.run([*pip, *FROM_CPU_INDEX, "torch"], stderr=subprocess.PIPE, text=True, check=False)
        if tried.returncode == 0:
            return 0
        if choice == "cpu":
            print(tried.stderr + f"torch could not be installed from {CPU_INDEX}", file=sys.stderr)
            return 1
        print(f"torch for the CPU could not be installed from {CPU_INDEX}", flush=True)
    size = ", from PyPI with CUDA about 5.6 GB" if needs_choice() else ""
    print(f"Setting up torch as pip's settings offer it{size} ...", flush=True)
    return subprocess.run([*pip, "torch"], check=False).returncode


def needs_choice() -> bool:
    """Whether PyPI's torch brings CUDA here: on macOS it is built for the CPU and Apple's GPUs."""
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")


def has_nvidia_driver() -> bool:
    """Whether there is any trace of one; in a container that may be the library alone."""
    return bool(shutil.which("nvidia-smi") or DRIVER.exists() or ctypes.util.find_library("cuda"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
