"""run_logs/devices.json: the kinds of devices that behaviors chose, so that a resumed run keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.storage.disk import DISK, Disk, write_atomically

CPU: Final = "cpu"


@dataclass(frozen=True, slots=True)
class DeviceKinds:
    """Where a behavior updates and where its agents act: "cpu" or "cuda", without the number of a device."""

    updates: str = CPU
    acts: str = CPU


def read_device_choices(path: Path) -> Mapping[str, DeviceKinds]:
    """What the file has, by behavior; nothing where it is missing or broken: it can be chosen again."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            body = json.loads(file.read())
        return {name: DeviceKinds(str(kinds["updates"]), str(kinds["acts"])) for name, kinds in body.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def write_device_choice(path: Path, behavior: str, kinds: DeviceKinds, disk: Disk = DISK) -> None:
    """Add the choice of a behavior to the file. Raises OSError."""
    chosen = {**read_device_choices(path), behavior: kinds}
    body = {name: asdict(each) for name, each in chosen.items()}
    write_atomically(path, json.dumps(body, indent=4).encode(), disk)
