"""The user's own keys work and are shown everywhere; invalid entries are reported with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.tui.app import TrainerApp
from rl_tui.tui.keys.keymap import FORMER, KEYMAP, Keymap
from rl_tui.tui.keys.user_keys import UserKeys, read_user_keys
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text


def written(folder: Path, text: str) -> UserKeys:
    (folder / "keys.yaml").write_text(text)
    return read_user_keys(folder)


def test_without_a_file_nothing_changes(tmp_path: Path) -> None:
    assert read_user_keys(tmp_path) == UserKeys()
    assert written(tmp_path, "# nothing yet\n") == UserKeys()


def test_the_default_keys_have_no_conflict_of_their_own(tmp_path: Path) -> None:
    lines = "".join(f"{key.id}: {list(key.keys)}\n" for key in KEYMAP if key.id != "select")
    assert written(tmp_path, lines).problems == ()


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("pause: F5", ("f5",)),
        ("pause: ['ctrl+b', '@']", ("ctrl+b", "at")),
        ("pause: Z", ("Z", "shift+z")),
        ("pause: shift+z", ("Z", "shift+z")),
        ("pause: alt+p", ("alt+p",)),
        ("pause: '?'\nhelp: p", ("question_mark",)),
        ("pause: ctrl+space", ("ctrl+@",)),
    ],
)
def test_keys_may_be_spelled_as_one_likes(tmp_path: Path, line: str, keys: tuple[str, ...]) -> None:
    found = written(tmp_path, line)
    assert found.problems == ()
    assert found.chosen["pause"] == keys


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("paus: x", "paus: no such command; did you mean pause?"),
        ("log-behavior: F7", "log-behavior: is now part of all-behaviors; give that the key"),
        ("watch-hold: F7", "watch-hold: is now part of freeze; give that the key"),
        ("select: a", "select: its keys cannot be changed"),
        ("quit: []", "quit: needs a key"),
        ("quit: ''", "quit: needs a key"),
        ("pause: pagdown", "pause: pagdown: unknown key; did you mean pagedown?"),
        ("pause: cmd+q", "pause: cmd+q: unknown modifier cmd"),
        ("pause: contrl+q", "pause: contrl+q: unknown modifier contrl; did you mean ctrl?"),
        ("pause: ctrl+1", "pause: ctrl+1: most terminals cannot send it"),
        ("pause: super+p", "pause: super+p: most terminals cannot send it"),
        ("pause: ctrl+i", "pause: ctrl+i: terminals send the same code for it as for tab"),
        ("pause: {a: b}", "pause: must be a key or a list of keys"),
        ("pause: [[a]]", "pause: must be a key or a list of keys"),
        ("quit-anywhere: Q", "must not be a character, since the command works while text is typed"),
        ("pause: c", "pause: c is already the key of checkpoint"),
        ("row-up: p", "row-up: p is already the key of pause"),
        ("keep-filter: k", "must not be a character"),
        ("yes: escape", "yes: esc is already the key of no"),
        ("interrupt: escape", "interrupt: esc is already the key of back"),
        (
            "group: b",
            "b is already the key of all-behaviors on the screen comparison; group keeps J. To use b, give all-be",
        ),
    ],
)
def test_an_invalid_entry_is_reported_and_the_default_stays(tmp_path: Path, line: str, words: str) -> None:
    found = written(tmp_path, f"# mine\n{line}\nfreeze: F9\n")
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"{tmp_path}/keys.yaml:2: ")
    assert words in found.problems[0]
    assert dict(found.chosen) == {"freeze": ("f9",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pause: [a", "not YAML"),
        ("- pause\n", "must be lines of the form"),
        ("pause\n", "must be lines of the form"),
        ("pause: \x00\n", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("#" * 70_000, "must be at most"),
    ],
)
def test_a_file_that_is_no_list_of_keys_is_one_problem(tmp_path: Path, text: str, words: str) -> None:
    found = written(tmp_path, text)
    assert found.chosen == {}
    assert len(found.problems) == 1
    assert words in found.problems[0]


def test_bytes_that_are_no_text_are_one_problem(tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_bytes(b"pause: \xff\xfe\n")
    assert "cannot be read" in read_user_keys(tmp_path).problems[0]


def test_two_commands_may_exchange_their_keys(tmp_path: Path) -> None:
    found = written(tmp_path, "pause: c\ncheckpoint: p\n")
    assert found == UserKeys({"pause": ("c",), "checkpoint": ("p",)})


def test_of_two_entries_with_the_same_key_the_first_counts(tmp_path: Path) -> None:
    found = written(tmp_path, "log: F6\nruns: F6\n")
    assert dict(found.chosen) == {"log": ("f6",)}
    assert ":2: runs: f6 is already the key of log" in found.problems[0]


def test_bindings_yield_until_nothing_conflicts(tmp_path: Path) -> None:
    """runs cannot have l, so it keeps r, which devices then cannot have."""
    found = written(tmp_path, "devices: r\nruns: l\n")
    assert found.chosen == {}
    assert len(found.problems) == 2


def test_commands_that_share_a_key_by_default_may_share_another(tmp_path: Path) -> None:
    found = written(tmp_path, "previous: F7\nrow-up: F7\n")
    assert found.problems == ()


def test_shown_keys_follow() -> None:
    keymap = Keymap().remapped({"pause-all": ("Z", "shift+z"), "help": ("f1",)})
    assert keymap.of_id("pause-all").shown == "Z"
    assert keymap.of_id("help").shown == "f1"


def test_the_keys_of_former_versions_may_be_given_back(tmp_path: Path) -> None:
    lines = {
        "watch-step": "n", "watch-restart": "b", "watch-renew": "N", "watch-greedy": "m", "log-level": "v",
        "compare-config": "v", "changed-only": "b", "mark": "x", "group": "b", "sort": "s", "sort-reversed": "S",
        "resume-run": "R", "lesson-next": "+", "lesson-before": "-",
    }  # fmt: skip
    found = written(tmp_path, "".join(f"{id}: '{key}'\n" for id, key in lines.items()))
    assert all(" keeps " in problem and ". To use " in problem for problem in found.problems)
    # v is watch, which works everywhere; b is behaviors in a comparison, where runs are grouped, too
    assert set(found.chosen) == set(lines) - {"log-level", "compare-config", "group"}
    assert len(found.problems) == 3


def test_former_names_lead_to_commands_that_there_are() -> None:
    assert not set(FORMER) & {key.id for key in KEYMAP}
    assert set(FORMER.values()) <= {key.id for key in KEYMAP}


async def test_the_users_keys_act_and_stand_on_the_screen(tmp_path: Path) -> None:
    """pause and freeze have exchanged their keys, pause-all has two others; the former keys do nothing."""
    found = written(tmp_path, "pause: space\nfreeze: p\npause-all: [Z, F4]\n")
    view = scenes.healthy(3).view()
    session = FakeSession(view, answers=False)
    app = TrainerApp(session, clock=lambda: view.now, user_keys=found)
    async with app.run_test(size=(120, 130)) as pilot:
        assert "space pause" in await settled_text(pilot)
        await pilot.press("space", "Z", "f4", "P")
        assert [type(command).__name__ for command in session.commands] == ["Pause", "Pause", "Resume"]
        await pilot.press("p")
        assert "VIEW FROZEN" in await settled_text(pilot)
        await pilot.press("question_mark", "question_mark")
        assert "Z, f4" in await settled_text(pilot)


async def test_problems_are_said_and_in_the_log(tmp_path: Path) -> None:
    found = written(tmp_path, "paus: x\nfreeze: ctrl+i\n")
    view = scenes.healthy(1).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, user_keys=found)
    async with app.run_test(size=(160, 50)) as pilot:
        app.tick()
        text = await settled_text(pilot)
        assert "paus: no such command; did you mean pause? (and 1 more, in the log)" in " ".join(text.split())
        assert [line.message for line in view.log if line.kind == "SCREEN"] == list(found.problems)


async def test_keys_of_vi_move_in_lists_and_what_they_took_is_elsewhere(tmp_path: Path) -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, user_keys=written(tmp_path, "keys: vi\n"))
    async with app.run_test(size=(100, 30)) as pilot:

        async def cursor_after(*keys: str) -> int:
            await pilot.press(*keys)
            rows = (await settled_text(pilot)).splitlines()
            return next(y for y, row in enumerate(rows) if row.startswith("│▸"))

        await settled_text(pilot)
        await pilot.press("j", "j", "k")
        assert app.context.state.selected == 1
        await pilot.press("l")
        last = await cursor_after("G")
        first = await cursor_after("g")
        assert first < last
        assert await cursor_after("j") == first + 1
        assert await cursor_after("k") == first
        await pilot.press("slash", *"training", "enter")
        assert await cursor_after("g", "n") == first + 1
        assert await cursor_after("N", "N") > first + 1
        await pilot.press("K")
        assert "Checkpoints of Crawler" in await settled_text(pilot)
        await pilot.press("H")
        assert "Devices" in await settled_text(pilot)
        await pilot.press("Q")
        assert "League" in await settled_text(pilot)
        await pilot.press("question_mark")
        await pilot.press("slash", *"the first line", "enter")
        assert "home, g" in await settled_text(pilot)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("keys: emacs", ":1: keys: must be vi, got emacs"),
        ("keys: [vi, emacs]", ":1: keys: must be vi, got vi, emacs"),
        ("keys: vi\nkeys: vi", ":2: keys: is given twice; the first one is used"),
        ("keys: vi\npause: K", ":2: pause: K is already the key of checkpoints"),
        ("pause: j\nkeys: vi", ":1: pause: j is already the key of next"),
    ],
)
def test_errors_next_to_a_style_are_reported_with_their_line(tmp_path: Path, text: str, words: str) -> None:
    (problem,) = written(tmp_path, text).problems
    assert words in problem


def test_style_has_no_conflict_of_its_own_and_other_lines_change_it(tmp_path: Path) -> None:
    assert written(tmp_path, "keys: vi\n").problems == ()
    found = written(tmp_path, "keys: vi\ndevices: F8\ncheckpoints: F7\n")
    assert found.problems == ()
    assert (found.chosen["devices"], found.chosen["checkpoints"]) == (("f8",), ("f7",))
