"""Every key of the screen in one table: bindings, bottom line, help and palette are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from textual.binding import Binding, BindingType

Place: TypeAlias = Literal[
    "anywhere",  # the app: also inside dialogs
    "run",  # every screen of the run
    "overview", "detail", "chart", "checkpoints", "hyperparameters", "lessons", "devices", "workers", "ranks", "league",
    "log", "warnings", "configuration", "runs", "comparison", "grid", "watch",  # single screens
    "list",  # whichever list has the focus
    "replay",  # every screen of a recorded run
    "leaving", "confirming", "evaluating", "asking", "help",  # dialogs
    "filtering",  # the line in which a filter is typed
    "picking",  # the dialog in which metrics are picked
    "playing",  # the screen of a person who plays: see play_keys.py
]  # fmt: skip
Group: TypeAlias = Literal["View", "Chart", "Training", "Screens", "List", "Watch", "Replay", "Leave", "Dialog", "Play"]
WITH_CHART: tuple[Place, ...] = ("overview", "detail", "chart", "grid", "comparison")
WITH_PINS: tuple[Place, ...] = ("overview", "detail", "chart", "grid")
WITH_GRID: tuple[Place, ...] = ("overview", "detail", "grid")
LISTS: tuple[Place, ...] = (
    "checkpoints", "hyperparameters", "lessons", "devices", "workers", "ranks", "league", "log", "warnings",
    "configuration", "runs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """One command and the keys that give it.

    id: its name in the user's keys.yaml and in the palette; keys: Textual's names; action: may hold {n}, the number
    on the key; shown: how a reader sees the keys. footer_rank: None keeps it out of the bottom line; the highest gives
    way first; footer_places: the only ones in whose bottom line it stands. changes: refused with --readonly.
    """

    id: str
    keys: tuple[str, ...]
    action: str
    shown: str
    label: str
    explained: str
    places: tuple[Place, ...]
    group: Group
    footer_rank: int | None = None
    needs_run: bool = False  # useless once the run is over
    needs_several: bool = False  # useless with a single behavior
    changes: bool = False
    footer_places: tuple[Place, ...] = ()


def _key(
    id: str, keys: str, action: str, label: str, explained: str, places: Place | tuple[Place, ...], group: Group,
    rank: int | None = None, *, shown: str = "", needs_run: bool = False, needs_several: bool = False,
    changes: bool = False, footer: tuple[Place, ...] = (),
) -> Key:  # fmt: skip
    """keys: Textual's names, separated by blanks."""
    names = tuple(keys.split())
    where: tuple[Place, ...] = (places,) if isinstance(places, str) else places
    return Key(
        id, names, action, shown or shown_keys(names), label, explained, where, group, rank,
        needs_run, needs_several, changes, footer,
    )  # fmt: skip


SHOWN = {
    "question_mark": "?", "slash": "/", "plus": "+", "minus": "-", "equals_sign": "=", "escape": "esc",
    "less_than_sign": "<", "greater_than_sign": ">", "left_square_bracket": "[", "right_square_bracket": "]",
    "pageup": "pgup", "pagedown": "pgdn", "exclamation_mark": "!", "semicolon": ";", "comma": ",", "full_stop": ".",
    "number_sign": "#", "left_parenthesis": "(", "right_parenthesis": ")", "percent_sign": "%",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "asterisk": "*", "ampersand": "&",
}  # fmt: skip


def shown_keys(names: Iterable[str]) -> str:
    """How a reader sees the keys: those that only repeat another spelling are left out."""
    shown = [SHOWN.get(name, name) for name in names]
    return ", ".join(name for name in shown if not (name.startswith("shift+") and name[6:].upper() in shown))


KEYMAP: tuple[Key, ...] = (
    _key("select", "1 2 3 4 5 6 7 8 9", "select({n})", "select", "select the behavior with that number", "run", "View",
         20, shown="1-9", needs_several=True),
    _key("previous", "up", "move(-1)", "up", "select the behavior above", "run", "View"),
    _key("next", "down", "move(1)", "down", "select the behavior below", "run", "View"),
    _key("open", "enter", "open", "open", "open what the focused pane shows", ("overview", *LISTS), "View", 6),
    _key("pane", "tab", "pane(1)", "pane", "go to the next pane", "run", "View", 19),
    _key("pane-before", "shift+tab", "pane(-1)", "previous pane", "go to the previous pane", "run", "View"),
    _key("filter", "slash", "filter", "filter", "filter the focused list by a regular expression; esc shows all again",
         ("overview", *LISTS, "help"), "View", 14),
    _key("freeze", "space", "freeze", "freeze view",
         "freeze or unfreeze the view, or the play that is watched; training continues",
         "run", "View", 9),
    _key("copy", "y", "copy", "copy",
         "copy the selected line, the value below the crosshair, or why a behavior failed",
         (*WITH_CHART, *LISTS), "View", 15, footer=(*LISTS, "chart", "grid", "comparison")),
    _key("all-behaviors", "b", "all_behaviors", "behaviors",
         "every behavior in the chart or list, or only the selected one", (*WITH_CHART, "log", "warnings"), "View", 6,
         needs_several=True, footer=("log", "warnings")),
    _key("screenshot", "o", "screenshot", "screenshot",
         "write the screen as SVG and text, and its curves as CSV, into the run's folder", "run", "View", 22),
    _key("theme", "T shift+t", "theme", "theme", "show other colors; the palette has them by name", "run", "View"),
    _key("help", "question_mark", "help", "help", "the keys that have a use now; again: all keys", "run", "View", 1),
    _key("repaint", "ctrl+l", "repaint", "repaint", "write the whole screen again, after another program wrote there",
         "anywhere", "View"),
    _key("palette", "ctrl+p", "palette", "palette", "every command by name", "run", "View", 17),

    _key("pause", "p", "pause(False)", "pause", "pause or resume the selected behavior, or a replay",
         "run", "Training", 3, needs_run=True, changes=True),
    _key("pause-all", "P shift+p", "pause(True)", "pause all", "pause or resume every behavior",
         "run", "Training", 23, needs_run=True, needs_several=True, changes=True),
    _key("checkpoint", "c", "checkpoint(False)", "checkpoint", "save a checkpoint of the selected behavior", "run",
         "Training", 4, needs_run=True, changes=True),
    _key("checkpoint-all", "C shift+c", "checkpoint(True)", "checkpoint all", "save a checkpoint of every behavior",
         "run", "Training", 25, needs_run=True, needs_several=True, changes=True),
    _key("export", "e", "export(False)", "export", "export the selected behavior's policy as ONNX", "run", "Training",
         5, needs_run=True, changes=True),
    _key("export-all", "E shift+e", "export(True)", "export all", "export every policy as ONNX", "run", "Training", 24,
         needs_run=True, needs_several=True, changes=True),
    _key("note", "a", "note", "note", "add a note to the run; charts mark its step", "run", "Training", 26,
         needs_run=True, changes=True),
    _key("roll-back", "R shift+r", "roll_back", "roll back",
         "roll back to the selected checkpoint, or a diverged behavior to its newest good one; asks first",
         ("overview", "detail", "checkpoints"), "Training", 5, needs_run=True, changes=True, footer=("checkpoints",)),
    _key("undo", "z", "undo", "undo", "undo the newest change of a hyperparameter", "hyperparameters", "Training",
         5, needs_run=True, changes=True),
    _key("lesson-next", "right_curly_bracket", "change_lesson(1)", "next lesson",
         "change the selected parameter to its next lesson; asks first", "lessons", "Training", 4,
         needs_run=True, changes=True),
    _key("lesson-before", "left_curly_bracket", "change_lesson(-1)", "lesson before",
         "change the selected parameter to the lesson before; asks first", "lessons", "Training", 5, needs_run=True,
         changes=True),

    _key("metric", "m", "metric(1)", "metric", "draw the next metric", WITH_CHART, "Chart", 8),
    _key("metrics", "M shift+m", "pick_metrics", "choose metrics", "choose what is drawn, several at once, by name",
         WITH_CHART, "Chart"),
    _key("pin", "i", "pin", "pin", "pin the chart's metrics to the chart grid, or unpin them", WITH_PINS,
         "Chart", 17, footer=("grid",)),
    _key("grid-next", "n", "grid_page(1)", "next page", "the next page of the chart grid", WITH_GRID, "Chart", 9,
         footer=("grid",)),
    _key("grid-previous", "N shift+n", "grid_page(-1)", "previous page", "the previous page of the chart grid",
         WITH_GRID, "Chart"),
    _key("zoom-in", "plus equals_sign", "zoom(2)", "zoom in", "half as much of the x axis", WITH_CHART, "Chart",
         shown="+"),
    _key("zoom-out", "minus", "zoom(0.5)", "zoom out", "twice as much of the x axis", WITH_CHART, "Chart"),
    _key("zoom-reset", "0", "zoom_reset", "whole run", "the whole run", WITH_CHART, "Chart"),
    _key("pan-left", "shift+left left_square_bracket", "pan(-1)", "earlier steps", "move the chart to earlier steps",
         WITH_CHART, "Chart", shown="shift+left, ["),
    _key("pan-right", "shift+right right_square_bracket", "pan(1)", "later steps", "move the chart to later steps",
         WITH_CHART, "Chart", shown="shift+right, ]"),
    _key("live", "end", "live", "newest steps", "follow the newest steps again", WITH_CHART, "Chart"),
    _key("crosshair", "x", "crosshair", "crosshair", "a crosshair that shows values; arrows move it", WITH_CHART,
         "Chart", 18),
    _key("left", "left", "slide(-1)", "left", "move the crosshair left, or without one the chart", WITH_CHART,
         "Chart"),
    _key("right", "right", "slide(1)", "right", "move the crosshair right, or without one the chart",
         WITH_CHART, "Chart"),
    _key("smooth", "s", "smooth", "smooth", "smoothing 0, 0.3, 0.6, 0.9", WITH_CHART, "Chart", 16),
    _key("smooth-value", "S shift+s", "smooth_value", "type smoothing", "type the smoothing, 0 to 0.999", WITH_CHART,
         "Chart"),
    _key("log-y", "L shift+l", "log_y", "log y", "logarithmic y axis", WITH_CHART, "Chart"),
    _key("clip", "O shift+o", "clip", "outliers", "leave outliers out of the y axis, or show them",
         WITH_CHART, "Chart"),
    _key("y-range", "B shift+b", "y_range", "y range", 'type the range of the y axis: "low high", "0 ..", or "auto"',
         WITH_CHART, "Chart"),
    _key("x-axis", "t", "x_axis", "x axis", "x axis in steps, time of day, or time since the start", WITH_CHART,
         "Chart"),

    _key("full-chart", "f", "open_screen('chart')", "chart", "the chart on the whole screen", "run", "Screens", 10),
    _key("grid", "number_sign", "open_screen('grid')", "grid", "the chart and those of the pinned metrics", "run",
         "Screens", 32),
    _key("checkpoints", "k", "open_screen('checkpoints')", "checkpoints", "checkpoints: details, roll back, copy path",
         "run", "Screens", 11),
    _key("hyperparameters", "u", "open_screen('hyperparameters')", "tune",
         "hyperparameters: change them during training", "run", "Screens", 13),
    _key("lessons", "h", "open_screen('lessons')", "lessons",
         "environment parameters: lessons, samplers, how far to the next lesson", "run", "Screens", 8),
    _key("devices", "g", "open_screen('devices')", "devices", "devices and the processes on each GPU", "run",
         "Screens", 27),
    _key("workers", "W shift+w", "open_screen('workers')", "workers",
         "each worker process: its speed, how long it waits, restarts, memory", "run", "Screens", 33),
    _key("ranks", "ampersand", "open_screen('ranks')", "ranks",
         "each of several ranks: its device, its speed, how long it waits, which is slow", "run", "Screens", 33),
    _key("league", "H shift+h", "open_screen('league')", "league",
         "self-play: ratings and games of the policy and its snapshots", "run", "Screens", 9),
    _key("watch", "v", "open_screen('watch')", "watch", "watch the newest policy play, in an environment of its own",
         "run", "Screens", 7),
    _key("log", "l", "open_screen('log')", "log", "the log, by level and behavior", "run", "Screens", 12),
    _key("warnings", "w", "open_screen('warnings')", "warnings",
         "what looks wrong now and what to try, and the log's warnings", "run", "Screens", 28),
    _key("configuration", "Y shift+y", "open_screen('configuration')", "config",
         "the configuration, and what differs from another run", "run", "Screens", 29),
    _key("runs", "r", "open_screen('runs')", "runs", "all runs in this folder; compares up to six", "run",
         "Screens", 21),
    _key("take-control", "exclamation_mark", "take_control", "control",
         "control the run in the place of the screen that does; asks first", "run", "Training", 1),
    _key("back", "escape", "back", "back", "one step back; never quits", "run", "Screens", 2),

    _key("row-up", "up", "cursor(-1)", "up", "the line above", "list", "List"),
    _key("row-down", "down", "cursor(1)", "down", "the line below", "list", "List"),
    _key("page-up", "pageup", "page(-1)", "page up", "a page up", "list", "List"),
    _key("page-down", "pagedown", "page(1)", "page down", "a page down", "list", "List"),
    _key("first", "home", "cursor_end(-1)", "first", "the first line", "list", "List"),
    _key("last", "end", "cursor_end(1)", "last", "the last line", "list", "List"),
    _key("next-match", "f3", "match(1)", "next match", "the next match of the filter; wraps around",
         "list", "List"),
    _key("match-before", "f2", "match(-1)", "previous match", "the previous match of the filter", "list", "List"),
    _key("log-level", "semicolon", "level", "level", "lowest level shown: info, warning, error, debug",
         "log", "List", 5),
    _key("compare-config", "d", "other_run", "other run", "compare with the next run in this folder",
         "configuration", "List", 5),
    _key("changed-only", "D shift+d", "changed_only", "differences", "only what differs, or all",
         "configuration", "List", 6),
    _key("section-close", "left", "section(False)", "close section", "close the section, or the one around the line",
         "configuration", "List"),
    _key("section-open", "right", "section(True)", "open section", "open the section", "configuration", "List"),
    _key("mark", "asterisk", "mark", "mark", "mark the run or group for a comparison, up to six", "runs", "List", 5),
    _key("group", "J shift+j", "group", "group", "one line or curve per configuration, whatever the seed, or per run",
         ("runs", "comparison"), "List", 6),
    _key("sort", "right", "sort(1)", "sort", "sort by the column to the right", "runs", "List", 7),
    _key("sort-before", "left", "sort(-1)", "sort", "sort by the column to the left", "runs", "List"),
    _key("sort-reversed", "I shift+i", "sort_reversed", "reverse", "reverse the order", "runs", "List"),
    _key("resume-run", "U shift+u", "resume", "resume", "resume or attach to the run, or copy the command", "runs",
         "List", 30),
    _key("evaluate-run", "V shift+v", "evaluate", "evaluate", "evaluate the run's policy in a separate process", "runs",
         "List", 31),
    _key("delete-run", "X shift+x delete", "delete", "delete", "remove the run's folder; asks for its name", "runs",
         "List", 32),

    _key("watch-step", "right", "watch_step", "one step", "play one step, then pause", "watch", "Watch", 4),
    _key("watch-restart", "home", "watch_restart", "restart",
         "start a new episode; after a failure, in a new environment", "watch", "Watch", 5),
    _key("watch-renew", "end", "watch_renew", "newest", "use the newest policy now, not from the next episode on",
         "watch", "Watch", 30),
    _key("watch-greedy", "G shift+g", "watch_greedy", "greedy",
         "the most likely actions (greedy), or sampled ones as in training", "watch", "Watch", 10),

    _key("slower", "less_than_sign comma", "speed(-1)", "slower", "replay slower, down to a stop", "replay",
         "Replay", 1, shown="<"),
    _key("faster", "greater_than_sign full_stop", "speed(1)", "faster", "replay faster, up to all at once", "replay",
         "Replay", 2, shown=">"),
    _key("seek-back", "left_parenthesis", "seek(-0.05)", "back", "back by 5% of the recording", "replay",
         "Replay", 4, shown="("),
    _key("seek-forward", "right_parenthesis", "seek(0.05)", "forward", "forward by 5% of the recording", "replay",
         "Replay", 5, shown=")"),
    _key("seek-start", "A shift+a", "seek_share(0)", "start", "back to the start of the recording", "replay", "Replay",
         30),
    _key("seek-end", "F shift+f", "seek_share(1)", "end", "to the end of the recording; a live run is followed",
         "replay", "Replay", 31),
    _key("seek-to", "percent_sign", "seek_to", "go to", "type a share of the recording like 50%, or a step like 120k",
         "replay", "Replay", 32, shown="%"),

    _key("quit", "q", "leave", "quit", "ask how to leave; at once when the run is over", "run", "Leave", 0),
    _key("quit-anywhere", "ctrl+q", "app.leave", "quit", "the same, also inside dialogs", "anywhere", "Leave"),
    _key("interrupt", "ctrl+c", "app.interrupt", "quit",
         "like q; a second time: checkpoint and stop; a third time: stop now; repeats within a second count once",
         "anywhere", "Leave"),
    _key("suspend", "ctrl+z", "app.suspend_process", "suspend", "to the shell; training stops until fg or bg",
         "anywhere", "Leave"),

    _key("leave-running", "l", "leave_running", "leave it running", "leave the screen; the run goes on without it",
         "leaving", "Dialog"),
    _key("stop-saved", "s", "stop_with_checkpoint", "checkpoint and stop", "save everything, then stop and leave",
         "leaving", "Dialog", changes=True),
    _key("stop-now", "k", "stop_now", "stop now", "leave without saving; asks again if steps would be lost",
         "leaving", "Dialog", changes=True),
    _key("lose-steps", "y", "lose_steps", "stop now", "leave without saving, when asked again", "leaving", "Dialog",
         changes=True),
    _key("stay", "escape enter n q", "stay", "stay", "back to the previous screen; nothing changes", "leaving",
         "Dialog", shown="esc"),
    _key("yes", "y", "yes", "yes", "do it", "confirming", "Dialog", changes=True),
    _key("no", "escape enter n q", "no", "no", "leave everything as it is", "confirming", "Dialog", shown="esc"),
    _key("end-evaluation", "escape enter q", "end", "back", "back to the runs; cancels an evaluation that is running",
         "evaluating", "Dialog", shown="esc"),
    _key("copy-evaluation", "y", "copy", "copy", "copy what was printed", "evaluating", "Dialog"),
    _key("take", "enter", "screen.take", "accept", "accept what was typed", "asking", "Dialog"),
    _key("about", "tab", "screen.about", "about", "about the selected behavior, or about the run", "asking", "Dialog"),
    _key("cancel", "escape", "screen.cancel", "cancel", "back to the previous screen; nothing changes", "asking",
         "Dialog"),
    _key("keep-filter", "enter", "keep", "keep", "keep the filter and return to the list", "filtering", "Dialog",
         1),
    _key("clear-filter", "escape", "clear", "show all", "remove the filter and return to the list", "filtering",
         "Dialog", 2),
    _key("filter-up", "up", "cursor(-1)", "up", "the line above, in the filtered list", "filtering", "Dialog"),
    _key("filter-down", "down", "cursor(1)", "down", "the line below, in the filtered list", "filtering",
         "Dialog"),
    _key("pick", "space", "pick", "mark", "mark the selected metric to be drawn, or unmark it", "picking", "Dialog"),
    _key("pick-pin", "tab", "pin", "pin", "pin the selected metric to the chart grid, or unpin it",
         "picking", "Dialog"),
    _key("pick-up", "up", "cursor(-1)", "up", "the metric above", "picking", "Dialog"),
    _key("pick-down", "down", "cursor(1)", "down", "the metric below", "picking", "Dialog"),
    _key("picked", "enter", "take", "draw", "draw the marked metrics; without any, the selected one",
         "picking", "Dialog"),
    _key("unpicked", "escape", "cancel", "cancel", "back to the previous screen; nothing changes", "picking", "Dialog"),
    _key("all-keys", "question_mark", "all_keys", "all keys", "all keys, or those that have a use on the screen below",
         "help", "Dialog"),
    _key("close", "escape enter q", "close", "close", "back to the previous screen", "help", "Dialog",
         shown="esc"),
)  # fmt: skip

STYLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {  # what `keys: NAME` in keys.yaml changes, by the commands' ids
    "vi": {
        "row-down": ("down", "j"), "row-up": ("up", "k"), "next": ("down", "j"), "previous": ("up", "k"),
        "first": ("home", "g"), "last": ("end", "G", "shift+g"),
        "next-match": ("f3", "n"), "match-before": ("f2", "N", "shift+n"),
        "checkpoints": ("K", "shift+k"), "devices": ("H", "shift+h"),  # the lists have k and g
        "league": ("Q", "shift+q"),  # and devices H
        "watch-greedy": ("Z", "shift+z"),  # and G
    },
}  # fmt: skip


FORMER: Mapping[str, str] = {  # ids that keys.yaml may still hold, and those of the commands that do it now
    "overlay": "all-behaviors", "log-behavior": "all-behaviors", "roll-back-failed": "roll-back",
    "copy-failure": "copy", "watch-hold": "freeze",
}  # fmt: skip


class Keymap:
    """The table as this user has it. Made once at the start; everything that binds or shows keys asks it."""

    def __init__(self, keys: tuple[Key, ...] = KEYMAP) -> None:
        self.keys = keys

    def remapped(self, chosen: Mapping[str, tuple[str, ...]]) -> Keymap:
        """The table with other keys for the commands named in `chosen`, by their ids."""
        return Keymap(
            tuple(
                replace(key, keys=chosen[key.id], shown=shown_keys(chosen[key.id])) if key.id in chosen else key
                for key in self.keys
            )
        )

    def of_id(self, id: str) -> Key:
        """The command of that id. Raises StopIteration when there is none."""
        return next(key for key in self.keys if key.id == id)

    def of(self, *places: Place) -> list[Key]:
        """The commands of these places, in the order of the table."""
        return [key for key in self.keys if any(place in places for place in key.places)]

    def shadowed(self, *places: Place) -> list[Key]:
        """The commands of these places, nearest first, that have lost every key of theirs to a nearer one."""
        taken: set[str] = set()
        shadowed: list[Key] = []
        for place in places:
            of_place = self.of(place)
            shadowed += [key for key in of_place if taken.issuperset(key.keys)]
            taken.update(name for key in of_place for name in key.keys)
        return shadowed


def bindings(*places: Place) -> list[BindingType]:
    """Textual's bindings of these places, by whose ids App.set_keymap gives them other keys.

    Those of `anywhere` also act before any screen's own, those of `picking` before the line typed into.
    """
    return [
        Binding(name, key.action.replace("{n}", name), key.label, show=False,
                priority=bool({"anywhere", "picking"} & set(key.places)),
                id=f"{key.id}-{name}" if "{n}" in key.action else key.id)
        for key in Keymap().of(*places)
        for name in key.keys
    ]  # fmt: skip
