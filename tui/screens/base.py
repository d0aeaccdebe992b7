"""What every screen of a run has: the state above, words and keys below, and the keys that work everywhere."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual.app import App, ComposeResult
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import CheckpointSaved, RollBack
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.painting import Patch, spots
from rl_tui.tui.keys.keymap import Place, bindings
from rl_tui.tui.panes.base import BEAT, DUE, Condition, Frame, Pane
from rl_tui.tui.panes.checkpoint_list import good_checkpoint
from rl_tui.tui.panes.compact import TooSmallPane
from rl_tui.tui.panes.filter_line import FilterLine, filtering
from rl_tui.tui.panes.keys_line import KeysLine
from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.panes.outcome import OutcomeLine
from rl_tui.tui.panes.state_line import StateLine
from rl_tui.tui.runs.browsing import NO_RUN, is_of_no_run
from rl_tui.tui.runs.seeking import Seek
from rl_tui.tui.screens.context import Context
from rl_tui.tui.terminal.sequences import copy_text
from rl_tui.tui.textual_private import take_size_classes

if TYPE_CHECKING:
    from rl_tui.tui.charts.figure import Figure
    from rl_tui.tui.screens.help import HelpScreen

SCREENS: Mapping[str, str] = {  # imported when first opened
    "detail": "rl_tui.tui.screens.detail:DetailScreen",
    "chart": "rl_tui.tui.screens.chart:ChartScreen",
    "grid": "rl_tui.tui.screens.grid:GridScreen",
    "checkpoints": "rl_tui.tui.screens.checkpoints:CheckpointsScreen",
    "hyperparameters": "rl_tui.tui.screens.hyperparameters:HyperparametersScreen",
    "lessons": "rl_tui.tui.screens.lessons:LessonsScreen",
    "devices": "rl_tui.tui.screens.devices:DevicesScreen",
    "workers": "rl_tui.tui.screens.workers:WorkersScreen",
    "ranks": "rl_tui.tui.screens.ranks:RanksScreen",
    "league": "rl_tui.tui.screens.league:LeagueScreen",
    "watch": "rl_tui.tui.screens.watch:WatchScreen",
    "log": "rl_tui.tui.screens.log:LogScreen",
    "warnings": "rl_tui.tui.screens.log:WarningsScreen",
    "configuration": "rl_tui.tui.screens.configuration:ConfigurationScreen",
    "runs": "rl_tui.tui.screens.runs:RunsScreen",
}

REPLAYING = ("speed", "seek", "seek_share", "seek_to")  # actions on a replay
HELP = "help"  # the name of the one screen that is kept

T = TypeVar("T")


class RunScreen(Screen[None]):
    """Owns its panes. A subclass says which stand in its middle, and in `places` whose keys it has besides "run"'s.

    name: the word in SCREENS under which it is opened.
    """

    BINDINGS = bindings("run", "replay")
    places: tuple[Place, ...] = ()

    def __init__(self, context: Context, name: str = "overview") -> None:
        super().__init__(name=name)
        self.context = context
        self.was_drawn = False  # at least once
        self.moves = False  # its panes have other places in the next picture
        self._had_patches = False
        self._panes: list[Pane] = []

    def body(self) -> Iterable[Widget]:
        """What stands between the state line and the words at the bottom."""
        return ()

    def compose(self) -> ComposeResult:
        """The state line, the body, the message line, the line of keys."""
        take_size_classes(self)
        yield StateLine()
        yield from self.body()
        yield TooSmallPane()
        yield OutcomeLine()
        yield KeysLine()

    def on_mount(self) -> None:
        """The panes stay the same from now on."""
        self._panes = list(self.query(Pane))

    @property
    def is_laid_out(self) -> bool:
        """Whether Textual has drawn the panes, in the places that they keep."""
        return self._had_patches and not self.moves

    @property
    def panes(self) -> Sequence[Pane]:
        """What is drawn."""
        return self._panes

    @property
    def pane(self) -> Pane | None:
        """The focused pane, also while its filter is typed."""
        return filtering(self) or (self.focused if isinstance(self.focused, Pane) else None)

    @property
    def places_now(self) -> tuple[Place, ...]:
        """The places whose keys work now, the nearest first."""
        replay: tuple[Place, ...] = ("replay",) if self.context.player is not None else ()
        return (*replay, *(self.pane.places if self.pane else ()), *self.places, "run")

    @property
    def key_owners(self) -> Sequence[tuple[DOMNode, tuple[Place, ...]]]:
        """Who acts on keys, nearest first, and on those of which places."""
        pane = [(self.pane, self.pane.places)] if self.pane is not None else []
        return [*pane, (self, self.places_now), (self.app, ("anywhere",))]

    @property
    def list_pane(self) -> ListPane | None:
        """The list that keys act upon: the focused one, or outside the overview the first."""
        if isinstance(self.pane, ListPane) or self.name == "overview":
            return self.pane if isinstance(self.pane, ListPane) else None
        return next((pane for pane in self._panes if isinstance(pane, ListPane)), None)

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring every pane up to `frame` and return what is to be painted."""
        pane = self.pane
        places: tuple[Place, ...] = ("filtering",) if filtering(self) else self.places_now
        frame = replace(frame, places=places, focus=pane.topic if pane else "")
        where = spots(self)
        checked = [(pane, pane.check(frame, where.get(pane))) for pane in self._panes]
        is_beat = any(pane.seconds == BEAT and condition in DUE for pane, condition in checked)
        due = [pane for pane, condition in checked if must_redraw(pane, condition, is_beat)]
        if is_beat:
            due += most_overdue([pane for pane, condition in checked if condition == "old" and pane not in due])
        patches = [patch for pane in due for patch in pane.redraw()]
        self._had_patches |= bool(patches)
        return patches

    def on_descendant_focus(self) -> None:
        """Another pane has the keys: the bottom line shows them."""
        self.context.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A replay's keys work in a replay alone."""
        return self.context.player is not None or action not in REPLAYING

    def action_redraw(self) -> None:
        """Draw, now."""
        self.context.redraw()

    def say(self, words: str) -> None:
        """Show the user a message, now."""
        self.context.status.say(words, "text")
        self.context.redraw()

    def open_dialog(self, dialog: Screen[T], then: Callable[[T], None] | None = None) -> None:
        """Show it; `then` takes its answer, unless there is none."""

        def answered(answer: T | None) -> None:
            if answer is not None and then is not None:
                then(answer)
            self.context.redraw()

        self.app.push_screen(dialog, answered)
        dialog.call_after_refresh(self.context.redraw)

    def action_select(self, number: int) -> None:
        """Select the behavior with that number, if there is one."""
        if number > len(self.context.view.behaviors):
            self.say(f"there is no behavior {number}")
            return
        self.context.state.selected = number - 1
        self.context.redraw()

    def action_move(self, by: int) -> None:
        """Select a neighbor; the ends are ends."""
        last = max(0, len(self.context.view.behaviors) - 1)
        self.context.state.selected = max(0, min(last, self.context.state.selected + by))
        self.context.redraw()

    def action_pane(self, by: int) -> None:
        """Give the keys to the next pane, or to the one before."""
        before = self.focused
        after = self.focus_next() if by > 0 else self.focus_previous()
        if after is before:
            self.say("this screen has no other pane")

    def action_filter(self) -> None:
        """Let the user type the filter of the list."""
        pane = self.list_pane
        if pane is None or not pane.topic:
            self.say("filter: no list has the focus; tab moves between panes")
        else:
            line = FilterLine(pane, self.context.state, self.context.redraw)
            self.mount(line, before=self.query_one(OutcomeLine))

    def action_copy(self) -> None:
        """Copy what the cursor of the list stands on."""
        entry = self.list_pane.chosen() if self.list_pane is not None else None
        if entry is None:
            self.say("copy: nothing is selected")
        else:
            self.copy(entry.text)

    def copy(self, text: str) -> None:
        """Put the text on the clipboard of the user's terminal, and say so."""
        self.say(copy_text(self.app, text))

    def action_theme(self, name: str = "") -> None:
        """Show other colors: those of that name, or the next ones."""
        self.say(f"theme {self.context.choose_theme(name)}")

    def figures(self) -> Sequence[Figure]:
        """What the visible charts show."""
        return ()

    def action_screenshot(self) -> None:
        """Write the screen as a picture and as text into the run's folder, and what its charts show as a table."""
        self.run_worker(self._screenshot())

    async def _screenshot(self) -> None:
        from rl_tui.tui.screens.screenshot import save_screenshot

        run = self.context.view.run
        try:
            where = await save_screenshot(self.app, Path(run.path) if run is not None else None, self.figures())
        except OSError as error:
            self.context.status.say(f"screenshot: failed, {error}", "bad")
            self.context.redraw()
        else:
            self.say(f"screenshot: {where}")

    def action_help(self) -> None:
        """The keys of the focused pane, and all others."""
        page = prepare_help(self.app, self.context)
        page.show_keys(self.name or "", self.pane, self.places_now)
        self.open_dialog(page)

    def action_palette(self) -> None:
        """Every command by name."""
        from rl_tui.tui.screens.palette import Palette, offers

        self.app.push_screen(Palette(lambda: offers(self.context, self.key_owners)))

    def action_note(self) -> None:
        """Ask for a note, and write it into the run."""
        from rl_tui.tui.screens.prompt import note_prompt

        controls = self.context.controls
        if not controls.may("note"):
            self.context.redraw()
            return
        dialog = note_prompt(controls.selected)
        self.open_dialog(dialog, lambda text: controls.note(text, about_run=dialog.subject > 0))

    def action_pause(self, everything: bool) -> None:
        """Pause what trains, or let go on what is paused; of a replay all of it."""
        if self.context.player is not None:
            self.say(f"replay: {self.context.player.pause()}")
            return
        self.context.controls.pause(everything)
        self.context.redraw()

    def action_checkpoint(self, everything: bool) -> None:
        """Save a checkpoint."""
        self.context.controls.checkpoint(everything)
        self.context.redraw()

    def action_export(self, everything: bool) -> None:
        """Export the policy."""
        self.context.controls.export(everything)
        self.context.redraw()

    def action_roll_back(self) -> None:
        """Ask, and then let a behavior that diverged go on from its newest good checkpoint."""
        behavior = self.context.controls.selected
        good = good_checkpoint(behavior) if behavior is not None else None
        if behavior is not None and not self.context.controls.may(f"roll back {safe_text(behavior.name)}"):
            self.context.redraw()
        elif behavior is None or good is None:
            self.say("roll back: the behavior has not diverged; k lists its checkpoints, R there rolls back to one")
        else:
            self.roll_back(behavior, *good)

    def roll_back(self, behavior: BehaviorView, at: float, saved: CheckpointSaved) -> None:
        """Ask, and then go back to that checkpoint, saved at time `at`; or say why that cannot be."""
        from rl_tui.tui.screens.questions import roll_back_dialog

        controls = self.context.controls
        if not controls.may(f"roll back {safe_text(behavior.name)}"):
            self.context.redraw()
            return
        command = RollBack(behavior.name, saved.path)
        dialog = roll_back_dialog(behavior, at, saved, now=self.context.view.now)
        self.open_dialog(dialog, lambda is_yes: controls.request(command) if is_yes else None)

    def action_take_control(self) -> None:
        """Ask, and then control the run in the place of another screen."""
        from rl_tui.tui.screens.questions import control_dialog

        controls = self.context.controls
        if controls.never:
            self.say(f"control: not possible, {controls.never}")
        elif not controls.other:
            self.say("control: this screen controls the run")
        else:
            self.open_dialog(
                control_dialog(controls.other), lambda is_yes: self.context.take_control() if is_yes else None
            )

    def action_freeze(self) -> None:
        """Hold the picture still, or let it follow."""
        self.context.freeze()

    def action_speed(self, by: int) -> None:
        """Replay faster or slower."""
        if self.context.player is not None:
            self.context.status.say(f"replay: {self.context.player.change_speed(by)}", "text")
            self.context.redraw()

    def action_seek(self, by: float) -> None:
        """Go back or forward by that share of the recording."""
        self.seek(Seek(by=by), f"{abs(by):.0%} {'back' if by < 0 else 'forward'}")

    def action_seek_share(self, share: float) -> None:
        """Go to that share of the recording."""
        self.seek(Seek(share=float(share)), "to the end" if share else "from the start")

    def action_seek_to(self) -> None:
        """Ask where to go."""
        from rl_tui.tui.screens.prompt import seek_prompt, typed_seek

        behavior = self.context.controls.selected
        self.open_dialog(
            seek_prompt(behavior),
            lambda text: self.seek(typed_seek(text, behavior.name if behavior is not None else ""), f"to {text}"),
        )

    def seek(self, seek: Seek, words: str) -> None:
        """Let the replay go there, and look for its picture."""
        if self.context.player is not None:
            self.context.player.seek(seek)
            self.say(f"replay: {words}")

    def action_open_screen(self, name: str) -> None:
        """Show that screen; its own key leads back."""
        if name == self.name:
            self.action_back()
            return
        if is_of_no_run(self.context.view) and name != "runs":
            self.say(f"{name}: {NO_RUN}")
            return
        module, _, class_name = SCREENS[name].partition(":")
        kind = cast(type[RunScreen], getattr(importlib.import_module(module), class_name))
        screen = kind(self.context, name)
        if self.name == "overview":
            self.app.push_screen(screen)
        else:
            self.app.switch_screen(screen)
        screen.call_after_refresh(self.context.redraw)

    def action_back(self) -> None:
        """One step back: the list's filter goes, or the screen; the overview stays."""
        if self.list_pane is not None and self.context.state.filters.pop(self.list_pane.topic, ""):
            self.context.redraw()
        elif self.name == "overview":
            self.say("esc goes back, never out; q asks how to leave")
        else:
            self.app.pop_screen()
            self.app.call_after_refresh(self.context.redraw)

    async def action_leave(self) -> None:
        """Ask how to leave."""
        await self.app.run_action("app.leave")


def prepare_help(app: App[Any], context: Context) -> HelpScreen:
    """The one help screen of the app, made at its first use."""
    from rl_tui.tui.screens.help import HelpScreen  # imported when first opened, as those in SCREENS

    if not app.is_screen_installed(HELP):
        app.install_screen(HelpScreen(context), HELP)
    return app.get_screen(HELP, HelpScreen)


def must_redraw(pane: Pane, condition: Condition, is_beat: bool) -> bool:
    """Whether the pane is drawn in this picture: on a beat all that show figures, so that no two show different steps,
    while slower ones that are only old wait for the next picture, so that none costs too much."""
    if condition == "hidden" or not is_beat or pane.seconds in (0, math.inf):
        return condition in DUE
    return pane.seconds == BEAT or condition == "changed"


def most_overdue(waiting: Sequence[Pane]) -> list[Pane]:
    """Of the slower panes that a beat has put off the one that has waited longest, where that is a turn of its own:
    if pictures are a second apart, each has a beat, and there is none in between."""
    late = [pane for pane in waiting if pane.waited >= pane.seconds]
    return [max(late, key=lambda pane: pane.waited)] if late else []
