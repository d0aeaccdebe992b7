"""Environments of worker processes that fail in some of their lives, named by tests as `tests.sampling.mortal:NAME`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.failures import InstanceStopped
from rl_tui.engine.specs import Actions, Steps
from tests.sampling.worlds import Misbehaving

SECONDS_TO_MAKE = {"is_made_slowly": 1000.0, "is_made_in_a_second": 1.0}


def begin_life(folder: str) -> int:
    """How many lives were begun in that folder before this one."""
    for number in range(max(0, len(os.listdir(folder)) - 9), 10**6):  # all but a few files are lives
        try:
            (Path(folder) / f"life-{number}").open("x").close()
        except FileExistsError:
            continue
        return number
    raise AssertionError(folder)


class Mortal(Misbehaving):
    """A Misbehaving whose n-th life has the n-th fault, one of its methods or of those below; then it behaves, or all
    faults are repeated. Every reset writes its seed to `folder`/seeds.
    """

    def __init__(
        self, folder: str, faults: Sequence[str], at: int = 3, num_agents: int = 2, repeats: bool = False
    ) -> None:
        self.folder = Path(folder)
        life = begin_life(folder)
        fault = faults[life % len(faults)] if life < len(faults) or repeats else "behaves"
        if fault == "cannot_be_made":
            raise ValueError("no wheels left")
        super().__init__(fault if hasattr(self, fault) else "behaves", at, num_agents)
        while fault == "is_made_when_asked" and not (self.folder / "asked").exists():
            time.sleep(0.01)
        if fault in SECONDS_TO_MAKE:
            time.sleep(SECONDS_TO_MAKE[fault])

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        with (self.folder / "seeds").open("a") as file:
            file.write(f"{seed}\n")
        return super().reset(seed)

    def closes_the_pipe(self, steps: Steps) -> None:
        for descriptor in range(3, 64):
            try:
                os.close(descriptor)
            except OSError:
                continue
        time.sleep(1000)

    def scribbles_on_the_pipe(self, steps: Steps) -> None:
        for descriptor in range(3, 64):
            try:
                if "pipe" in os.readlink(f"/proc/self/fd/{descriptor}"):
                    os.write(descriptor, b"\xff" * 64)
            except OSError:
                continue

    def dawdles(self, steps: Steps) -> None:
        (self.folder / "dawdles").touch()
        time.sleep(0.3)
        (self.folder / "has_dawdled").touch()

    def changes_its_shape(self, steps: Steps) -> None:
        self.shows_another_shape(steps)


class Stoppable(Line):
    """A Line that the user stops at its third step, and starts again by making the file `folder`/play."""

    def __init__(self, folder: str) -> None:
        super().__init__("Walker", 2)
        self._folder = Path(folder)
        self._count = 0
        self._notes: list[tuple[NoteLevel, str]] = [("info", "listening on port 5004")]
        self.awaits = ""

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        self.awaits = "press Play"
        while not (self._folder / "play").exists():
            time.sleep(0.01)
        self.awaits = ""
        return super().reset(seed)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._count == 3:
            (self._folder / "play").unlink()
            raise InstanceStopped("Play was stopped", None)
        return super().step(actions)

    def pop_notes(self) -> list[tuple[NoteLevel, str]]:
        """The one note, once."""
        notes, self._notes = self._notes, []
        return notes
