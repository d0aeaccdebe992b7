"""A run that another process of this machine trains, as `rl_tui.start` would return it."""

from __future__ import annotations

import os
from pathlib import Path

from rl_tui.engine.api.run_handle import RunHandle
from rl_tui.engine.errors import AttachError, NotSupportedError, RlTuiError
from rl_tui.engine.process.vital_signs import this_process
from rl_tui.engine.remote.client import attach_to
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.session.states import BAD_ENDS
from rl_tui.engine.storage.archive import Archive

RESULTS = Path("results")


def attach(run: str | os.PathLike[str]) -> RunHandle:
    """Watch and control a run that another process trains, from its state as of now. The run does not wait for this
    program, and goes on when it ends.

    run: its folder, or its id for one in `results`. Raises ConfigError where there is no such run, AttachError where no
    process trains it, or where that cannot be reached.
    """
    path = Archive(RESULTS).resolve(os.fspath(run))
    return AttachedRun(path if path.is_dir() else path.parent)


class AttachedRun(RunHandle):
    """`events` begin with what comes after attaching; `view` has what was before."""

    def __init__(self, run: Path) -> None:
        """Raises AttachError."""
        self._remote = attach_to(run, name=this_process())
        super().__init__(self._remote)
        spawn("attached", self._remote.main, self._remote.bus, self._remote.crashed)
        self._remote.whole.wait()
        spawn("view", lambda: self._live.main(self._remote.wait), self._remote.bus, lambda _: None)

    def close(self) -> None:
        """Leave the run, which trains on."""
        self._remote.close()

    @property
    def path(self) -> Path:
        """The run's folder."""
        return Path(self._remote.greeting.path)

    @property
    def exit_code(self) -> int | None:
        """What its process ends with; None while the run goes on, and where its process has not said so."""
        with self._live.reading() as view:
            return view.exit_code if view.is_over else None

    @property
    def error(self) -> RlTuiError | None:
        """What ended the run badly, in words; None while it goes on, and where nothing did."""
        with self._live.reading() as view:
            if view.state == "interrupted":
                return AttachError(f"{self.path}: {view.reason}")
            return RlTuiError(view.reason) if view.state in BAD_ENDS else None

    @property
    def stopped_by(self) -> Exception | None:
        """Raises NotSupportedError: hooks, and what they raise, are in the run's own process."""
        raise NotSupportedError("stopped_by: only the process that has started the run knows what its hooks raise")
