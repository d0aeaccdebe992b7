"""The runs in a results folder: listed, found by name, and read again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.summaries import Removal, RunSummary
from rl_tui.engine.storage.file_names import CONFIGURATION, EVENTS
from rl_tui.engine.storage.ownership import writing_process
from rl_tui.engine.storage.run_summary import RUN_FILES, summarize

if TYPE_CHECKING:
    from rl_tui.engine.session.log_position import LogPosition
    from rl_tui.engine.session.messages import Envelope


class Archive:
    """Reads the runs below `results_dir`, also while they go on. Holds nothing open; only `remove` changes anything.

    A run is named by its id, by the path of its folder, or by the path of a file of events anywhere.
    """

    def __init__(self, results_dir: Path):
        self.results_dir = results_dir

    def runs(self) -> list[RunSummary]:
        """Every run, the one that was heard from last first; none where there is no such folder.

        Raises ConfigError when the folder is there and cannot be read.
        """
        try:
            names = os.listdir(self.results_dir)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{self.results_dir}: cannot be read ({error.strerror})") from error
        summaries = [summary for name in sorted(names) if (summary := summarize(self.results_dir / name)) is not None]
        return sorted(summaries, key=_heard_from, reverse=True)

    def resolve(self, name: str) -> Path:
        """The folder of that run, or the file of events when one is named. Raises ConfigError, with a guess."""
        for path in (self.results_dir / name, Path(name)):
            if os.path.isfile(path) or any(os.path.isfile(path / file) for file in RUN_FILES):
                return path
        if os.path.isdir(name):
            raise ConfigError(f"{name}: this folder holds no run, expected {EVENTS} in it")
        from rl_tui.engine.config.diagnostics import suggest  # 20 ms that a list of runs does without

        known = [run.run_id for run in self.runs()]
        where = f"no run of that name in {self.results_dir}, and no such path."
        raise ConfigError(f"{name}: {where}{suggest(name, known) or ' `rl-tui ls` lists the runs.'}")

    def events(self, name: str) -> Iterator[Envelope]:
        """Every event of that run, oldest first. Raises ConfigError, at the line that cannot be read."""
        for envelope in self.following(name):
            if envelope is None:
                return
            yield envelope

    def following(self, name: str, position: LogPosition | None = None) -> Iterator[Envelope | None]:
        """Every event of that run, and None where there is no further one yet; never ends. Raises as `events` does.

        position: where to begin; kept up to date, see LogPosition.
        """
        from rl_tui.engine.storage.event_log import follow_events

        path = self._file(name, EVENTS)
        try:
            yield from follow_events(path, position)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def process(self, name: str) -> str:
        """The process that writes to that run now, as "pid 123 on host"; "" without one. Raises ConfigError."""
        path = self.resolve(name)
        return writing_process(path.parent if path.is_file() else path) or ""

    def configuration(self, name: str) -> str:
        """The effective configuration that the run was started with, as YAML. Raises ConfigError."""
        path = self._file(name, CONFIGURATION)
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: is no text ({error.reason} at byte {error.start})") from error

    def survey(self, name: str) -> Removal:
        """What `remove` would remove. Raises RlTuiError where it would refuse to."""
        from rl_tui.engine.storage.removal import survey

        return survey(self.results_dir / name)

    def remove(self, name: str) -> None:
        """That run is gone with its folder. Raises RlTuiError; only an idle run of rl-tui can be removed."""
        from rl_tui.engine.storage.removal import remove

        remove(self.results_dir / name)

    def resuming(self, name: str) -> tuple[str, ...]:
        """The command line of rl-tui that goes on with that run. Raises RlTuiError where it would refuse to."""
        from rl_tui.engine.storage.run_folder import RunFolder

        configuration = self._file(name, CONFIGURATION)
        RunFolder(self.results_dir, name).require_startable(resume=True, force=False)
        return (str(configuration), "--run-id", name, "--results-dir", str(self.results_dir), "--resume")

    def evaluating(self, name: str) -> tuple[str, ...]:
        """The command line of rl-tui that evaluates that run. Raises RlTuiError where there is no such run."""
        return ("evaluate", str(self.resolve(name)))

    def _file(self, name: str, file: str) -> Path:
        path = self.resolve(name)
        if path.is_file():
            path = path if file == EVENTS else path.parent / file
        else:
            path /= file
        if not path.is_file():  # a pipe of that name would hold up its reader
            raise ConfigError(f"{path}: there is no such file")
        return path


def _heard_from(summary: RunSummary) -> float:
    """When the run last told something, or else when its folder changed."""
    if summary.last_event_at is not None:
        return summary.last_event_at
    try:
        return min(Path(summary.path).stat().st_mtime, time.time())
    except OSError:
        return 0.0
