"""Runs of the folder resumed, evaluated and deleted from the list; what must not be, is not."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.runs import browsing
from rl_tui.tui.screens import evaluation
from rl_tui.tui.screens.evaluation import EvaluationPane, EvaluationScreen
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.terminal import relaunch
from tests.sampling.driving import survivors
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import record


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """The run on the screen, and two others."""
    monkeypatch.chdir(tmp_path)
    record(Path("results"), "walker-ppo", hours_ago=0.5)
    record(Path("results"), "bold", hours_ago=5)
    record(Path("results"), "cut-short", hours_ago=30, ends=False)
    return Archive(Path("results"))


def on_bold(archive: Archive, **others: object) -> Driven:
    return Driven(scenes.healthy(1).view(), opened="runs", runs=archive, **others)  # type: ignore[arg-type]


async def listed(screen: Driven) -> None:
    await screen.until("cut-short")
    await screen.press("down")


async def test_run_is_deleted_once_its_name_was_typed(archive: Archive) -> None:
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("asterisk")
        await screen.press("X")
        text = await screen.until("Delete bold")
        assert str(Path("results/bold").absolute()) in re.sub(r"[\s│]", "", text)  # wherever its lines break
        assert "0 checkpoints" in text
        await screen.press("enter")
        await screen.press(*"bol", "enter")
        assert Path("results/bold").is_dir()
        assert "enter removes bold for good" in await screen.press("d")
        await screen.press("enter")
        text = await screen.until("deleted bold")
        assert not Path("results/bold").exists()
        await screen.until(lambda text: "Runs · 2" in text)
        assert "marked" not in await screen.text()
    assert Path("results/cut-short").is_dir()


async def test_escape_keeps_the_run(archive: Archive) -> None:
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("X")
        await screen.until("Delete bold")
        assert "Delete" not in await screen.press(*"bold", "escape")
        assert Path("results/bold").is_dir()


async def test_run_on_the_screen_is_not_deleted(archive: Archive) -> None:
    async with on_bold(archive) as screen:
        await screen.until("cut-short")
        assert "delete walker-ppo: not possible, it is on this screen" in await screen.press("X")


async def test_run_that_goes_on_is_not_deleted_and_can_be_attached_to(archive: Archive) -> None:
    with RunFolder(Path("results"), "bold") as folder:
        folder.open(resume=True)
        async with on_bold(archive, size=(120, 24)) as screen:
            await listed(screen)
            await screen.press("X")
            await screen.until("is writing to this run")
            await screen.press("U")
            await screen.until("copied")
            assert screen.clipboard == "rl-tui attach results/bold"
    assert Path("results/bold").is_dir()


async def test_folder_that_is_no_run_of_ours_is_not_deleted(archive: Archive) -> None:
    Path("elsewhere").mkdir()
    (Path("results/cut-short")).rename("elsewhere/run")
    Path("results/cut-short").symlink_to(Path("elsewhere/run").absolute())
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("end", "X")
        await screen.until("a link")
    assert Path("elsewhere/run/events.jsonl").is_file()


@pytest.mark.parametrize(("key", "verb"), [("X", "delete"), ("U", "resume"), ("V", "evaluate")])
async def test_readonly_forbids_each_by_its_name(key: str, verb: str, archive: Archive) -> None:
    async with on_bold(archive, forbids="--readonly was given") as screen:
        await listed(screen)
        assert f"{verb} bold: not possible, --readonly was given" in await screen.press(key)


@pytest.mark.parametrize(("key", "verb"), [("X", "delete"), ("U", "resume"), ("V", "evaluate")])
async def test_group_is_no_run_to_act_upon(key: str, verb: str, archive: Archive) -> None:
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("J")
        await screen.until("n=3")
        assert f"{verb}: bold is a group of 3 runs; J shows them" in await screen.press("home", key)


async def test_beside_a_run_that_trains_the_command_to_resume_is_copied(archive: Archive) -> None:
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("U")
        await screen.until("Resume bold in another terminal")
        await screen.press("y")
        command = "rl-tui results/bold/configuration.yaml --run-id bold --results-dir results --resume"
        assert screen.clipboard == command
        assert screen.app.is_running


async def test_where_nothing_trains_the_run_takes_the_place_of_the_screen(archive: Archive) -> None:
    async with Driven(browsing.no_view(), opened="runs", runs=archive) as screen:
        await listed(screen)
        text = await screen.text()
        assert "no run" in text
        assert "\N{CHECK MARK} no run" not in text
        assert "q leaves" in await screen.press("escape")
        for key in ("k", "l", "f", "number_sign", "v", "r"):
            assert "no run on this screen" in await screen.press(key) or key == "r"
            assert screen.screen.name == "runs", key
        await screen.press("U")
        await screen.until("Resume bold?")
        await screen.pilot.press("y")
        expected = ("results/bold/configuration.yaml", "--run-id", "bold", "--results-dir", "results", "--resume")
        assert screen.app.exit_policy.next_command == expected
        assert screen.app.return_value == "finished"


def test_own_command_is_this_program_whatever_lies_in_the_working_directory() -> None:
    assert relaunch.relaunch_command(["ls"]) == [sys.executable, "-P", "-m", "rl_tui", "ls"]
    assert relaunch.shell_command(["a b.yaml", "--resume"]) == "rl-tui 'a b.yaml' --resume"


@pytest.mark.parametrize("height", [8, 11, 13, 40])
def test_figures_and_keys_of_an_evaluation_stay_in_sight_on_small_terminals(height: int) -> None:
    pane, view = EvaluationPane("bold"), scenes.healthy(1).view()
    figures = [f"{name:12}{9:12.6g}" for name in ("mean", "std", "min", "max", "mean length", "episodes")]
    pane.append("\n".join([f"Walker at step 9: {'a/long/path/' * 12}", *figures]))
    pane.exit_code = 0
    rows = pane.lines(Frame(view, ScreenState(), CommandStatus(), Keymap(), view.now, UNICODE), 54, height)
    texts = ["".join(span.text for span in row).rstrip() for row in rows]
    assert len(texts) <= height
    assert "evaluated in" in texts[0]
    assert texts[-1].endswith("back")
    assert set(figures[-3:]) <= set(texts)
    assert any(text.startswith("Walker at step 9") for text in texts) or height < 13


PLAYER = """
import signal, sys, time
if len(sys.argv) > 3:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] == "forever":
    open(sys.argv[2], "w").write(str(__import__("os").getpid()))
print("5 of 9 episodes, mean 3 so far", flush=True)
if sys.argv[1] == "forever":
    time.sleep(600)
print("mean 7\\nstd 1")
sys.exit(int(sys.argv[1]))
"""


async def evaluating(screen: Driven, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(evaluation, "relaunch_command", lambda words: [sys.executable, "-c", PLAYER, *words])
    screen.screen.open_dialog(EvaluationScreen("bold", words))


async def test_evaluation_shows_what_it_prints_and_its_result_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await evaluating(screen, monkeypatch, "0")
        text = await screen.until("bold evaluated")
        assert "std 1" in text
        assert "so far" not in text
        await screen.press("y")
        assert screen.clipboard == "mean 7\nstd 1"
        assert "evaluated" not in await screen.press("escape")


async def test_evaluation_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await evaluating(screen, monkeypatch, "3")
        await screen.until("exit code 3")


def played(folder: Path) -> psutil.Process:
    """The process that plays forever."""
    return psutil.Process(int((folder / "pid").read_text()))


async def test_escape_cancels_the_evaluation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await evaluating(screen, monkeypatch, "forever", str(tmp_path / "pid"))
        assert "cancel" in await screen.until("5 of 9 episodes")
        process = played(tmp_path)
        await screen.press("escape")
        assert await asyncio.to_thread(survivors, [process], 10.0) == []


@pytest.mark.parametrize("more", [(), ("ignores SIGTERM",)])
async def test_leaving_ends_the_evaluation_and_its_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: tuple[str, ...]
) -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await evaluating(screen, monkeypatch, "forever", str(tmp_path / "pid"), *more)
        await screen.until("5 of 9 episodes")
        process = played(tmp_path)
    assert not psutil.pid_exists(process.pid), "it was waited for: Python warns of a process that was not"
    gc.collect()  # a pipe left open warns here
    assert await asyncio.to_thread(survivors, [process], 10.0) == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of the evaluations; instead of them a program runs that knows the mean."""
    words_of_each: list[list[str]] = []

    def recorded(words: list[str]) -> list[str]:
        words_of_each.append(list(words))
        return [sys.executable, "-c", "print('mean 1')"]

    monkeypatch.setattr(evaluation, "relaunch_command", recorded)
    return words_of_each


async def test_key_evaluates_the_run_below_the_cursor(archive: Archive, asked: list[list[str]]) -> None:
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("V")
        await screen.until("bold evaluated")
    assert asked == [["evaluate", "results/bold", "--progress"]]


async def test_of_several_behaviors_one_is_asked_for(archive: Archive, asked: list[list[str]]) -> None:
    record(Path("results"), "duo", hours_ago=1, behaviors=("Walker", "Crawler"))
    async with on_bold(archive) as screen:
        await listed(screen)
        await screen.press("V")
        assert "one of Walker, Crawler" in await screen.until("Which behavior of duo")
        await screen.press("asterisk", "enter")
        await screen.press(*["backspace"] * 7, *"Crawler", "enter")
        await screen.until("duo evaluated")
    assert asked == [["evaluate", "results/duo", "--behavior", "Crawler", "--progress"]]
