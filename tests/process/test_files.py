"""Only regular files are opened, and nothing waits for anything else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rl_tui.engine.process.files import open_regular

MODES = ("r", "a", "w", "r+")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder", "link to a file", "link to a device"])
def test_anything_but_a_file_is_refused_at_once(kind: str, mode: str, tmp_path: Path) -> None:
    path = Path("/dev/null") if kind == "device" else tmp_path / "events.jsonl"
    (tmp_path / "other").write_text("kept")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
        case "folder":
            path.mkdir()
        case "link to a file":
            path.symlink_to(tmp_path / "other")
        case "link to a device":
            path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match=r"not a regular file|a link, which is not followed|[Ii]s a directory") as raised:
        open(path, mode, opener=open_regular).close()
    assert raised.value.filename == str(path)
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize(("mode", "content"), [("r", "one"), ("a", "one two"), ("w", " two"), ("r+", " two")])
def test_file_is_opened_as_without_it(mode: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("one")
    with open(path, mode, opener=open_regular) as file:
        if mode != "r":
            file.write(" two")
    assert path.read_text() == content
    with open(tmp_path / "new", "w", opener=open_regular) as file:
        file.write("made")
    assert (tmp_path / "new").read_text() == "made"
