"""The run's configuration and how others differ: every key, and files that are missing, broken or hostile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.messages import Envelope, HyperparameterChanged
from rl_tui.engine.session.view import RunView
from rl_tui.tui.panes.setting_row import changes_of
from rl_tui.tui.runs.configurations import compared, differing, read_settings
from rl_tui.tui.runs.setting_tree import opened_by_room, sections_of
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.recorded import some_runs
from tests.tui.screens.test_runs import FakeRuns, summary
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
RATE = "learning_rate"


def changed() -> RunView:
    """A run whose learning rate was changed twice."""
    story = scenes.healthy(2)
    for old, new in ((3e-4, 2e-4), (2e-4, 1e-4)):
        story.publish(HyperparameterChanged("Walker", 100_000, "learning_rate", old, new))
    return story.view()


def words(text: str, name: str) -> str:
    """The first line with that word, without its blanks and frame."""
    return " ".join(next(row for row in text.splitlines() if name in row).strip("│▸ ").split())


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
        text = await screen.until(RATE)
        assert words(text, RATE) == f"{RATE} 0.0003"
        assert words(text, "num_envs") == "* env_settings.num_envs 8 default 1"
        assert "Configuration · walker-ppo · 2 of 8 differ from the defaults" in text
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_what_differs_from_the_defaults_stands_first_with_them(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    path = tmp_path / "walker-ppo" / "configuration.yaml"
    path.write_text(
        path.read_text().replace(
            "    max_steps: 500000\n",
            "    max_steps: 5.0e5\n    network_settings:\n      memory:\n        sequence_length: 64\n"
            "        memory_size: 256\n    reward_signals:\n      extrinsic: {gamma: 0.98}\n"
            "      curiosity: {strength: 0.02}\n",
        )
    )
    async with Driven(changed(), (80, 40), opened="configuration", runs=archive) as screen:
        rows = [" ".join(row.split()) for row in (await screen.until(RATE)).splitlines()]
        first = rows.index("▸ ▾ Differs from the defaults")
        assert rows[first + 1 : first + 9] == [
            "* hyperparameters.batch_size 256 default 1024",
            "Δ hyperparameters.learning_rate 0.0003 now 0.0001 at 100k 11:18",
            "* network_settings.memory on default off",
            "* network_settings.memory.memory_size 256 default 128",
            "* reward_signals.extrinsic.gamma 0.98 default 0.99",
            "* reward_signals.curiosity on default off",
            "* reward_signals.curiosity.strength 0.02 default 1.0",
            "* env_settings.num_envs 8 default 1",
        ]
        assert rows[first + 9] == "▾ Walker"


async def test_sections_are_opened_and_closed(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), (80, 24), opened="configuration", runs=some_runs(tmp_path)) as screen:
        text = await screen.until("▾ env_settings")
        assert "▾ hyperparameters" in text
        text = await screen.press("enter")
        assert "▸ ▹ Differs from the defaults · 2 settings" in text
        assert "default 1024" in words(text, "batch_size")
        assert "▸ ▾ Differs" in await screen.press("enter")
        text = await screen.press("end")
        assert "▸     run_id" in text
        text = await screen.press("left")
        assert "▸ ▹ checkpoint_settings · 1 setting" in text, "the section around the setting, with the cursor"
        assert "run_id" not in text
        assert "run_id" in await screen.press("right")
        await screen.press("home", "down", "down", "down", "down", "down", "down")
        text = await screen.press("left")
        assert "▸   ▹ hyperparameters · 3 settings, 1 differ" in text
        assert "▸ ▹ Walker · 5 settings, 1 differ" in await screen.press("left")


def test_all_is_open_where_there_is_room_and_outer_sections_come_first() -> None:
    text = "behaviors:\n  A: {x: 1, y: {z: 1}}\n  B: {x: 1}\nenv_settings: {a: 1, b: 2}\ndebug: false\n"
    sections = sections_of(compared(read_settings(text), None, {}))
    assert [section.title for section in sections] == ["A", "B", "env_settings", "other"]
    a, b, env, rest = (section.path for section in sections)
    assert opened_by_room(sections, 11) == {a, b, env, rest, (*a, "y")}
    assert opened_by_room(sections, 10) == {a, b, env, rest}
    assert opened_by_room(sections, 7) == {a, b}
    assert opened_by_room(sections, 3) == set()


def test_section_with_a_single_section_has_both_names() -> None:
    sections = sections_of(compared(read_settings("a: {b: {c: {d: 1, e: 2}}}"), None, {}))
    assert [(section.title, section.path) for section in sections] == [("a.b.c", ("a", "b", "c"))]


async def test_filter_finds_settings_in_closed_sections(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), (80, 15), opened="configuration", runs=some_runs(tmp_path)) as screen:
        assert "num_envs" in await screen.until("Differs")
        text = await screen.press("slash", *"hyper", "enter")
        rows = [row for row in text.splitlines() if "hyperparameters." in row]
        assert len(rows) == 3, "each once, with its whole path"


async def test_defaults_that_are_not_known_are_reported(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    path = tmp_path / "walker-ppo" / "configuration.yaml"
    path.write_text(path.read_text().replace("trainer_type: ppo", "trainer_type: mine"))
    async with Driven(changed(), opened="configuration", runs=archive) as screen:
        text = await screen.until("the defaults are not known")
        assert "· 8 settings" in text
        assert "Changed while training" in text
        assert "now 0.0001 at 100k" in words(text, RATE)


async def test_other_runs_come_one_after_the_other_newest_first(tmp_path: Path) -> None:
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        for name in ("bold", "cut-short", "duo"):
            await screen.press("d")
            text = await screen.until(f"there: {name}")
            assert words(text, "run_id") == f"~ checkpoint_settings.run_id walker-ppo there: {name}"
        await screen.press("d")
        assert "2 of 8 differ from the defaults" in await screen.until("no longer compared")


async def test_only_differences_are_shown_on_demand(tmp_path: Path) -> None:
    async with Driven(changed(), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        assert "hidden" not in await screen.text()
        text = await screen.press("D")
        assert "defaults, others hidden" in text, "what is left out may be out of sight: the title says it"
        assert words(text, RATE) == f"Δ hyperparameters.{RATE} 0.0003 now 0.0001 at 100k 11:18"
        assert "max_steps" not in text
        await screen.press("d")
        text = await screen.until("there: bold")
        assert "there: 0.001" in text
        assert "differ, others hidden" in text
        assert words(text, "run_id") == "~ checkpoint_settings.run_id walker-ppo there: bold"
        assert "max_steps" not in text
        assert "max_steps" in await screen.press("D")


async def test_nothing_differs_in_words(tmp_path: Path) -> None:
    archive = some_runs(tmp_path)
    path = tmp_path / "walker-ppo" / "configuration.yaml"
    path.write_text(
        path.read_text().replace("batch_size: 256", "batch_size: 1024").replace("num_envs: 8", "num_envs: 1")
    )
    async with Driven(scenes.healthy(1).view(), opened="configuration", runs=archive) as screen:
        assert "none of 8 differ" in await screen.until(RATE)
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
        assert screen.clipboard == f"behaviors.Walker.hyperparameters.{RATE}: 0.0003"
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
        assert words(text, "beta") == "+ hyperparameters.beta 0.005 only here"
        assert words(text, "epsilon") == "- hyperparameters.epsilon 0.2 only there"


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
    rows = compared(here, there, {})
    paths = [row.path for row in rows]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if path in here] == list(here)
    assert set(paths) == set(here) | set(there)
    assert all((row.here, row.there) == (here.get(row.path), there.get(row.path)) for row in rows)


def test_settings_of_the_other_alone_stand_where_they_stand_there() -> None:
    here, there = {("a",): "1", ("b",): "2", ("c",): "3"}, {("a",): "1", ("x",): "4", ("y",): "5", ("c",): "3"}
    assert ["".join(row.path) for row in compared(here, there, {})] == ["a", "x", "y", "b", "c"]


def test_settings_are_read_with_lists_dictionaries_and_odd_keys() -> None:
    text = "a: {}\nb: [1, null, true]\nc:\n  - {d: 1}\n  - {d: 2}\n5: 1.5\n"
    read = read_settings(text)
    assert read == {("a",): "{}", ("b",): "[1, null, true]", ("c", "0", "d"): "1", ("c", "1", "d"): "2", ("5",): "1.5"}


def test_differing_settings_are_those_of_the_behavior_whatever_its_name() -> None:
    one = read_settings("behaviors:\n  A: {lr: 1, beta: 2}\n  B: {lr: 9}\ncheckpoint_settings: {run_id: x}\n")
    other = read_settings("behaviors:\n  C: {lr: 3, beta: 2, gamma: 1}\ncheckpoint_settings: {run_id: y}\n")
    assert differing([(one, "A"), (other, "C")]) == [[("lr", "1"), ("gamma", "-")], [("lr", "3"), ("gamma", "1")]]
    assert differing([]) == []


def test_section_that_one_run_lacks_is_one_line() -> None:
    hills = {("environment_parameters", "height", "curriculum", str(at), "value"): f"{at}" for at in range(4)}
    with_hills, without = {("seed",): "1", **hills}, {("seed",): "2"}
    both = [("environment_parameters", "4 settings")]
    assert differing([(with_hills, "A"), (without, "A")]) == [
        [("seed", "1"), *both],
        [("seed", "2"), ("environment_parameters", "-")],
    ]
    assert [row[-1][1] for row in differing([(with_hills, "A"), (with_hills, "A"), (without, "A")])] == [
        "4 settings"
    ] * 2 + ["-"]
    other = {**with_hills, ("environment_parameters", "height", "curriculum", "2", "value"): "7"}
    assert [len(row) for row in differing([(with_hills, "A"), (other, "A"), (without, "A")])] == [5, 5, 5]
    few = {("environment_parameters", "gravity"): "9"}
    assert differing([(few, "A"), ({}, "A")]) == [[("gravity", "9")], [("gravity", "-")]]


SOURCES = {
    "preset": (("behaviors", "Walker", "max_steps"), ("behaviors", "Walker", "hyperparameters", "learning_rate")),
    "--set": (("behaviors", "Walker", "hyperparameters", "batch_size"),),
    "--num-envs": (("env_settings", "num_envs"),),
}


def with_sources(view: RunView) -> RunView:
    """The same run, which began with these sources."""
    assert view.run is not None
    view.apply(Envelope(view.position[1] + 1, view.now, replace(view.run, sources=SOURCES)))
    return view


@pytest.mark.parametrize("size", SIZES.values())
async def test_every_setting_says_where_it_is_from(size: tuple[int, int], tmp_path: Path) -> None:
    async with Driven(with_sources(changed()), size, opened="configuration", runs=some_runs(tmp_path)) as screen:
        text = await screen.until(RATE)
        assert words(text, "batch_size") == "* hyperparameters.batch_size 256 default 1024 --set"
        assert words(text, "num_envs") == "* env_settings.num_envs 8 default 1 --num-envs"
        assert words(text, " max_steps") == "max_steps 500000 preset"
        assert words(text, "trainer_type") == "trainer_type ppo", "a default has no source"
        rows = [row for row in text.splitlines() if row.rstrip(" │").endswith(("--set", "preset", "11:18"))]
        assert len(rows) >= 4
        when = "11:18" if size[0] < 100 else "changed"
        assert len({max(row.find(word) for word in ("--set", "preset", when)) for row in rows}) == 1, "a column"
        await screen.press("down", "y")
        assert screen.clipboard == "behaviors.Walker.hyperparameters.batch_size: 256 (default 1024; from --set)"
        await screen.press("down", "y")
        assert screen.clipboard.endswith(f"{RATE}: 0.0003 (now 0.0001 at 100k; changed 11:18)")
        text = await screen.press("slash", *"--num", "enter")
        assert "num_envs" in text
        assert "batch_size" not in text


async def test_changed_value_stands_beside_that_of_another_run(tmp_path: Path) -> None:
    async with Driven(with_sources(changed()), (80, 24), opened="configuration", runs=some_runs(tmp_path)) as screen:
        await screen.until(RATE)
        await screen.press("d")
        row = words(await screen.until("there: bold"), RATE)
        assert row == f"~ hyperparameters.{RATE} 0.0003 there: 0.001 now 0.0001 11:18"


def test_change_of_a_reward_signal_belongs_to_its_own_key() -> None:
    story = scenes.healthy(1)
    story.publish(HyperparameterChanged("Walker", 100_000, "reward_signals.curiosity.learning_rate", 3e-4, 2e-4))
    story.publish(HyperparameterChanged("Walker", 100_000, "learning_rate", 3e-4, 2e-4))
    assert set(changes_of(story.view()).live) == {
        ("behaviors", "Walker", "reward_signals", "curiosity", "learning_rate"),
        ("behaviors", "Walker", "hyperparameters", "learning_rate"),
    }
