"""The section `writers`: each entry is read by the class of the writer that it names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from rl_tui.engine import registry
from rl_tui.engine.config import requirements
from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.schema import json_schema
from rl_tui.engine.config.support import find_unsupported, find_unused
from rl_tui.engine.errors import ConfigError
from tests.running.writers.plugins import LINES, install, lines

__all__ = ["lines"]


def parse(text: str, overrides: Mapping[str, object] | None = None) -> RunConfig:
    return parse_config(text.encode(), "c.yaml", overrides)


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse(text)
    return str(error.value).split("\n")


def written(config: RunConfig) -> object:
    return config.model_dump()["writers"]


def test_tensorboard_is_there_unless_it_is_turned_off() -> None:
    assert written(parse("{}")) == written(parse("writers: {}")) == {"tensorboard": {}}
    assert written(parse("writers: {tensorboard: null}")) == {"tensorboard": None}
    assert written(RunConfig()) == {"tensorboard": {}}


def test_installed_writer_has_settings_of_its_own(lines: ModuleType) -> None:
    config = parse("writers: {lines: {path: a.txt}, others: null}")
    assert written(config) == {"tensorboard": {}, "lines": {"fails_in": "", "path": "a.txt"}, "others": None}
    assert isinstance(config.writers["lines"], lines.LinesSettings)
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()
    assert written(parse("writers: {lines: {}}", {"writers.lines.path": "b.txt"}))["lines"]["path"] == "b.txt"
    assert written(parse("writers: {lines: null}", {"writers.lines.path": "b.txt"}))["lines"]["path"] == "b.txt"
    assert written(parse("{}", {"writers.lines.path": "b.txt"}))["lines"]["path"] == "b.txt"
    assert written(parse("writers: {lines: {}}", {"writers.lines": None}))["lines"] is None


def test_schema_has_the_settings_of_every_writer(lines: ModuleType) -> None:
    schema = json_schema()
    properties, definitions = schema["properties"], schema["$defs"]
    assert isinstance(properties, dict)
    assert isinstance(definitions, dict)
    assert properties["writers"]["$ref"] == "#/$defs/Writers"
    assert {"tensorboard", "lines", "others"} <= set(definitions["Writers"]["properties"])
    assert definitions["LinesSettings"]["properties"]["path"] == {
        "default": "lines.txt",
        "title": "Path",
        "type": "string",
    }
    assert "WriterSettings" not in definitions


def test_writer_that_cannot_be_imported_is_refused_where_it_is_named_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"broken": "BrokenSettings", "wrong": "LinesWriter"}
    install(tmp_path, monkeypatch, "broken_writer", LINES, **names)
    assert written(parse("writers: {tensorboard: {}}")) == {"tensorboard": {}}
    assert "broken_writer" not in sys.modules
    (broken,), (wrong,) = errors("writers: {broken: {}}"), errors("writers: {wrong: {}}")
    assert broken.startswith("c.yaml:1:19: writers.broken: ")
    assert wrong.startswith("c.yaml:1:18: writers.wrong: ")
    assert "Writers" in json_schema()["$defs"]  # type: ignore[operator]


def test_what_a_writer_needs_is_named_before_a_run_starts(lines: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviors = "behaviors: {A: {}}\nenv_settings: {env: 'toy:line'}\n"
    config = parse(f"{behaviors}writers: {{lines: {{}}, others: null}}")
    assert find_unsupported(config) == []
    monkeypatch.setattr(lines.LinesSettings, "needs", {"json": "json", "no_such_library": "such-a-library"})
    (refused,) = find_unsupported(config)
    assert refused.startswith("c.yaml:3:11: writers.lines: needs no_such_library")
    assert refused.endswith("install such-a-library")
    monkeypatch.setattr(lines.LinesSettings, "extra", "mujoco")
    assert "mujoco" in find_unsupported(config)[0]
    monkeypatch.setattr(lines.LinesSettings, "implementation", "")
    assert len(find_unsupported(config)) == 1


def test_trackers_without_their_library_are_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda module: None)
    found = find_unsupported(
        parse("behaviors: {A: {}}\nenv_settings: {env: 'toy:line'}\nwriters: {mlflow: {}, wandb: {}}")
    )
    places = ["c.yaml:3:11: writers.mlflow: needs mlflow", "c.yaml:3:23: writers.wandb: needs wandb"]
    assert [line.partition(",")[0] for line in found] == places


def test_writers_have_no_effect_where_nothing_is_trained() -> None:
    text = "writers: {tensorboard: %s}\ncheckpoint_settings: {inference: true}"
    assert len(find_unused(parse(text % "null"))) == 1
    assert find_unused(parse(text % "{}")) == [], "the default"
    assert find_unused(parse("writers: {tensorboard: {}}")) == []


def test_names_of_those_built_in_are_read_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search() -> list[object]:
        raise AssertionError

    monkeypatch.setattr(registry, "entry_points", search)
    registry._entry_points.cache_clear()
    parse("writers: {tensorboard: {}}")
