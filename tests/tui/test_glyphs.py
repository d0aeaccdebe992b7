"""Signs that the terminal can show."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from rl_tui.tui.drawing.glyphs import ASCII, UNICODE, Glyphs, glyphs_for


@pytest.mark.parametrize(
    ("environment", "glyphs"),
    [
        ({"LANG": "de_DE.UTF-8"}, UNICODE),
        ({"LANG": "en_US.utf8"}, UNICODE),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, ASCII),
        ({"LC_ALL": "", "LC_CTYPE": "en_US.ISO-8859-1"}, ASCII),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, ASCII),
        ({"LANG": "en_US.UTF-8", "TERM": "vt100"}, ASCII),
        ({"LANG": "en_US.UTF-8", "TERM": "xterm-256color"}, UNICODE),
    ],
)
def test_they_follow_locale_and_terminal(environment: dict[str, str], glyphs: Glyphs) -> None:
    assert glyphs_for(environment) is glyphs
    assert glyphs_for(environment, is_ascii=True) is ASCII


def test_ascii_is_ascii_and_takes_the_same_room() -> None:
    for name, sign in asdict(ASCII).items():
        if isinstance(sign, str):
            assert sign.isascii()
            assert len(sign) == len(asdict(UNICODE)[name])
