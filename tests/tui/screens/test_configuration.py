"""The run's configuration and how others differ: every key, and files that are missing, broken or hostile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.messages import HyperparameterChanged
from rl_tui.engine.session.view import RunView
from rl_tui.tui.runs.configurations import compared, differing, read_settings
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import some_runs
from tests.tui.screens.test_runs import FakeRuns, summary
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
RATE = "behaviors.Walker.hyperparameters.learning_rate"


def changed() -> RunView:
    """A run whose learning rate was changed twice."""
    story = scenes.healthy(2)
    for old, new in ((3e-4, 2e-4), (2e-4, 1e-4)):
        story.publish(HyperparameterChanged("Walker", 100_000, "learning_rate", old, new))
    return story.view()


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_difference_looks_as_it_should(size: str, tmp_path: Path) -> None:
    async with Driven(changed(), SIZES[size], opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        await screen.press("d")
        check(f"configuration-{size}", await screen.until("there: bold"))


@pytest.mark.parametrize("size", SIZES.values())
async def test_key_opens_it_and_every_setting_stands_there(size: tuple[int, int], tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), size, runs=some_runs(tmp_path)) as screen:
        await screen.press("Y")
        text = await screen.until(f"{RATE}: 0.0003")
        assert "env_settings.num_envs: 8" in text
        assert "Configuration · walker-ppo · 8 settings" in text
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_other_runs_come_one_after_the_other_newest_first(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        for name in ("bold", "cut-short", "duo"):
            await screen.press("d")
            text = await screen.until(f"there: {name}")
            assert f"~ checkpoint_settings.run_id: walker-ppo · there: {name}" in text
        await screen.press("d")
        assert "8 settings" in await screen.until("no longer compared")


async def test_only_differences_are_shown_on_demand(tmp_path: Path) -> None:
    async with Driven(changed(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        assert "hidden" not in await screen.text()
        text = await screen.press("D")
        assert "settings, unchanged hidden" in text, "what is left out may be out of sight: the title says it"
        assert f"{RATE}: 0.0003 · now 0.0001" in text
        assert "batch_size" not in text
        await screen.press("d")
        text = await screen.until("there: bold")
        assert "there: 0.001" in text
        assert "differ, others hidden" in text
        assert "run_id: walker-ppo · there: bold" in text
        assert "batch_size" not in text
        assert "batch_size" in await screen.press("D")


async def test_nothing_differs_in_words(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        assert "nothing differs" in await screen.press("D")


async def test_filter_copy_and_whole_value(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    path = tmp_path / "walker-ppo" / "configuration.yaml"
    path.write_text(path.read_text() + f"env_kwargs:\n  text: {'long ' * 60}end\n")
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=archive) as screen:
        await screen.until(RATE)
        text = await screen.press("slash", *"rate|kwargs", "enter")
        assert "batch_size" not in text
        await screen.press("y")
        assert screen.clipboard == f"{RATE}: 0.0003"
        assert "long end" not in await screen.press("down")
        assert "long end" in await screen.press("enter")
        assert "long end" not in await screen.press("enter")


async def test_settings_of_one_file_alone_are_distinguished_in_words(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    path = tmp_path / "bold" / "configuration.yaml"
    path.write_text(path.read_text().replace("      beta: 0.005\n", "      epsilon: 0.2\n"))
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=archive) as screen:
        await screen.until(RATE)
        await screen.press("d")
        text = await screen.until("there: bold")
        assert "+ behaviors.Walker.hyperparameters.beta: 0.005 · only here" in text
        assert "- behaviors.Walker.hyperparameters.epsilon: 0.2 · only there" in text


async def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=FakeRuns(summary("other"))) as screen:
        await screen.until("the configuration cannot be read: walker-ppo: no configuration")
        assert "nothing to compare" in await screen.press("d")
    archive = some_runs(tmp_path)
    (tmp_path / "bold" / "configuration.yaml").write_text("a: [1,\n\x1b[31m")
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=archive) as screen:
        await screen.until(RATE)
        await screen.press("d")
        assert "\x1b" not in await screen.until("bold: not YAML")
        await screen.press("d")
        await screen.until("there: cut-short")


async def test_lonely_run_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    for name in ("bold", "cut-short", "duo"):
        (tmp_path / name).rename(tmp_path / f".{name}")
        (tmp_path / f".{name}").rename(tmp_path.parent / f"{tmp_path.name}-{name}")
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=archive) as screen:
        await screen.until(RATE)
        await screen.press("d")
        await screen.until("there is no other run in this folder")


@pytest.mark.parametrize(
    ("view", "words"), [(RunView(), "has no folder here"), (scenes.healthy(1).view(), "has no folder here")]
)
async def test_run_without_a_folder_says_so(view: RunView, words: str) -> None:
    async with Driven(view, opened="configuration") as screen:
        assert words in await screen.text()
        assert "nothing to compare" in await screen.press("d")


async def test_engine_that_starts_has_no_configuration_yet(tmp_path: Path) -> None:
    async with Driven(RunView(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        assert "the engine is starting" in await screen.text()
        run = scenes.healthy(1).view().run
        assert run is not None
        await screen.publish(run)
        await screen.until(RATE)


settings = st.dictionaries(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), st.sampled_from("12"))


@given(settings, settings)
def test_comparison_has_every_setting_once_and_keeps_the_order(
    here: dict[tuple[str, str], str], there: dict[tuple[str, str], str]
) -> None:
    rows = compared(here, there)
    paths = [row.path for row in rows]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if path in here] == list(here)
    assert set(paths) == set(here) | set(there)
    assert all((row.here, row.there) == (here.get(row.path), there.get(row.path)) for row in rows)


def test_settings_of_the_other_alone_stand_where_they_stand_there() -> None:
    here, there = {("a",): "1", ("b",): "2", ("c",): "3"}, {("a",): "1", ("x",): "4", ("y",): "5", ("c",): "3"}
    assert ["".join(row.path) for row in compared(here, there)] == ["a", "x", "y", "b", "c"]


def test_settings_are_read_with_lists_dictionaries_and_odd_keys() -> None:
    text = "a: {}\nb: [1, null, true]\nc:\n  - {d: 1}\n  - {d: 2}\n5: 1.5\n"
    read = read_settings(text)
    assert read == {("a",): "{}", ("b",): "[1, null, true]", ("c", "1", "d"): "1", ("c", "2", "d"): "2", ("5",): "1.5"}


def test_differing_settings_are_those_of_the_behavior_whatever_its_name() -> None:
    one = read_settings("behaviors:\n  A: {lr: 1, beta: 2}\n  B: {lr: 9}\ncheckpoint_settings: {run_id: x}\n")
    other = read_settings("behaviors:\n  C: {lr: 3, beta: 2, gamma: 1}\ncheckpoint_settings: {run_id: y}\n")
    assert differing([(one, "A"), (other, "C")]) == [[("lr", "1"), ("gamma", "-")], [("lr", "3"), ("gamma", "1")]]
    assert differing([]) == []
