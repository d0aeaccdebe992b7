"""The screen on which a policy plays: pictures, text, numbers, and what its keys ask for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rl_tui.engine.session.watching import Pixels, Scene, Seen, Unwatchable
from rl_tui.tui.drawing.pacing import FRAME_SECONDS, LONGEST_SECONDS, FramePace
from rl_tui.tui.panes.watched import number, returns_line
from tests.fakes import FakeWatching
from tests.tui.driver import Driven
from tests.tui.scenes import healthy
from tests.tui.snapshots import check

LAKE = "  (Right)\nS\x1b[41mF\x1b[0mFF\nFHFH\nFFFH\nHFFG\n"


def image(width: int, height: int) -> Pixels:
    """A dark sky over a bright ground, and a red pole in the middle."""
    rows = []
    for y in range(height):
        ground = (230, 230, 230) if y > 3 * height // 4 else (0, 0, 0)
        rows += [(255, 0, 0) if x == width // 2 and y > height // 3 else ground for x in range(width)]
    return Pixels(width, height, bytes(value for color in rows for value in color))


SCENE = Scene(
    behavior="Walker",
    at=0.0,
    state="playing",
    episode=12,
    step=139,
    total=41.25,
    reward=0.5,
    continuous=(0.125, -0.5),
    discrete=(2,),
    seen=(Seen("joints", (3,), (0.5, -1.25, 1e-6), True), Seen("camera", (84, 84, 3), (0.0,) * 12, False)),
    returns=(12.0, 30.5, 44.0),
    lengths=(40, 61, 88),
    policy_step=43_110,
    hz=50.0,
)
KINDS = {
    "pixels": replace(SCENE, pixels=image(48, 32)),
    "text": replace(SCENE, text=LAKE, hz=4.0),
    "numbers": replace(SCENE, undrawn="the environment has no method `render`", state="paused", is_greedy=False),
    "failed": replace(
        SCENE, state="failed", reason="gymnasium:Walker2d-v5, instance 0, worker 0: step raised ValueError"
    ),
}


@pytest.fixture(autouse=True)
def _answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a busy machine takes to the next scene."""
    monkeypatch.setattr("rl_tui.tui.screens.watch.SILENT_SECONDS", math.inf)


async def watched(screen: Driven, watching: FakeWatching, scene: Scene, words: str) -> str:
    """What is shown once the scene is."""
    watching.scene = scene
    return await screen.until(words)


def below_the_state(text: str) -> str:
    """All but the state line, which every screen has."""
    return text.partition("\n")[2]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_picture_has_its_figures(kind: str, size: tuple[int, int]) -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), size, opened="watch", watching=watching) as screen:
        words = {"pixels": "▀", "text": "FHFH", "numbers": "camera", "failed": "ValueError"}[kind]
        text = await watched(screen, watching, KINDS[kind], words)
        check(f"watch-{kind}-{size[0]}x{size[1]}", below_the_state(text))


async def test_without_unicode_the_picture_is_made_of_characters() -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), (80, 24), opened="watch", is_ascii=True, watching=watching) as screen:
        text = await watched(screen, watching, KINDS["pixels"], "%%%")
        check("watch-ascii-80x24", below_the_state(text))
        assert text.isascii()


async def test_keys_of_the_play_are_its_own() -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), (120, 40), opened="watch", watching=watching) as screen:
        assert watching.asked[0] == "begin Walker 80x70", "as many pixels as have room: two in each cell"
        await watched(screen, watching, SCENE, "policy")
        watching.asked.clear()
        await screen.press("space", "right", "home", "G", "end")
        assert watching.asked == ["pause", "step", "restart", "drawn", "renew"]
        assert screen.session.commands == [], "training is not concerned"
        await watched(screen, watching, replace(SCENE, state="paused", is_greedy=False), "paused")
        watching.asked.clear()
        await screen.press("space", "G")
        assert watching.asked == ["resume", "greedy"]
        await screen.press("v")
        assert screen.screen.name == "overview"
        assert watching.asked[-1] == "end"


async def test_failed_play_says_which_key_begins_again() -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), (120, 40), opened="watch", watching=watching) as screen:
        await watched(screen, watching, KINDS["failed"], "ValueError")
        assert "home restarts it" in await screen.press("right")
        await screen.press("home")
        assert watching.asked[-1] == "restart"


async def test_what_cannot_be_watched_says_why_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(healthy().view(), opened="watch", watching=Unwatchable("a replay has no policy")) as screen:
        assert "a replay has no policy" in await screen.until("a replay")
        assert "watch: a replay has no policy" in await screen.press("space")
    watching = FakeWatching("the engine is starting")
    monkeypatch.setattr("rl_tui.tui.screens.watch.RETRY_SECONDS", 0.01)
    async with Driven(healthy().view(), opened="watch", watching=watching) as screen:
        await screen.until("the engine is starting")
        watching.reason = ""
        await screen.until("nothing to show yet")
        await watched(screen, watching, SCENE, "policy from step 43,110")


async def test_key_and_command_are_only_offered_where_something_can_be_watched() -> None:
    watching = FakeWatching("the engine is starting")
    async with Driven(healthy().view(), (120, 40), watching=watching) as screen:
        assert "v watch" not in await screen.text()
        assert "the engine is starting" in await screen.press("v"), "the key says why"
        await screen.press("v", "ctrl+p", *"newest policy")
        assert "watch: watch the newest" not in await screen.until("No matches found")
        watching.reason = ""
        await screen.press("escape")
        assert "v watch" in (await screen.text()).splitlines()[-1]
        await screen.press("ctrl+p", *"newest policy")
        await screen.until("watch: watch the newest")


async def test_next_scene_takes_the_place_of_the_last_one_whatever_it_is() -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), (120, 40), opened="watch", watching=watching) as screen:
        first = await watched(screen, watching, KINDS["pixels"], "▀")
        black = Pixels(48, 32, bytes(3 * 48 * 32))
        await watched(screen, watching, replace(SCENE, pixels=black, episode=13), "episode   13")
        assert "▀" in first
        assert "▀" not in await screen.text(), "both halves of every cell are black"
        await watched(screen, watching, KINDS["pixels"], "▀")
        assert "▀" not in await watched(screen, watching, KINDS["text"], "FHFH")


async def test_picture_below_a_dialog_waits() -> None:
    watching = FakeWatching()
    async with Driven(healthy().view(), (120, 40), opened="watch", watching=watching) as screen:
        await watched(screen, watching, KINDS["pixels"], "▀")
        await screen.pilot.press("q")
        watching.scene = replace(SCENE, episode=77)
        assert "Leave" in await screen.text()
        assert watching.scene is not None, "what cannot be seen is not taken, so no more is drawn"


async def test_environment_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_tui.tui.screens.watch.SILENT_SECONDS", 0.0)
    watching = FakeWatching()
    async with Driven(healthy().view(), (120, 40), opened="watch", watching=watching) as screen:
        await watched(screen, watching, SCENE, "no answer for")


def test_pictures_come_as_rarely_as_training_and_the_line_need() -> None:
    pace = FramePace(bytes_per_second=60_000)
    assert pace.seconds == FRAME_SECONDS
    for _ in range(50):
        pace.drew(0.004, 1000, busy=1.0, is_training=True)
    assert pace.seconds == pytest.approx(0.4, rel=0.01), "4 ms are 1 % of 400 ms"
    for _ in range(50):
        pace.drew(0.004, 1000, busy=0.5, is_training=True)
    assert pace.seconds == pytest.approx(0.8, rel=0.01), "others have half of the processor"
    for _ in range(50):
        pace.drew(0.004, 1000, busy=0.5, is_training=False)
    assert pace.seconds == FRAME_SECONDS, "nothing trains"
    for _ in range(50):
        pace.drew(0.0, 30_000, busy=1.0, is_training=False)
    assert pace.seconds == pytest.approx(0.5, rel=0.01), "30 kB at 60 kB/s"
    for _ in range(50):
        pace.drew(1.0, 0, busy=1.0, is_training=True)
    assert pace.seconds == LONGEST_SECONDS


@pytest.mark.parametrize("width", [20, 30, 80])
def test_returns_are_shown_whole_or_not_at_all(width: int) -> None:
    scene = replace(SCENE, returns=tuple(0.5123 + count for count in range(20)))
    words = "".join(span.text for span in returns_line(scene, width)).split()[2:]
    whole = [number(value) for value in reversed(scene.returns)]
    assert words == whole[: len(words)]
    assert 1 <= len(words) < 20
