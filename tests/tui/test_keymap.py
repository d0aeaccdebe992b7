"""One table of keys: what it holds is bound, explained, offered, and does something wherever it is said to."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import HyperparameterChanged, HyperparametersReported, ParametersReported
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.keys.keymap import KEYMAP, STYLES, Key, Keymap, Place, bindings
from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.runs.seeking import Seek
from rl_tui.tui.screens.base import SCREENS, RunScreen
from rl_tui.tui.screens.evaluation import EvaluationScreen
from rl_tui.tui.screens.help import blocks, title
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import some_runs

ON_A_REAL_TERMINAL = {"suspend"}  # tests/tui/test_suspend.py presses it
PLACES = list(dict.fromkeys(place for key in KEYMAP for place in key.places))

OPENED: dict[Place, tuple[str, tuple[str, ...]]] = {  # the screen to begin with, and the keys that lead to the place
    "list": ("log", ()),
    "comparison": ("runs", ("asterisk", "down", "asterisk", "enter")),
    "leaving": ("", ("q",)),
    "confirming": ("checkpoints", ("R",)),
    "asking": ("", ("a",)),
    "help": ("", ("question_mark",)),
    "filtering": ("log", ("slash", "W")),
    "picking": ("", ("M",)),
}
BEFORE: dict[str, tuple[str, ...]] = {  # what must have been done for the command to have something to do
    "select": ("2",),
    "previous": ("2",),
    "row-up": ("pagedown",),
    "page-up": ("pagedown", "pagedown"),
    "first": ("pagedown",),
    "last": ("home",),
    "zoom-out": ("plus", "plus"),
    "zoom-reset": ("plus",),
    "pan-left": ("plus",),
    "pan-right": ("plus", "left_square_bracket"),
    "live": ("plus", "left_square_bracket"),
    "left": ("x",),
    "right": ("x", "left"),
    "filter-up": ("down",),
    "take": ("h", "i"),
    "pick-up": ("down",),
    "changed-only": ("d",),
    "lose-steps": ("k",),
    "next-match": ("slash", "W", "enter"),
}


class Recorder:
    """A player that knows how fast it is."""

    def __init__(self) -> None:
        self.speed = 3

    def change_speed(self, by: int) -> str:
        """One notch."""
        self.speed += by
        return f"speed {self.speed}"

    def pause(self) -> str:
        """Another speed."""
        return self.change_speed(1)

    def seek(self, seek: Seek) -> None:
        """Another place."""
        self.place = seek


def busy() -> scenes.Story:
    """Three behaviors, of which the first can be tuned and was, and a log of more than a screen."""
    story, names = scenes.Story(), ("Walker", "Crawler", "Hopper")
    story.begin(*names)
    for name in names:
        story.train(name, 30, 160_000, 412.0)
        story.publish(HyperparametersReported(name, {"learning_rate": 3e-4, "beta": 0.005}))
        story.publish(HyperparameterChanged(name, 120_000, "learning_rate", 1e-3, 3e-4))
    story.devices()
    story.publish(ParametersReported(scenes.PARAMETERS))
    for number in range(100):
        story.save("Walker", 150_000 + number, 400.0 + number)
    return story


STORY = busy()


def driven(place: Place, results: Path) -> Driven:
    """The screen on which the keys of that place are tried."""
    opened = OPENED[place][0] if place in OPENED else place if place in SCREENS else ""
    player = Recorder() if place == "replay" else None
    return Driven(STORY.view(), (120, 40), opened=opened, runs=Archive(results), player=player)


async def lead_to(place: Place, screen: Driven) -> None:
    """Press what opens the place, each key when files have been read."""
    if place == "evaluating":
        screen.screen.open_dialog(EvaluationScreen("walker", ("presets",)))
        await screen.until("copy")
        return
    await screen.until(lambda text: "reading" not in text)
    for key in OPENED.get(place, ("", ()))[1]:
        await screen.press(key)
        await screen.until(lambda text: "reading" not in text)


def state_of(screen: Driven, text: str) -> object:
    """All that a user or the run notices."""
    app = screen.app
    return (text, len(screen.session.commands), app.clipboard, app.return_value, app.screen, app.focused,
            asdict(app.context.state), app.status.notice, app.status.reported_at)  # fmt: skip


async def does_something(screen: Driven, key: Key) -> bool:
    """Whether pressing it changes anything, once it can."""
    for name in BEFORE.get(key.id, ()):
        await screen.press(name)
    before = state_of(screen, await screen.text())
    await screen.pilot.press(key.keys[0])
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:  # some read a file first
        if state_of(screen, await screen.text() if screen.app.is_running else "") != before:
            return True
        await screen.pilot.pause(0.01)
    return False


@pytest.mark.parametrize("place", list(dict.fromkeys([*PLACES, *SCREENS])))
async def test_every_key_does_something_or_says_why_not_and_a_screen_has_a_bottom_line_and_topics(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a screenshot goes
    some_runs(tmp_path / "results")
    keys = [key for key in Keymap().of(place) if key.id not in ON_A_REAL_TERMINAL]
    is_new = True
    while keys or is_new:
        async with driven(place, tmp_path / "results") as screen:
            if is_new and (place == "overview" or place in SCREENS):
                check_that_bottom_line_holds_only_keys_that_are_bound(screen.screen)
                check_that_lists_have_a_topic(screen.screen)
            await lead_to(place, screen)
            if is_new:
                check_that_actions_exist(place, screen)
            is_new = False
            app = screen.app
            here = app.screen, app.focused
            while keys and app.is_running and (app.screen, app.focused) == here:  # one without a way back ends this app
                key = keys.pop(0)
                assert await does_something(screen, key), f"{key.keys[0]} ({key.id}) did nothing"
                if app.is_running and app.screen is not here[0]:
                    await screen.press("escape")


def check_that_bottom_line_holds_only_keys_that_are_bound(screen: RunScreen) -> None:
    places = {*(screen.pane.places if screen.pane is not None else ()), *screen.places, "run", "anywhere"}
    bound = set(screen.active_bindings)
    for key in KEYMAP:
        if key.footer_rank is not None and not places.isdisjoint(key.places):
            assert not bound.isdisjoint(key.keys), key.id


def check_that_lists_have_a_topic(screen: RunScreen) -> None:
    """By which they are filtered."""
    for pane in screen.query(ListPane):
        assert pane.topic


def check_that_actions_exist(place: Place, screen: Driven) -> None:
    owners = [screen.app.focused, screen.app.screen, screen.app]
    for key in Keymap().of(place):
        name = key.action.partition("(")[0].rpartition(".")[2]
        assert any(hasattr(owner, f"action_{name}") for owner in owners), key.id


async def test_bottom_line_begins_with_the_keys_of_the_screen_itself(tmp_path: Path) -> None:
    async with driven("checkpoints", tmp_path) as screen:
        words = (await screen.text()).splitlines()[-1]
        assert words.startswith(" q quit  ? help  esc back  R roll back  enter details ")
        assert words.index("copy") < words.index("pause")
    async with driven("overview", tmp_path) as screen:
        words = (await screen.text()).splitlines()[-1]
        assert words.startswith(" q quit  ? help  p pause  c checkpoint  e export  enter open ")
        assert "esc" not in words


@pytest.mark.parametrize("place", PLACES)
def test_no_key_is_bound_twice_in_one_place(place: Place) -> None:
    names = [binding.key for binding in bindings(place)]
    assert len(names) == len(set(names))


def test_ids_are_unique_and_every_command_has_a_key_and_words() -> None:
    assert len({key.id for key in KEYMAP}) == len(KEYMAP)
    for key in KEYMAP:
        assert key.keys
        assert key.label
        assert key.explained
        assert key.shown.isascii()


@pytest.mark.parametrize("here", [("list", "overview", "run"), ("overview", "run"), ("list", "log", "run"), ("run",)])
def test_help_has_every_command_once_and_says_where_the_others_work(here: tuple[Place, ...]) -> None:
    published = blocks(Keymap(), here)
    ids = [key.id for _, keys in published for key, _ in keys]
    assert sorted(ids) == sorted(key.id for key in KEYMAP)
    for heading, keys in published:
        for key, where in keys:
            works = not {*here, "anywhere"}.isdisjoint(key.places)
            assert (where == "") == works or where in ("when another pane has the focus", "on other screens")
            assert heading != "Here" or works


def test_help_lists_the_screens_of_a_key_as_a_sentence_does() -> None:
    published = {key.id: where for _, keys in blocks(Keymap(), ("overview", "run")) for key, where in keys}
    assert published["watch-step"] == "in watch"
    assert published["copy"] == ""
    published = {key.id: where for _, keys in blocks(Keymap(), ("watch", "run")) for key, where in keys}
    assert published["all-behaviors"].startswith("in overview, detail, ")
    assert published["all-behaviors"].endswith("log or warnings")
    assert published["copy-evaluation"] == "during an evaluation"


def test_help_does_not_promise_a_key_that_a_nearer_pane_takes() -> None:
    published = {key.id: where for _, keys in blocks(Keymap(), ("list", "overview", "run")) for key, where in keys}
    assert published["live"] == published["previous"] == "when another pane has the focus"
    assert published["row-up"] == ""


GENERIC = {  # keys that move in whatever is on the screen: by one, to the start, to the newest
    "up", "down", "left", "right", "home", "end",
}  # fmt: skip
VI_GENERIC = GENERIC | {"j", "k", "g", "G", "shift+g", "n", "N", "shift+n"}  # and those of vi: n and N, next, previous


@pytest.mark.parametrize(
    ("keymap", "generic"), [(Keymap(), GENERIC), (Keymap().remapped(STYLES["vi"]), VI_GENERIC)], ids=["default", "vi"]
)
def test_outside_dialogs_a_key_means_the_same_wherever_it_works(keymap: Keymap, generic: set[str]) -> None:
    dialogs = {place for key in KEYMAP if key.group == "Dialog" for place in key.places}
    commands = dict[str, set[str]]()
    for command in keymap.keys:
        if not dialogs.issuperset(command.places):
            for name in command.keys:
                commands.setdefault(name, set()).add(command.id)
    assert {name for name, ids in commands.items() if len(ids) > 1} <= generic


def test_help_shows_the_keys_as_they_were_remapped() -> None:
    published = blocks(Keymap().remapped({"pause": ("f5",)}), ("run",))
    assert [key.shown for _, keys in published for key, _ in keys if key.id == "pause"] == ["f5"]


def test_titles_of_help_name_screen_and_pane() -> None:
    assert title("overview", "behaviors") == "Keys for the overview: behaviors pane"
    assert title("overview", "") == "Keys for the overview"
    assert title("log", "log") == "Keys for the log screen"
    assert title("hyperparameters", "changes") == "Keys for the hyperparameters screen: changes pane"


def test_app_makes_no_binding_outside_the_table() -> None:
    app = TrainerApp(FakeSession(RunView()))
    table = {binding.key for binding in bindings("anywhere")}
    assert set(app._bindings.key_to_bindings) == table
