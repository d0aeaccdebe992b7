"""How rl-tui was installed, and so the command that adds a package to it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "rl-tui"


def command_for_extra(extra: str) -> str:
    """The command that installs the packages of one of our extras, e.g. `.venv/bin/pip install -e '.[box2d]'`."""
    clone, is_editable = _source_folder()
    if clone is None or not clone.is_dir() or _is_pipx():
        return command_for(*_packages_of(extra))
    named = f"{_short(clone)}[{extra}]"
    if _is_uv_tool():
        return _command("uv", "tool", "install", "--force", named)
    return _command(*_pip(), *(["-e"] if is_editable else []), named)


def command_for(*packages: str) -> str:
    """The command that installs these packages."""
    if _is_pipx():
        return _command("pipx", "inject", PACKAGE, *packages)
    if _is_uv_tool():
        return _command("uv", "pip", "install", "--python", sys.executable, *packages)
    return _command(*_pip(), *packages)


def _pip() -> list[str]:
    """pip of this interpreter, or uv if uv installed rl-tui."""
    python = _short(Path(sys.executable))
    if _read("INSTALLER").strip() == "uv":
        return ["uv", "pip", "install", "--python", python]
    return [python, "-m", "pip", "install"]


def _is_pipx() -> bool:
    return Path(sys.prefix, "pipx_metadata.json").is_file()


def _is_uv_tool() -> bool:
    return Path(sys.prefix, "uv-receipt.toml").is_file()


def _source_folder() -> tuple[Path | None, bool]:
    """The folder that was installed, None for anything else, and whether the installation is editable (PEP 610)."""
    origin = json.loads(_read("direct_url.json") or "{}")
    url = urlsplit(str(origin.get("url", "")))
    if url.scheme != "file":
        return None, False
    return Path(unquote(url.path)), bool(origin.get("dir_info", {}).get("editable"))


def _packages_of(extra: str) -> list[str]:
    """The requirements of an extra."""
    try:
        required = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        required = []
    marker = f'extra == "{extra}"'
    found = [each.partition(";")[0].strip() for each in required if marker in each.replace("'", '"')]
    return found or [f"{PACKAGE}[{extra}]"]


def _read(name: str) -> str:
    """One file of our installed metadata; empty if there is none."""
    try:
        return metadata.distribution(PACKAGE).read_text(name) or ""
    except metadata.PackageNotFoundError:
        return ""


def _short(path: Path) -> str:
    """Relative if it is below the working folder."""
    try:
        short = str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
    return short if os.sep in short or short == "." else os.path.join(".", short)


def _command(*words: str) -> str:
    return shlex.join(words)
