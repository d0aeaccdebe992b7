"""The pages say what the program does."""

from __future__ import annotations

import os
import re
from itertools import groupby
from pathlib import Path

import pytest

from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.sac.settings import SACSettings
from rl_tui.tui.drawing.themes import THEMES
from rl_tui.tui.keys.keymap import KEYMAP, Key
from rl_tui.tui.keys.user_keys import read_user_keys
from rl_tui.tui.screens.base import SCREENS

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent
SCREEN_PAGE = DOCS / "screen.md"
BEGIN, END = "<!-- keys: UPDATE_SNAPSHOTS=1 pytest tests/test_docs.py writes this table -->", "<!-- end of keys -->"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
PLUGIN_TESTS = ROOT / "tests/end_to_end/test_plugins.py"
EXAMPLE = re.compile(r"^```yaml *(.*)\n((?:.*\n)*?)```$", re.MULTILINE)  # its kind stands after the language
EXAMPLES = [
    pytest.param(kind, text, id=f"{page.name}:{number}")
    for page in PAGES
    for number, (kind, text) in enumerate(EXAMPLE.findall(page.read_text()), 1)
]


def key_tables() -> str:
    """Every command of the keymap in tables, a group each."""
    groups = [(group, list(keys)) for group, keys in groupby(KEYMAP, key=lambda key: key.group)]
    return "\n\n".join(f"### {group}\n\n{table(keys)}" for group, keys in groups)


def table(keys: list[Key]) -> str:
    """One group's commands: keys, what they do, where, and the name for keys.yaml."""
    rows = ["| key | does | where | name |", "|---|---|---|---|"]
    for key in keys:
        where = "everywhere" if key.places in (("run",), ("anywhere",)) else ", ".join(key.places)
        shown = ", ".join(f"`{one}`" for one in key.shown.split(", "))
        rows.append(f"| {shown} | {key.explained} | {where} | `{key.id}` |")
    return "\n".join(rows)


def test_page_of_the_screen_has_every_key() -> None:
    text = SCREEN_PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, "the markers are gone"
    wanted = f"{before}{BEGIN}\n\n{key_tables()}\n\n{END}{after}"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SCREEN_PAGE.write_text(wanted)
    assert text == wanted or os.environ.get("UPDATE_SNAPSHOTS"), "docs/screen.md is behind the keymap"


@pytest.mark.parametrize("name", [*SCREENS, *THEMES])
def test_page_of_the_screen_names_every_screen_and_theme(name: str) -> None:
    assert re.search(rf"\b{re.escape(name)}\b", SCREEN_PAGE.read_text(), re.IGNORECASE)


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_every_example_of_a_file_is_one_that_the_program_takes(kind: str, text: str, tmp_path: Path) -> None:
    match kind:
        case "keys":
            (tmp_path / "keys.yaml").write_text(text)
            assert read_user_keys(tmp_path).problems == ()
        case "configuration":
            parse_config(text.encode(), "example.yaml")
        case "part of a configuration":
            parse_config(f"behaviors: {{Any: {{trainer_type: ppo}}}}\n{text}".encode(), "example.yaml")
        case file if file.startswith("rl-tui-"):
            assert PLUGIN_TESTS.exists(), "trains from it"
        case _:
            pytest.fail("must be keys, configuration or part of a configuration, after ```yaml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_file_and_folder_that_the_architecture_names_exists() -> None:
    text = (DOCS / "architecture.md").read_text()
    names = re.findall(r"`([a-z_/]+(?:\.py|/))`", text)
    files = [
        f"/{path.relative_to(ROOT)}"
        for room in ("engine", "src", "tests", "tui")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert "engine/config/" in names
    assert [name for name in names if not any(f"/{name}" in file for file in files)] == []


@pytest.mark.parametrize(("trainer", "settings"), [("PPO", PPOSettings), ("SAC", SACSettings)])
def test_page_of_checkpoints_lists_what_can_be_changed(trainer: str, settings: type[Hyperparameters]) -> None:
    (row,) = re.findall(rf"^\| {trainer} \| (`.*) \|$", (DOCS / "checkpoints.md").read_text(), re.MULTILINE)
    assert tuple(re.findall("`(.*?)`", row)) == settings.changeable
