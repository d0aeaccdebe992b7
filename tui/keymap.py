"""Every key of the screen in one table: the bindings, the bottom line and the help screen are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from textual.binding import Binding

Place: TypeAlias = Literal["anywhere", "overview", "leaving", "help"]
Group: TypeAlias = Literal["Look", "Training", "Leave", "In the leave dialog", "On this page"]


@dataclass(frozen=True, slots=True)
class Key:
    """One entry. keys: Textual's names; action: may hold {n}, the number on the key; shown: how a reader sees it.

    footer_rank: None keeps it out of the bottom line; the highest gives way first.
    """

    keys: tuple[str, ...]
    action: str
    shown: str
    label: str
    explained: str
    place: Place
    group: Group
    footer_rank: int | None = None
    needs_run: bool = False  # useless once the run is over
    needs_several: bool = False  # useless with a single behavior


KEYMAP = (
    Key(
        tuple("123456789"), "select({n})", "1-9", "select", "select the behavior with that number",
        "overview", "Look", 5, needs_several=True,
    ),
    Key(("up", "k"), "move(-1)", "up, k", "up", "select the behavior above", "overview", "Look"),
    Key(("down", "j"), "move(1)", "down, j", "down", "select the behavior below", "overview", "Look"),
    Key(
        ("p",), "pause(False)", "p", "pause", "pause the selected behavior, or let it go on",
        "overview", "Training", 1, needs_run=True,
    ),
    Key(
        ("P", "shift+p"), "pause(True)", "P", "pause all", "pause every behavior, or let all go on",
        "overview", "Training", 7, needs_run=True, needs_several=True,
    ),
    Key(
        ("c",), "checkpoint(False)", "c", "checkpoint", "save a checkpoint of the selected behavior",
        "overview", "Training", 2, needs_run=True,
    ),
    Key(
        ("C", "shift+c"), "checkpoint(True)", "C", "checkpoint all", "save a checkpoint of every behavior",
        "overview", "Training", 9, needs_run=True, needs_several=True,
    ),
    Key(
        ("e",), "export(False)", "e", "export", "export the selected behavior's policy as ONNX",
        "overview", "Training", 3, needs_run=True,
    ),
    Key(
        ("E", "shift+e"), "export(True)", "E", "export all", "export every policy as ONNX",
        "overview", "Training", 8, needs_run=True, needs_several=True,
    ),
    Key(
        ("space",), "freeze", "space", "freeze view", "hold the picture still, or let it follow; training goes on",
        "overview", "Look", 6,
    ),
    Key(("question_mark",), "help", "?", "help", "this page", "overview", "Look", 4),
    Key(
        ("q", "ctrl+q"), "leave", "q", "quit", "ask how to leave; at once when the run is over",
        "anywhere", "Leave", 0,
    ),
    Key(
        ("ctrl+c",), "interrupt", "ctrl+c", "quit",
        "like q; twice: checkpoint and stop; three times: stop now",
        "anywhere", "Leave",
    ),
    Key(("s",), "stop_with_checkpoint", "s", "checkpoint and stop", "save everything, then stop and leave", "leaving",
        "In the leave dialog"),
    Key(("k",), "stop_now", "k", "stop now", "leave at once, losing what came after the last checkpoints", "leaving",
        "In the leave dialog"),
    Key(("escape", "enter", "n"), "stay", "esc", "stay", "back to the overview; training goes on", "leaving",
        "In the leave dialog"),
    Key(("escape", "enter", "question_mark"), "close", "esc", "close", "back to the overview", "help", "On this page"),
)  # fmt: skip


def bindings(place: Place) -> list[Binding]:
    """Textual's bindings of one place; those of `anywhere` also act before any screen's own."""
    return [
        Binding(name, key.action.replace("{n}", name), key.label, show=False, priority=place == "anywhere")
        for key in KEYMAP
        if key.place == place
        for name in key.keys
    ]


def footer_keys() -> list[Key]:
    """The keys of the bottom line, in the order of the table."""
    return [key for key in KEYMAP if key.footer_rank is not None]


def by_group() -> dict[str, list[Key]]:
    """Every key under its heading, in the order of the table."""
    groups: dict[str, list[Key]] = {}
    for key in KEYMAP:
        groups.setdefault(key.group, []).append(key)
    return groups
