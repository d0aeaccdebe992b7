#!/usr/bin/env python3
"""Pictures of the screen, of the demo and of recorded runs.

    python -m screenshots.make_screenshots [NAME=results/RUN/events.jsonl ...] [--out FOLDER] [--until SHARE]

Shows the demo, and recordings if some are named, in the real app and paints what it draws; trains for a minute or two
to show policies at play. Needs Pillow, pygame, Box2D and DejaVu Sans Mono (Debian's fonts-dejavu-core). Braille and
block elements are painted as shapes, so they sit on the exact grid.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageDraw, ImageFont
from rich.color import ColorTriplet
from rich.segment import Segment
from textual.screen import Screen

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import Stop
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.demo.session import DemoSession
from rl_tui.tui.drawing.themes import DEFAULT
from rl_tui.tui.panes.meanwhile import meanwhile
from rl_tui.tui.runs.browsing import NoRun
from rl_tui.tui.screens.context import Runs
from rl_tui.tui.screens.watch import WatchScreen

SIZES = ((80, 24), (120, 40), (200, 60))
USUAL = (120, 40)
PAGES: dict[str, tuple[str, ...]] = {  # of the demo: name of the picture, keys that lead there
    "detail": ("2", "enter"),
    "chart": ("b", "f"),
    "crosshair": ("x", *["left"] * 12),
    "grid": ("number_sign",),
    "checkpoints": ("2", "k", "down", "down", "down"),
    "roll-back": ("2", "k", "down", "down", "down", "R"),
    "hyperparameters": ("u",),
    "lessons": ("h",),
    "devices": ("g",),
    "workers": ("W", "down"),
    "league": ("3", "H", *["down"] * 3),
    "log": ("l",),
    "warnings": ("w",),
    "configuration": ("Y", "d"),
    "runs": ("r", "J", "asterisk", "down", "asterisk"),
    "comparison": ("r", "J", "asterisk", "down", "asterisk", "enter"),
    "help": ("question_mark",),
    "palette": ("ctrl+p",),
    "leave": ("q",),
}
AT_EVERY_SIZE = ("grid", "league", "runs", "comparison")
LISTS = {"ranks": "ampersand"}  # recordings of which a list is shown instead of the overview, and the key to it
THEMES = ("rl-light", "high-contrast")
NOW = 1_795_000_000.0  # when the demo is shown: the same pictures every time
RESIZED_SECONDS = 1.0  # within which a frame of the new size has come
WARNED_SECONDS = 30  # until the demo's second warning has come
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN = 10, 20, 16, 12
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono{}.ttf"
FOREGROUND, BACKGROUND = (198, 198, 198), (18, 18, 18)
BRAILLE_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))  # bit -> column, row
RIGHT, LEFT, DOWN, UP = 1, 2, 4, 8
STROKES = {  # light box drawing: arms from the cell's middle
    "─": RIGHT | LEFT, "│": UP | DOWN, "╭": RIGHT | DOWN, "╮": LEFT | DOWN, "╰": RIGHT | UP, "╯": LEFT | UP,
    "└": RIGHT | UP, "┤": UP | DOWN | LEFT, "┼": UP | DOWN | LEFT | RIGHT, "┌": RIGHT | DOWN, "┐": LEFT | DOWN,
    "┘": LEFT | UP,
}  # fmt: skip


TRAINING = """\
behaviors:
  {name}:
    trainer_type: ppo
    hyperparameters: {{batch_size: 256, buffer_size: 2048, num_epoch: 6, learning_rate: 1.0e-3}}
    network_settings: {{hidden_units: 64, num_layers: 2, normalize: true}}
    reward_signals: {{extrinsic: {{gamma: 0.99, strength: 1.0}}}}
    max_steps: 10000000
    summary_freq: 5000
env_settings: {{env: "gymnasium:{environment}", num_envs: 16, seed: 1}}
checkpoint_settings: {{run_id: watched}}
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """Whose policy is shown at play, once it has trained for so many steps, in that step of an episode or later."""

    environment: str
    sizes: tuple[tuple[int, int], ...]
    trained_steps: int
    step: int

    def is_worth_a_picture(self, screen: Screen[object]) -> bool:
        """Whether that step has come, and an episode was played before."""
        scene = screen.picture.scene if isinstance(screen, WatchScreen) else None
        return scene is not None and bool(scene.returns) and scene.step >= self.step


WATCHED = {
    "CartPole": Watched("CartPole-v1", (USUAL,), 30_000, 60),
    "FrozenLake": Watched("FrozenLake-v1", ((80, 24),), 40_000, 3),
    "LunarLander": Watched("LunarLander-v3", SIZES, 150_000, 60),
}


def replay(events: Path, until: float) -> RunView:
    """The view after the first `until` (0 to 1) of the recorded time, its paths as seen from the folder of results."""
    text = events.read_text().replace(f"{events.resolve().parents[2]}/", "")
    envelopes = [decode(line) for line in text.splitlines() if line.strip()]
    end = envelopes[0].time + (envelopes[-1].time - envelopes[0].time) * until
    view = RunView()
    for envelope in envelopes:
        if envelope.time <= end:
            view.apply(envelope)
    return view


def demo() -> DemoSession:
    """The demo as it stands half a minute after its start."""
    session = DemoSession(speed=10.0, now=lambda: NOW)
    for _ in range(WARNED_SECONDS):
        session.playback.advance(1.0)
    session.live.fold()
    return session


async def picture(
    path: Path,
    session: Session,
    size: tuple[int, int],
    keys: Sequence[str] = (),
    *,
    runs: Runs | None = None,
    theme: str | None = None,
    screen_name: str = "",
    said: str = "",
) -> None:
    """Paint what the app shows of the session at `size`, after some keys. The rest as for TrainerApp."""
    app = TrainerApp(
        session,
        clock=lambda: session.live.view.now,
        runs=runs,
        theme=theme,
        bell=False,
        screen_name=screen_name,
        said=said,
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.4)  # what is read in a thread has come
        app.tick()
        await pilot.pause(0.2)
        rows = [list(strip) for strip in app.screen._compositor.render_strips()]
    paint(rows, size, path)
    print(path)


def paint(rows: Sequence[Sequence[Segment]], size: tuple[int, int], path: Path) -> None:
    """A PNG of the rows of segments."""
    width, height = size[0] * CELL_WIDTH + 2 * MARGIN, size[1] * CELL_HEIGHT + 2 * MARGIN
    image = Image.new("RGB", (width, height), BACKGROUND)
    draw = ImageDraw.Draw(image)
    fonts = {bold: ImageFont.truetype(FONT.format("-Bold" if bold else ""), FONT_SIZE) for bold in (False, True)}
    for row, segments in enumerate(rows):
        column = 0
        for segment in segments:
            style = segment.style
            front = _color(style.color.get_truecolor() if style and style.color else None, FOREGROUND)
            back = _color(style.bgcolor.get_truecolor() if style and style.bgcolor else None, BACKGROUND)
            for char in segment.text:
                corner = (MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT)
                _paint_cell(draw, char, corner, front, back, fonts[bool(style and style.bold)])
                column += 1
    image.quantize(colors=128, method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def _color(color: ColorTriplet | None, default: tuple[int, int, int]) -> tuple[int, int, int]:
    return (color.red, color.green, color.blue) if color else default


def _paint_cell(
    draw: ImageDraw.ImageDraw,
    char: str,
    corner: tuple[int, int],
    front: tuple[int, int, int],
    back: tuple[int, int, int],
    font: ImageFont.FreeTypeFont,
) -> None:
    x, y = corner
    code = ord(char)
    draw.rectangle((x, y, x + CELL_WIDTH - 1, y + CELL_HEIGHT - 1), fill=back)
    if 0x2800 <= code <= 0x28FF:
        for bit, (column, row) in enumerate(BRAILLE_DOTS):
            if (code - 0x2800) >> bit & 1:
                left, top = x + 1 + column * 5, y + 1 + row * 5
                draw.rectangle((left, top, left + 2, top + 2), fill=front)
    elif char == "▀":
        draw.rectangle((x, y, x + CELL_WIDTH - 1, y + CELL_HEIGHT // 2 - 1), fill=front)
    elif 0x2581 <= code <= 0x2588:
        top = y + CELL_HEIGHT - round(CELL_HEIGHT * (code - 0x2580) / 8)
        draw.rectangle((x, top, x + CELL_WIDTH - 1, y + CELL_HEIGHT - 1), fill=front)
    elif char == "━":
        draw.rectangle((x, y + CELL_HEIGHT // 2 - 2, x + CELL_WIDTH - 1, y + CELL_HEIGHT // 2 + 1), fill=front)
    elif char in STROKES:
        _paint_strokes(draw, STROKES[char], x, y, front)
    elif char.strip():
        draw.text((x, y), char, font=font, fill=front)


def _paint_strokes(draw: ImageDraw.ImageDraw, arms: int, x: int, y: int, front: tuple[int, int, int]) -> None:
    middle_x, middle_y = x + CELL_WIDTH // 2, y + CELL_HEIGHT // 2
    ends = {
        RIGHT: (x + CELL_WIDTH - 1, middle_y), LEFT: (x, middle_y),
        DOWN: (middle_x, y + CELL_HEIGHT - 1), UP: (middle_x, y),
    }  # fmt: skip
    for arm, end in ends.items():
        if arms & arm:
            draw.line(((middle_x, middle_y), end), fill=front)


async def paint_demo(folder: Path) -> None:
    """The overview at every size, and every other screen once."""
    for size in SIZES:
        await paint_page(folder / f"demo-overview-{name_of(size)}.png", size)
    for page, keys in PAGES.items():
        for size in SIZES if page in AT_EVERY_SIZE else (USUAL,):
            await paint_page(folder / f"demo-{page}-{name_of(size)}.png", size, keys)
    for theme in THEMES:
        await paint_page(folder / f"demo-{theme}-{name_of(USUAL)}.png", USUAL, theme=theme)


async def paint_page(path: Path, size: tuple[int, int], keys: Sequence[str] = (), theme: str | None = None) -> None:
    """What the demo shows after some keys."""
    session = demo()
    await picture(path, session, size, keys, runs=session.recordings, theme=theme)


async def paint_watched(folder: Path, name: str, watched: Watched) -> None:
    """The policy of a run that trains, at play."""
    with TemporaryDirectory(prefix="rl-tui-pictures-") as results, contextlib.chdir(results):
        os.environ["PWD"] = results
        text = TRAINING.format(name=name, environment=watched.environment)
        launch = Launch(EventBus())
        app = TrainerApp(launch, theme=DEFAULT, bell=False)
        launch.start(parse_config(text.encode(), "watched.yaml"))
        async with app.run_test(size=watched.sizes[0]) as pilot:
            while not app.view.behaviors or app.view.behavior(name).step < watched.trained_steps:
                await pilot.pause(0.5)
            await pilot.press("v")
            for size in watched.sizes:
                await pilot.resize_terminal(*size)
                await pilot.pause(RESIZED_SECONDS)
                while not watched.is_worth_a_picture(app.screen):
                    await pilot.pause(0.02)
                path = folder / f"watch-{name}-{name_of(size)}.png"
                paint([list(strip) for strip in app.screen._compositor.render_strips()], size, path)
                print(path)
        launch.watching.end()
        launch.send(Stop("now"))
        while not launch.wait(0.1):
            pass


async def paint_recording(name: str, events: Path, until: float, folder: Path) -> None:
    """The overview of a recorded run at every size, its second behavior selected where it has one; or a list."""
    if name in LISTS:
        view = replay(events, until)
        await picture(folder / f"{name}-{name_of(USUAL)}.png", NoRun(view), USUAL, (LISTS[name],))
        return
    for size in SIZES:
        view = replay(events, until)
        keys = ("2",) if len(view.behaviors) > 1 else ()
        await picture(folder / f"{name}-{name_of(size)}.png", NoRun(view), size, keys)


async def paint_attached(events: Path, until: float, folder: Path) -> None:
    """A run in another process at every size: the first words, a screen that only looks, and the dialog before a run is
    left running."""
    for size in SIZES:
        attached, viewed, left = (replay(events, until) for _ in range(3))
        viewed.controller = "pts/1 (process 4242)"
        await picture(folder / f"attached-{name_of(size)}.png", NoRun(attached), size, said=meanwhile(attached))
        await picture(folder / f"viewer-{name_of(size)}.png", NoRun(viewed), size, screen_name="pts/2 (process 4711)")
        await picture(folder / f"leave-{name_of(size)}.png", NoRun(left), size, ("q",))


def name_of(size: tuple[int, int]) -> str:
    """Columns and rows."""
    return f"{size[0]}x{size[1]}"


def main() -> None:
    """Paint everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    recordings_text = "what the pictures of a recorded run are called, and its events"
    parser.add_argument("recordings", metavar="NAME=FILE", nargs="*", help=recordings_text)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--until", type=float, default=0.9, help="share of the run that is shown")
    arguments = parser.parse_args()
    os.environ.update(LC_ALL="C.UTF-8", TERM="xterm-256color", COLORTERM="truecolor", TZ="UTC")
    time.tzset()
    arguments.out = arguments.out.absolute()
    asyncio.run(paint_demo(arguments.out))
    for name, watched in WATCHED.items():
        asyncio.run(paint_watched(arguments.out, name, watched))
    for recording in arguments.recordings:
        name, _, events = recording.partition("=")
        asyncio.run(paint_recording(name, Path(events), arguments.until, arguments.out))
    if arguments.recordings:
        asyncio.run(paint_attached(Path(events), arguments.until, arguments.out))


if __name__ == "__main__":
    main()
