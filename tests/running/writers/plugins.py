"""An installed writer: a module and its entry point in a folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

LINES = '''
import threading
from typing import ClassVar

from rl_tui.engine.config.writers import WriterSettings
from tests.deadline import DEADLINE_SECONDS

released = threading.Event()
made = []


class LinesSettings(WriterSettings):
    """Keeps the names of events, and fails where it is to."""

    implementation: ClassVar[str] = "lines_writer:LinesWriter"
    fails_in: str = ""
    path: str = "lines.txt"


class LinesWriter:
    def __init__(self, settings, context):
        self.settings, self.context, self.mail, self.is_closed = settings, context, [], False
        made.append(self)
        self._reach("start")

    def write(self, envelope):
        self._reach("write")
        self._reach("hang")
        self.mail.append(envelope)

    def close(self):
        self._reach("close")
        self.is_closed = True
        (self.context.folder / self.settings.path).write_text("".join(
            f"{type(envelope.event).__name__}\\n" for envelope in self.mail))

    def _reach(self, place):
        if self.settings.fails_in == place == "hang":
            assert released.wait(DEADLINE_SECONDS)
        elif self.settings.fails_in == place == "write":
            raise SystemExit("no more\\nof this")
        elif self.settings.fails_in == place:
            raise OSError(28, "No space left")
'''


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str, **names: str) -> None:
    """A package `lines` 1.0 with that module; names: the class of the settings of each writer."""
    (folder / f"{module}.py").write_text(text)
    metadata = folder / "lines-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1.0\n")
    points = "".join(f"{name} = {module}:{attribute}\n" for name, attribute in names.items())
    (metadata / "entry_points.txt").write_text(f"[rl_tui.writers]\n{points}")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `lines_writer`, installed with the writers `lines` and `others`."""
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, monkeypatch, "lines_writer", LINES, lines="LinesSettings", others="LinesSettings")
    import lines_writer  # type: ignore[import-not-found]

    found: ModuleType = lines_writer
    return found
