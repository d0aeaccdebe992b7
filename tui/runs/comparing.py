"""Runs that are read from their events, to draw their curves together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import RunStarted
from rl_tui.engine.session.reading import in_chunks
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.runs.configurations import Settings, read_settings
from rl_tui.tui.runs.groups import SEED, key_of_settings
from rl_tui.tui.runs.rows import shared_name
from rl_tui.tui.runs.sources import Runs


class RunChoice(NamedTuple):
    """One run, or a group of several drawn as one curve, with its name."""

    name: str
    run_ids: tuple[str, ...]


@dataclass(slots=True)
class ComparedRun:
    """One of the runs. view: None until all of it was read; problem: why it could not be read, else "".

    is_own: the run on this screen, which is shown as it is and not read. group: the same for runs of one configuration,
    "" while it is not known. Changed by the thread that reads it, which sets the view when it is complete.
    """

    run_id: str
    is_own: bool = False
    view: RunView | None = None
    settings: Settings = field(default_factory=dict)
    group: str = ""
    problem: str = ""
    num_read: int = 0  # events

    def behaviors(self, own: RunView) -> list[BehaviorView]:
        """The behaviors that are known. own: the view of the run on this screen."""
        view = own if self.is_own else self.view
        return [] if view is None else list(view.behaviors.values())

    @property
    def is_read(self) -> bool:
        """Whether it was read, is on this screen, or cannot be read."""
        return self.view is not None or self.is_own or bool(self.problem)

    def started_at(self, own: RunView) -> float:
        """The wall time of its start, 0 while that is not known."""
        view = own if self.is_own else self.view
        return (view.started_at or 0.0) if view is not None else 0.0


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """A run or a group of runs, which has one color. number: of that color, from 0."""

    name: str
    runs: tuple[ComparedRun, ...]
    number: int

    @property
    def is_group(self) -> bool:
        """Whether it is more than one run."""
        return len(self.runs) > 1

    @property
    def problem(self) -> str:
        """Why not all of it could be read, else ""."""
        return "; ".join(run.problem for run in self.runs if run.problem)

    @property
    def num_read(self) -> int:
        """Events."""
        return sum(run.num_read for run in self.runs)

    @property
    def is_read(self) -> bool:
        """Whether all of its runs were read."""
        return all(run.is_read for run in self.runs)


class Comparison:
    """Used in the app's loop; reads in other threads, one run after the other. `close` ends that soon."""

    def __init__(self, chosen: Sequence[RunChoice], own_id: str) -> None:
        """own_id: of the run on this screen; "" where it is not known."""
        ids = dict.fromkeys(run_id for each in chosen for run_id in each.run_ids)
        self.runs = {run_id: ComparedRun(run_id, is_own=run_id == own_id) for run_id in ids}
        self._chosen = [
            ComparedItem(each.name, tuple(self.runs[run_id] for run_id in each.run_ids), number)
            for number, each in enumerate(chosen)
        ]
        self._is_rearranged = False
        self._is_closed = False

    @property
    def items(self) -> Sequence[ComparedItem]:
        """What is drawn: as it was chosen, or else groups as their runs and runs as their groups."""
        return self._other() if self._is_rearranged else self._chosen

    def rearrange(self) -> bool:
        """Groups are drawn as their runs, runs as their groups; and back. False where that changes nothing."""
        if not self._is_rearranged and not any(item.is_group for item in [*self._chosen, *self._other()]):
            return False
        self._is_rearranged = not self._is_rearranged
        return True

    def _other(self) -> list[ComparedItem]:
        """The runs of chosen groups one by one; of chosen runs those of one configuration together.

        A group has the color of the first of its runs.
        """
        grouped: dict[str, list[tuple[int, ComparedRun]]] = {}
        has_groups = any(item.is_group for item in self._chosen)
        for number, run in enumerate(self.runs.values()):
            key = run.run_id if has_groups or not run.group else run.group
            grouped.setdefault(key, []).append((number, run))
        return [
            ComparedItem(shared_name([run.run_id for _, run in found]), tuple(run for _, run in found), found[0][0])
            for found in grouped.values()
        ]

    @property
    def has_groups(self) -> bool:
        """Whether a mean of several runs is drawn."""
        return any(item.is_group for item in self.items)

    async def read(self, runs: Runs) -> None:
        """Read the view and the settings of every run."""
        for run in self.runs.values():
            await asyncio.to_thread(self._read, run, runs)

    def close(self) -> None:
        """Stop reading soon."""
        self._is_closed = True

    def _read(self, run: ComparedRun, runs: Runs) -> None:
        try:
            run.settings = read_settings(runs.configuration(run.run_id))
            run.group = key_of_settings(run.settings)
        except (RlTuiError, ValueError):
            run.settings = {}  # the curve needs none
        if run.is_own:
            return
        view = RunView()
        try:
            for envelope in in_chunks(runs.events(run.run_id)):
                if isinstance(envelope.event, RunStarted) and run.settings.get(SEED) == "-1":
                    run.settings = {**run.settings, SEED: str(envelope.event.seed)}  # the first that was drawn
                view.apply(envelope)
                run.num_read += 1
                if self._is_closed:
                    return
        except RlTuiError as error:
            run.problem = safe_text(str(error))
        if view.behaviors or not run.problem:  # what was read before the error can be shown
            run.view = view
