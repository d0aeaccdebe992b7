"""Where relative paths of demonstrations lead from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.presets import preset_path, read_preset

FILE = """\
default_settings:
  behavioral_cloning: {demo_path: way.demo}
behaviors:
  A:
    reward_signals:
      gail: {demo_path: way.demo}
  B:
    behavioral_cloning: {demo_path: minari:a/b-v0}
env_settings:
  env: {A: "gymnasium:A-v0", B: "gymnasium:B-v0"}
  env_kwargs: {A: {demo_path: way.demo}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in a folder that is not the working directory."""
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "there" / "walk.yaml"
    file.write_text(FILE, encoding="utf-8")
    return file


def paths(file: Path, overrides: dict[str, object] | None = None) -> list[str]:
    """All that the behavior A learns from."""
    return [*load_config(file, overrides).behaviors["A"].demo_paths.values()]


def test_what_the_working_directory_lacks_is_looked_for_next_to_the_file(file: Path) -> None:
    (file.parent / "way.demo").touch()
    assert paths(file) == [str(file.parent / "way.demo")] * 2
    assert paths(Path("../there/walk.yaml")) == [str(file.parent / "way.demo")] * 2
    config = load_config(file)
    assert config.behaviors["B"].demo_paths == {"behavioral_cloning.demo_path": "minari:a/b-v0"}
    assert config.env_settings.env_kwargs == {"A": {"demo_path": "way.demo"}}


def test_the_working_directory_comes_first(file: Path) -> None:
    (file.parent / "way.demo").touch()
    Path("way.demo").touch()
    assert paths(file) == ["way.demo"] * 2


def test_what_is_in_neither_stays_as_it_is(file: Path) -> None:
    assert paths(file) == ["way.demo"] * 2


def test_a_flag_means_the_working_directory(file: Path) -> None:
    (file.parent / "way.demo").touch()
    overrides: dict[str, object] = {"behaviors.A.reward_signals.gail.demo_path": "way.demo"}
    assert paths(file, overrides) == ["way.demo", str(file.parent / "way.demo")]


@pytest.mark.parametrize("name", ["bc/CartPole", "ppo/RoomsGAIL"])
def test_presets_and_their_copies_have_their_demonstrations_everywhere(name: str, file: Path) -> None:
    file.write_text(read_preset(name), encoding="utf-8")
    for config in (load_config(preset_path(name)), load_config(file)):
        [behavior] = config.behaviors.values()
        [path] = behavior.demo_paths.values()
        assert path == str(preset_path(name).with_suffix(".demo"))
        assert Path(path).stat().st_size < 100_000


def test_a_teacher_may_be_beside_the_file(file: Path) -> None:
    file.write_text(
        "behaviors: {A: {trainer_type: bc, hyperparameters: {teacher: large.onnx}}}\nenv_settings: {env: 'toy:line'}\n"
    )
    teachers = [load_config(file).behaviors["A"].hyperparameters.teacher_path]
    (file.parent / "large.onnx").touch()
    teachers.append(load_config(file).behaviors["A"].hyperparameters.teacher_path)
    assert teachers == ["large.onnx", str(file.parent / "large.onnx")]
