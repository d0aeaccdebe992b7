"""Colors differ on every terminal and for every kind of color vision, and none are needed."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console
from textual.color import Color
from textual.command import CommandList

import rl_tui.tui
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.drawing.lines import SERIES, Tone
from rl_tui.tui.drawing.themes import THEMES, colors_of
from rl_tui.tui.state.preferences import Preferences
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text

EXACT = ("rl-dark", "rl-light", "high-contrast")
OWN = ("ansi", "ansi-light")
TEXTS = ("text-plain", "text-dim", "text-strong", "accent-color", "good", "wait", "warn", "bad")
GRAPHICS = ("text-faint", *SERIES)
CUBE = (0, 95, 135, 175, 215, 255)

# What a dichromat sees, on linear RGB (Machado, Oliveira and Fernandes 2009, table 1 at severity 1).
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}

SIXTEEN = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")  # and the same, bright
PALETTES = {  # what terminals make of them
    "xterm": (
        "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
        "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff"
    ),
    "VGA": (
        "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
        "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff"
    ),
    "Tango": (
        "2e3436 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf "
        "555753 ef2929 8ae234 fce94f 729fcf ad7fa8 34e2e2 eeeeec"
    ),
    "VS Code": (
        "000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5 "
        "666666 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db e5e5e5"
    ),
}


def in_palette(name: str, color: str) -> str:
    """What the terminal shows for one of its own colors."""
    word = color.removeprefix("ansi_").removeprefix("bright_")
    return "#" + PALETTES[name].split()[SIXTEEN.index(word) + 8 * ("bright_" in color)]


def channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def linear(color: str) -> list[float]:
    parts = [channel / 255 for channel in channels(color)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2."""
    lights = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in (linear(one), linear(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def lab(color: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of what is seen of the color."""
    red, green, blue = (
        min(1.0, max(0.0, sum(m * part for m, part in zip(row, linear(color), strict=True)))) for row in matrix
    )
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0888,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", EXACT)
def test_text_stands_out_from_its_ground(name: str) -> None:
    colors = colors_of(name)
    for ground in ("ground", "raised"):
        for meaning in TEXTS:
            assert contrast(colors[meaning], colors[ground]) >= 4.5, (meaning, ground)
    for meaning in GRAPHICS:
        assert contrast(colors[meaning], colors["ground"]) >= 3, meaning
    assert contrast(colors["flag-text"], colors["flag-ground"]) >= 4.5
    assert contrast(colors["accent-text"], colors["accent-color"]) >= 4.5


def test_high_contrast_is_high() -> None:
    colors = colors_of("high-contrast")
    assert min(contrast(colors[meaning], colors["ground"]) for meaning in (*TEXTS, *GRAPHICS, "frame")) >= 7


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("name", EXACT)
def test_series_differ_for_every_kind_of_color_vision(name: str, blindness: str) -> None:
    """12 in CIE 1976 is more than five times what one just notices; the original colors of Okabe and Ito reach 16."""
    seen = [lab(colors_of(name)[series], BLINDNESS[blindness]) for series in SERIES]
    assert min(math.dist(one, other) for one, other in itertools.combinations(seen, 2)) >= 12


@pytest.mark.parametrize("name", EXACT)
def test_colors_are_exact_among_256(name: str) -> None:
    for meaning, color in colors_of(name).items():
        red, green, blue = channels(color)
        is_gray = red == green == blue and (red - 8) % 10 == 0
        assert is_gray or all(channel in CUBE for channel in (red, green, blue)), meaning


@pytest.mark.parametrize("name", OWN)
def test_the_terminals_own_colors_are_nothing_else(name: str) -> None:
    """And none that is next to invisible on the ground it is for."""
    colors = colors_of(name)
    assert all(re.fullmatch(r"ansi_\w+|transparent", color) for color in colors.values())
    invisible = {"ansi_black", "ansi_blue"} if name == "ansi" else {"ansi_white", "ansi_bright_white", "ansi_yellow"}
    assert invisible.isdisjoint(colors[meaning] for meaning in (*TEXTS, *GRAPHICS))
    assert len({colors[series] for series in SERIES}) == len(SERIES)


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("name", "ground"), [("ansi", "#000000"), ("ansi-light", "#ffffff")])
def test_the_terminals_own_colors_stand_out_from_their_ground(name: str, ground: str, palette: str) -> None:
    """By a little less than exact colors, since palettes differ."""
    colors = {meaning: color for meaning, color in colors_of(name).items() if color != "ansi_default"}
    for meanings, least in ((TEXTS, 4.0), (GRAPHICS, 2.8)):
        for meaning in colors.keys() & set(meanings):
            assert round(contrast(in_palette(palette, colors[meaning]), ground), 1) >= least, meaning


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("name", "ground"), [("ansi", "#000000"), ("ansi-light", "#ffffff")])
def test_first_series_of_the_terminals_own_colors_are_readable_and_differ(name: str, ground: str, palette: str) -> None:
    first = [in_palette(palette, colors_of(name)[series]) for series in SERIES[:3]]
    assert min(contrast(color, ground) for color in first) >= 4.5
    for matrix in BLINDNESS.values():
        assert min(math.dist(*pair) for pair in itertools.combinations([lab(c, matrix) for c in first], 2)) >= 30


def test_every_tone_and_every_variable_has_its_color() -> None:
    style = (Path(rl_tui.tui.__file__).parent / "app.tcss").read_text()
    assert {f"tone--{tone}" for tone in get_args(Tone)} <= set(re.findall(r"tone--[\w-]+", style))
    assert set(re.findall(r"\$([\w-]+)", style)) <= set(colors_of("rl-dark"))
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*})", style)


@pytest.mark.parametrize("name", THEMES)
async def test_every_theme_draws_every_tone(name: str) -> None:
    view = scenes.healthy(3, gpus=2).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, theme=name)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        text = await settled_text(pilot)
        assert "Walker" in text
        styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip]
        used = {style.color for style in styles if style is not None and style.color is not None}
        if name in OWN:
            assert all(color.is_system_defined or color.is_default for color in used)
        else:
            assert {color.get_truecolor().hex for color in used} <= set(colors_of(name).values())


@pytest.mark.parametrize("name", [*THEMES, "none"])
async def test_the_chosen_command_of_the_palette_stands_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the color that is for text on the accent; underlined where there are no colors."""
    if name == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, theme=None if name == "none" else name)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await pilot.press("ctrl+p")
        while "select Walker" not in (await settled_text(pilot)):
            await pilot.pause()
        styles = [
            segment.style
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if "select Walker" in segment.text and segment.style is not None
        ]
        if name == "none":
            assert [(style.bold, style.underline) for style in styles] == [(True, True)]
        else:
            chosen = app.screen.query_one(CommandList).get_component_styles("option-list--option-highlighted")
            expected = colors_of(name)
            wanted = [Color.parse(expected[meaning]).rich_color for meaning in ("accent-text", "accent-color")]
            assert [chosen.color.rich_color, chosen.background.rich_color] == wanted
            assert [[style.color, style.bgcolor] for style in styles] == [wanted]


async def test_a_theme_is_chosen_by_key_and_remembered(tmp_path: Path) -> None:
    view = scenes.healthy(1).view()
    for expected in ("rl-dark", "rl-light"):
        app = TrainerApp(FakeSession(view), clock=lambda: view.now, preferences=Preferences(tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            app.tick()
            assert app.theme == expected
            await pilot.press("T")
            assert f"theme {app.theme}" in await settled_text(pilot)
            assert app.screen.styles.background.hex.lower() == colors_of(app.theme)["ground"]
            if expected == "rl-light":
                assert app.theme == "ansi"
    assert Preferences(tmp_path).theme() == "ansi"
    asked = TrainerApp(FakeSession(view), theme="high-contrast", preferences=Preferences(tmp_path))
    async with asked.run_test():
        assert asked.theme == "high-contrast"


async def test_a_terminal_of_16_colors_gets_its_own() -> None:
    app = TrainerApp(FakeSession(scenes.healthy(1).view()))
    app.console = Console(color_system="standard", force_terminal=True)
    async with app.run_test():
        assert app.theme == "ansi"


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("variable", [("NO_COLOR", ""), ("TERM", "vt100")])
async def test_no_color_means_none(name: str, variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*variable)
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now, theme=name)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await settled_text(pilot)
        parts = app.screen.draw(app._frame())
        styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip]
        colors = [color for style in styles if style for color in (style.color, style.bgcolor) if color]
        assert all(color.is_default for color in colors)
        assert not any(re.search(r"\x1b\[[\d;]*[34]8;|\x1b\[(?:\d+;)*[349]\d[;m]", part.text) for part in parts)
