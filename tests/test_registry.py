"""Plug-ins that are built in or installed, and what a user reads of one that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine import registry
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.plugins import BASES, list_plugins
from rl_tui.engine.config.support import list_warnings
from rl_tui.engine.errors import ConfigError, NotSupportedError, PluginError
from rl_tui.tui.cli import main
from rl_tui.tui.command_line.plugin_list import paragraphs
from tests.packages import Packages

CODE = """
from typing import ClassVar
from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule

class OwnSettings(Hyperparameters):
    \"\"\"A trainer of
    one's own (Doe et al. 2020). It learns.\"\"\"
    implementation: ClassVar = "own_trainer:OwnTrainer"
    learning_rate: float = 0.5
    learning_rate_schedule: Schedule = "constant"

class OwnTrainer:
    pass
"""
FILE = """\
behaviors:
  A:
    trainer_type: %s
env_settings:
  env: toy:line
"""


def install(packages: Packages, code: str = CODE, package: str = "own_trainer", name: str = "own") -> None:
    packages.install(package, code, trainers=f"{name} = {package}:OwnSettings")


def outputs(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def listed(name: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What `rl-tui plugins --json` has of a name."""
    _, out, _ = outputs(["plugins", "--json"], capsys)
    return [plugin for plugin in map(json.loads, out.splitlines()) if plugin["name"] == name]


def test_names_are_those_built_in_then_those_installed(packages: Packages) -> None:
    before = registry.names("trainers")
    install(packages)
    assert before == list(registry.BUILT_IN["trainers"])
    assert registry.names("trainers") == [*before, "own"]
    assert registry.settings_class("trainers", "own").__name__ == "OwnSettings"
    assert registry.implementation("trainers", "own").__name__ == "OwnTrainer"
    assert registry.package_of("trainers", "own") == "own_trainer 1.0"
    assert registry.package_of("trainers", "ppo") == ""
    with pytest.raises(
        NotSupportedError, match=r"^trainers: owl is not supported yet; there are ppo, sac, poca, mappo, bc, own$"
    ):
        registry.settings_class("trainers", "owl")


def test_every_kind_has_a_base_class_of_settings_and_each_built_in_one_is_described() -> None:
    assert set(BASES) == set(registry.BUILT_IN)
    for plugin in list_plugins():
        assert issubclass(registry.settings_class(plugin.kind, plugin.name), BASES[plugin.kind])
        assert plugin.about.endswith("."), plugin.name
        assert "\n" not in plugin.about


def test_installed_packages_are_searched_once(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages)
    found, searches = registry.entry_points, []

    def search() -> Any:
        searches.append(1)
        return found()

    monkeypatch.setattr(registry, "entry_points", search)
    for trainer in ("own", "ppo"):
        parse_config((FILE % trainer).encode(), "c.yaml")
    assert len(searches) == 1


def test_installed_one_is_listed_with_its_package(packages: Packages, capsys: pytest.CaptureFixture[str]) -> None:
    install(packages)
    assert listed("own", capsys) == [
        {
            "kind": "trainers",
            "name": "own",
            "package": "own_trainer 1.0",
            "target": "own_trainer:OwnSettings",
            "state": "usable",
            "about": "A trainer of one's own (Doe et al. 2020).",
            "problem": "",
        }
    ]
    code, out, err = outputs(["plugins"], capsys)
    assert (code, err) == (0, "")
    assert "\n  own              own_trainer 1.0  A trainer of one's own (Doe et al. 2020).\n" in out
    assert "\n  poca             built in         Hyperparameters of posthumous " in out
    for heading in ("trainers", "reward signals", "encoders of images", "environments", "writers of statistics"):
        assert f"\n{heading} (" in f"\n{out}"


def test_list_fits_eighty_columns(packages: Packages) -> None:
    install(packages, CODE.replace("A trainer of", "A trainer with many words to say about " + "itself, " * 9))
    lines = paragraphs(list_plugins(), 80).splitlines()
    assert max(map(len, lines)) <= 80
    start = "  own              own_trainer 1.0  "
    place = next(number for number, line in enumerate(lines) if line.startswith(start))
    assert lines[place + 1].startswith(" " * len(start) + "itself,")


UNUSABLE = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "exits": ("import sys; sys.exit('no license')", "SystemExit: no license"),
    "is not there": ("", "AttributeError: module 'own_trainer' has no attribute 'OwnSettings'"),
    "no class": ("OwnSettings = None", "TypeError: must be a class, got None"),
    "no subclass": ("class OwnSettings: pass", "TypeError: must be a subclass of Hyperparameters, got OwnSettings"),
    "unknown type": (
        CODE + "    \nclass Other(OwnSettings):\n    x: 'Nowhere'\nOwnSettings = Other\n",
        "PydanticUndefinedAnnotation: name 'Nowhere' is not defined",
    ),
    "no type of a file": (
        CODE + "from types import FunctionType\nfrom typing import Callable\n"
        "class Other(OwnSettings):\n    x: Callable[[], int]\nOwnSettings = Other\n",
        "PydanticInvalidForJsonSchema: Cannot generate a JsonSchema for core_schema.CallableSchema",
    ),
}

SAID = 'implementation: ClassVar = "own_trainer:OwnTrainer"'
for _case, _said, _reason in (
    ("a field", f"{SAID[:14]}: str = ''", "implementation must be a ClassVar, as in `implementation: ClassVar = ...`"),
    ("nothing implements it", "implementation: ClassVar = ''", 'implementation must be "module:Class", got ""'),
    ("no colon", "implementation: ClassVar = 'own'", 'implementation must be "module:Class", got "own"'),
    ("no text", "implementation: ClassVar = None", 'implementation must be "module:Class", got null'),
    ("needs a list", f"{SAID}\n    needs: ClassVar = ['numpy']", "needs must be a dict, got ['numpy']"),
    (
        "needs no package",
        f"{SAID}\n    needs: ClassVar = {{'numpy': None}}",
        "needs must have a package for each module, as text, got {'numpy': None}",
    ),
    ("extra a field", f"{SAID}\n    extra: str = 'a'", "extra must be a ClassVar, as in `extra: ClassVar = ...`"),
):
    UNUSABLE[_case] = (CODE.replace(SAID, _said), f"TypeError: {_reason}")


@pytest.mark.filterwarnings("ignore:Field name")  # of pydantic, where it sees a field of that name
@pytest.mark.parametrize(("code", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_one_that_cannot_be_used_is_refused_where_it_is_named_and_harms_nothing_else(
    code: str, reason: str, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages, code)
    about = f"own of own_trainer 1.0 (trainers: own_trainer:OwnSettings) cannot be used: {reason}"
    path = tmp_path / "own.yaml"
    path.write_text(FILE % "own")
    for words in (["--no-ui"], ["--dry-run"]):
        ended, out, err = outputs([str(path), *words, "--results-dir", str(tmp_path / "results")], capsys)
        assert (ended, out) == (2, "")
        assert err.startswith(f"{path}:3:19: behaviors.A.trainer_type: {about}")
        assert len(err.splitlines()) == 1
    ended, out, err = outputs(["schema"], capsys)
    assert (ended, err.startswith(about)) == (0, True)
    assert "own" not in json.loads(out)["$defs"]["BehaviorConfig"]["properties"]["trainer_type"]["enum"]
    [plugin] = listed("own", capsys)
    assert (plugin["state"], plugin["problem"].startswith(reason)) == ("unusable", True)
    assert f"own_trainer 1.0  Cannot be used: {reason}" in outputs(["plugins"], capsys)[1]
    path.write_text(FILE % "nothing")
    text = 'must be ppo, sac, poca, mappo or bc, got "nothing". `rl-tui plugins` lists what is installed'
    assert text in outputs([str(path), "--dry-run"], capsys)[2]
    path.write_text(FILE % "ppo")
    assert outputs([str(path), "--dry-run"], capsys)[::2] == (0, "")


def test_name_of_two_packages_is_refused(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages)
    install(packages, package="other_trainer")
    text = "own (trainers) is provided by other_trainer 1.0 and own_trainer 1.0: uninstall one of them"
    path = tmp_path / "own.yaml"
    path.write_text(FILE % "own")
    for words in (["--no-ui"], ["--dry-run"]):
        ended, _, err = outputs([str(path), *words], capsys)
        assert (ended, err) == (2, f"{path}:3:19: behaviors.A.trainer_type: {text}\n")
    assert outputs(["schema"], capsys)[2] == f"{text}\n"
    found = listed("own", capsys)
    assert [plugin["package"] for plugin in found] == ["other_trainer 1.0", "own_trainer 1.0"]
    assert {(plugin["state"], plugin["problem"]) for plugin in found} == {("unusable", text)}
    with pytest.raises(PluginError):
        registry.implementation("trainers", "own")


def test_name_of_a_built_in_one_is_not_taken_and_every_run_warns(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages, "1 / 0", name="ppo")
    assert registry.settings_class("trainers", "ppo").__name__ == "PPOSettings"
    assert registry.names("trainers").count("ppo") == 1
    path = tmp_path / "own.yaml"
    path.write_text(FILE % "ppo")
    ended, _, err = outputs([str(path), "--dry-run"], capsys)
    warning = "ppo of own_trainer 1.0 (trainers) is not used: that is the name of a built-in one; give it another name"
    assert (ended, err) == (0, f"{warning}\n")
    assert outputs(["schema"], capsys)[2] == ""
    assert [plugin["state"] for plugin in listed("ppo", capsys)] == ["usable", "hidden"]
    assert "Not used: that is the name of a built-in one" in outputs(["plugins"], capsys)[1]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("own_trainer:Trainer", "AttributeError: module 'own_trainer' has no attribute 'Trainer'"),
        ("own_trainr:OwnTrainer", "ModuleNotFoundError: No module named 'own_trainr'"),
    ],
)
def test_implementation_that_does_not_exist_is_refused_by_its_package(
    target: str, reason: str, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages, CODE.replace("own_trainer:OwnTrainer", target))
    about = f"own of own_trainer 1.0 (trainers: own_trainer:OwnSettings) cannot be used: {reason}"
    with pytest.raises(PluginError) as refused:
        registry.implementation("trainers", "own")
    assert str(refused.value) == about
    path = tmp_path / "own.yaml"
    path.write_text(FILE % "own")
    ended, _, err = outputs([str(path), "--dry-run", "--results-dir", str(tmp_path)], capsys)
    assert (ended, err) == (2, f"{path}:3:19: behaviors.A.trainer_type: {about}\n")
    [plugin] = listed("own", capsys)
    assert (plugin["state"], plugin["problem"]) == ("unusable", reason)


CHECKED = """
    @field_validator("patience")
    @classmethod
    def check(cls, value):
        raise {error}

    patience: int = 1
    learning_rate:"""


@pytest.mark.parametrize(
    ("error", "place", "text"),
    [
        ("KeyError('x')", "4:22: behaviors.A.hyperparameters", "own_trainer:OwnSettings raised KeyError: 'x'"),
        ("ValueError('so hasty')", "4:33: behaviors.A.hyperparameters.patience", "so hasty, got 3"),
    ],
)
def test_validator_that_raises_is_a_refusal_with_a_place(packages: Packages, error: str, place: str, text: str) -> None:
    code = CODE.replace("    learning_rate:", CHECKED.format(error=error), 1)
    install(packages, f"from pydantic import field_validator\n{code}")
    with pytest.raises(ConfigError) as refusal:
        parse_config((FILE % "own\n    hyperparameters: {patience: 3}").encode(), "c.yaml")
    assert str(refusal.value) == f"c.yaml:{place}: {text}"


INSTALLED = "`rl-tui plugins` lists what is installed"
TABBED = CODE.replace("    learning_rate:", "    mark: Literal[',', 'tab', ';'] = ','\n    learning_rate:", 1)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a2c", f'trainer_type: must be ppo, sac, poca, mappo, bc or own, got "a2c". Did you mean sac? {INSTALLED}'),
        (
            "ppo\n    reward_signals: {surprise: {}}",
            f"reward_signals.surprise: unknown key. Must be one of: curiosity, extrinsic, gail or rnd. {INSTALLED}",
        ),
        ("own\n    hyperparameters: {mark: 't'}", 'mark: must be ",", tab or ";", got "t"'),
        ("ppo\n  A?team=1: 5", "A?team=1: must be a behavior's name, not empty and without ?team=N"),
    ],
)
def test_refusal_offers_what_a_run_can_use(written: str, text: str, packages: Packages) -> None:
    install(packages, f"from typing import Literal\n{TABBED}")
    with pytest.raises(ConfigError) as refused:
        parse_config((FILE % written).encode(), "c.yaml")
    [line] = str(refused.value).splitlines()
    assert text in line


def test_default_that_its_own_type_refuses_is_refused_like_a_value(packages: Packages) -> None:
    install(packages, CODE.replace("learning_rate: float = 0.5", "learning_rate: float = 'fast'"))
    with pytest.raises(ConfigError, match=r'learning_rate: must be a number, got "fast"$'):
        parse_config((FILE % "own").encode(), "c.yaml")


@pytest.mark.parametrize("module", ["nowhere", "nowhere.inside"])
def test_library_that_one_needs_is_named(module: str, packages: Packages, capsys: pytest.CaptureFixture[str]) -> None:
    needs = f"    needs: ClassVar = {{{module!r}: 'rl-own[all]'}}\n    learning_rate:"
    install(packages, CODE.replace("    learning_rate:", needs))
    [plugin] = listed("own", capsys)
    assert plugin["state"] == "unusable"
    assert plugin["problem"].startswith(f"needs {module}, which is not installed. Install it with: ")
    assert plugin["problem"].endswith("install 'rl-own[all]'")


def test_plug_in_in_an_unknown_group_is_named_with_the_right_one(
    packages: Packages, capsys: pytest.CaptureFixture[str]
) -> None:
    packages.install("neat_writer", "1 / 0", **{"rl_tui.writer": "neat = neat_writer:NeatSettings"})
    [warning] = list_warnings(parse_config((FILE % "ppo").encode(), "c.yaml"))
    groups = "rl_tui.trainers, rl_tui.reward_signals, rl_tui.encoders, rl_tui.writers or rl_tui.environments"
    assert warning == (
        f"neat of neat_writer 1.0 is not loaded: its group of entry points must be {groups}, "
        'got "rl_tui.writer". Did you mean rl_tui.writers?'
    )
    [plugin] = listed("neat", capsys)
    assert (plugin["kind"], plugin["state"]) == ("rl_tui.writer", "not loaded")
    out = outputs(["plugins"], capsys)[1]
    assert out.endswith(
        "\nin an unknown group (rl_tui.writer)\n"
        "  neat             neat_writer 1.0  Not loaded: no group of plug-ins of rl-tui\n"
    )


def test_plug_ins_of_mlagents_are_named_and_not_loaded(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages.install("mlagents_like", "1 / 0", **{"mlagents.stats_writer": "neat = mlagents_like:writers"})
    packages.install("mlagents", "", **{"mlagents.trainer_type": "default = mlagents.plugins.trainer_type:defaults"})
    config = parse_config((FILE % "ppo").encode(), "c.yaml")
    [warning] = list_warnings(config)
    assert warning == (
        "plug-ins of ML-Agents are not loaded: neat of mlagents_like 1.0 (mlagents.stats_writer). "
        "`rl-tui plugins` lists those that are"
    )
    [plugin] = listed("neat", capsys)
    assert (plugin["kind"], plugin["state"]) == ("mlagents.stats_writer", "not loaded")
    out = outputs(["plugins"], capsys)[1]
    assert out.endswith(
        "\nof ML-Agents (mlagents.stats_writer)\n"
        "  neat             mlagents_like 1.0  Not loaded: a plug-in of ML-Agents\n"
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            'changeable: ClassVar = ("learning_rate", "beta")',
            "OwnSettings says that beta can be changed, but has no such field",
        ),
        ('changeable: ClassVar = ("learning_rate")', "changeable of OwnSettings must be a tuple, got 'learning_rate'"),
        ('entropy_target: ClassVar = "target"', "OwnSettings says that target can be changed, but has no such field"),
        ('health_rules: ClassVar = ["own:Rule"]', "health_rules of OwnSettings must be a dict, got ['own:Rule']"),
    ],
)
def test_trainer_whose_settings_contradict_themselves_is_refused(packages: Packages, said: str, reason: str) -> None:
    install(packages, CODE.replace("    learning_rate: float", f"    {said}\n    learning_rate: float"))
    with pytest.raises(PluginError) as refused:
        registry.settings_class("trainers", "own")
    assert str(refused.value).endswith(f"cannot be used: TypeError: {reason}")
