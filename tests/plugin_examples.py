"""The packages whose files docs/plugins.md shows in full."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/plugins.md"
FILE = re.compile(r"^```\w+ (rl-tui-\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # its path is after the language
FILES = dict(FILE.findall(PAGE.read_text()))


def write_examples(folder: Path) -> list[Path]:
    """The folder of each package, with its files as the page has them."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "rl-tui-a2c/rl_tui_a2c/__init__.py").touch()
    return sorted(folder.glob("rl-tui-*"))


def write_metadata(package: Path) -> None:
    """What pip would write, so that the package counts as installed where Python searches its folder."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    about = package / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    for group, points in project["entry-points"].items():
        lines = "".join(f"{name} = {target}\n" for name, target in points.items())
        (about / "entry_points.txt").write_text(f"[{group}]\n{lines}")
