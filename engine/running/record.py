"""What a run's folder says about the run itself: its configuration, its start, and the list of its checkpoints."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from rl_tui.engine.config.loading import effective_yaml
from rl_tui.engine.config.origins import FILE
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import editor_note, few_updates_note, find_unused, list_warnings, preset_note
from rl_tui.engine.errors import CheckpointError, ConfigError
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.saver import Files, Listed
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import OWN_FILE, RunStarted
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.training_status import (
    BehaviorStatus,
    read_training_status,
    status_of,
    write_training_status,
)
from rl_tui.engine.version import VERSION


class RunRecord:
    """Used by the thread that owns the run, and `write_status` by the saver's."""

    def __init__(self, config: RunConfig, folder: RunFolder, bus: EventBus):
        """folder: open, so that its name is final. config: replaced where the run chooses a setting."""
        self.config = config
        self._folder = folder
        self._bus = bus
        self.lessons: Lessons | None = None  # whose numbers are listed, too
        self._earlier: Mapping[str, BehaviorStatus] = {}  # of a resumed run: some may not have appeared yet

    @property
    def named_config(self) -> RunConfig:
        """With the run's id, which may have been counted."""
        settings = self.config.checkpoint_settings.model_copy(update={"run_id": self._folder.run_id})
        return self.config.model_copy(update={"checkpoint_settings": settings})

    def name_behaviors(self, names: Iterable[str]) -> None:
        """The environment has these: their settings are their own from now on, wherever they came from."""
        behaviors = {name: settings_of(self.config, name) for name in names}
        self.config = self.config.model_copy(update={"behaviors": {**self.config.behaviors, **behaviors}})

    def write_configuration(self) -> None:
        """Write configuration.yaml. Raises ConfigError."""
        try:
            write_atomically(self._folder.configuration, effective_yaml(self.named_config).encode())
        except OSError as error:
            raise ConfigError(f"{self._folder.configuration}: cannot be written ({error.strerror})") from error

    def announce(self, seed: int, device: str) -> None:
        """Publish that the run has started, and the warnings about its configuration. device: torch's name, or auto."""
        resumed = self._folder.is_resumed
        versions = {"rl-tui": VERSION, "python": platform.python_version(), "torch": torch.__version__}
        self._bus.publish(
            RunStarted(
                run_id=self._folder.run_id,
                path=str(self._folder.path),
                seed=seed,
                device=device,
                resumed=resumed,
                versions=versions | {"numpy": np.__version__},
                sources=self._sources(),
            )
        )
        for note in filter(None, (note(self.config) for note in (editor_note, preset_note, few_updates_note))):
            self._bus.log("info", "run", note)
        for line in (*list_warnings(self.config), *find_unused(self.config)):
            self._bus.log("warning", "run", line)
        if resumed and self._folder.training_status.exists():
            status = read_training_status(self._folder.training_status, torch.__version__)
            self._earlier = status.behaviors
            if status.warning:
                self._bus.log("warning", "run", status.warning)

    def _sources(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """The settings that were set, by where."""
        source = self.config.source
        is_own = source.file != "" and Path(source.file).resolve() == self._folder.configuration.resolve()
        found: dict[str, list[tuple[str, ...]]] = {}
        for path, origin in source.origins.items():
            found.setdefault(OWN_FILE if is_own and origin == FILE else origin, []).append(path)
        return {origin: tuple(paths) for origin, paths in found.items()}

    def update_status(self, files: Mapping[str, Files], has_ended: bool = False) -> None:
        """The list of checkpoints is up to date, or a warning says why not. A run that only plays has none."""
        if self.config.checkpoint_settings.inference:
            return
        try:
            self.write_status(files, lambda name: files[name].store.list(), has_ended)
        except (CheckpointError, OSError) as error:
            self._bus.log("warning", "run", f"the list of checkpoints is not up to date: {error}")

    def write_status(
        self,
        files: Mapping[str, Files],
        listed: Listed,
        has_ended: bool = False,
    ) -> None:
        """Write training_status.json. listed: the checkpoints of a behavior. Raises CheckpointError, OSError."""
        statuses = {
            name: status_of(own.folder, listed(name), has_ended, settings_of(self.config, name).max_steps)
            for name, own in dict(files).items()
        }
        status = {**self._earlier, **statuses}
        numbers = {} if self.lessons is None else self.lessons.numbers
        write_training_status(self._folder.training_status, status, torch.__version__, numbers)
