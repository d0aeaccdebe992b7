"""Packages as pip installs them: a module and its metadata in a folder that Python searches."""

from __future__ import annotations

import sys
from pathlib import Path

from rl_tui.engine import registry


class Packages:
    """A folder of installed packages, searched until the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: list[str] = []

    def install(self, package: str, code: str, **entry_points: str) -> None:
        """Version 1.0 of a package with one module of its name. entry_points: kind or whole group -> lines."""
        groups = [f"[{kind if '.' in kind else f'rl_tui.{kind}'}]\n{lines}\n" for kind, lines in entry_points.items()]
        about = self.folder / f"{package}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("".join(groups))
        (self.folder / f"{package}.py").write_text(code)
        self._modules.append(package)
        registry._entry_points.cache_clear()  # the folder may have been searched before

    def remove(self) -> None:
        """None of them is imported any more."""
        for module in self._modules:
            sys.modules.pop(module, None)


MAZE = """
from typing import ClassVar

from rl_tui.engine.config.environments import EnvironmentSettings
from rl_tui.engine.config.types import PositiveWhole
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import EnvironmentKind
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import ActionSpec


class MazeSettings(EnvironmentSettings):
    \"\"\"Mazes of any size.\"\"\"

    implementation: ClassVar = "maze:Mazes"
    has_one_behavior: ClassVar = True

    size: PositiveWhole
    masked: bool = True


class Mazes(EnvironmentKind[MazeSettings]):
    def require(self, name):
        if name not in ("small", "large"):
            raise ConfigError(f"maze:{name}: must be maze:small or maze:large")

    def make(self, name, behavior, copies, settings):
        made = [Line(behavior, len(copies), masked=settings.masked)]
        made[0].size = settings.size
        return made
"""

PATCHES = """
from typing import ClassVar
from rl_tui.engine.config.encoders import EncoderSettings
from rl_tui.engine.config.types import PositiveWhole

class PatchSettings(EncoderSettings):
    \"\"\"The mean of embedded patches.\"\"\"
    implementation: ClassVar = "patches:Patches"
    smallest: ClassVar = 4
    side: PositiveWhole = 4

def __getattr__(name):
    import torch
    from torch import nn

    class Patches(nn.Module):
        def __init__(self, random, spec, network, settings):
            super().__init__()
            self.embed = nn.Conv2d(spec.shape[2], network.hidden_units, settings.side, settings.side)
            self.register_buffer("scale", torch.tensor(255.0), persistent=False)

        def forward(self, images):
            pixels = images / self.scale if images.dtype == torch.uint8 else images
            return self.embed(pixels.permute(0, 3, 1, 2)).flatten(2).mean(2)

    if name == "Patches":
        return Patches
    raise AttributeError(name)
"""
