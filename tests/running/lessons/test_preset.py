"""ppo/LineLessons: learned with its lessons, not without, and continued at its lesson after a crash."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.launch import Launch
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LessonChanged, MetricsReported
from rl_tui.engine.storage.checkpoint_format import read_values
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.deadline import DEADLINE_SECONDS

PRESET = Path(__file__).parents[3] / "config/ppo/LineLessons.yaml"
SHORT = {"behaviors.Walker.max_steps": 30000, "behaviors.Walker.summary_freq": 2000}


def short_lessons(folder: Path) -> Path:
    """A file with the preset's lessons that end after a hundred episodes: its own are long enough to be watched."""
    folder.mkdir(exist_ok=True)
    text, count = re.subn(r"min_lesson_length: \d+", "min_lesson_length: 100", PRESET.read_text())
    assert count == 3
    (folder / "lessons.yaml").write_text(text)
    return folder / "lessons.yaml"


def preset(folder: Path) -> RunConfig:
    where = {"checkpoint_settings.results_dir": str(folder), "checkpoint_settings.run_id": "run"}
    return load_config(
        short_lessons(folder), {**SHORT, **where, "env_settings.seed": 1, "torch_settings.device": "cpu"}
    )


def trained(config: RunConfig) -> tuple[float, list[int]]:
    """The last mean return, and the lessons that were reached."""
    launch = Launch(EventBus())
    mail = launch.subscribe()
    launch.start(config)
    assert launch.wait(DEADLINE_SECONDS)
    assert launch.exit_code == 0
    events = [envelope.event for envelope in mail.drain()]
    returns = [event.mean_return for event in events if isinstance(event, MetricsReported)]
    assert returns[-1] is not None
    return returns[-1], [event.lesson for event in events if isinstance(event, LessonChanged)]


def test_preset_is_long_enough_to_be_watched() -> None:
    """At 50,000 steps a second, more than such a small network makes, it takes more than 20 seconds; episodes of a
    good policy fill the first three lessons for about a third of that."""
    config = load_config(PRESET)
    steps = config.behaviors["Walker"].max_steps
    assert steps / 50_000 > 20
    assert config.environment_parameters is not None
    lessons = config.environment_parameters["length"].curriculum[:-1]  # type: ignore[union-attr]
    least = [lesson.value * lesson.completion_criteria.min_lesson_length for lesson in lessons]
    assert steps / 2 > sum(least) > steps / 4
    assert min(least) > steps / 20


@pytest.mark.slow
def test_lessons_teach_what_a_beginner_cannot_learn(tmp_path: Path) -> None:
    config = preset(tmp_path / "with")
    assert config.environment_parameters is not None
    last = config.environment_parameters["length"].curriculum[-1].value  # type: ignore[union-attr]
    with_lessons, reached = trained(config)
    assert reached == [2, 3, 4]
    assert with_lessons > -0.6
    without, _ = trained(preset(tmp_path / "without").model_copy(update={"environment_parameters": {"length": last}}))
    assert without < -2.5


@pytest.mark.slow
def test_a_killed_run_continues_at_its_lesson(tmp_path: Path) -> None:
    settings = ["behaviors.Walker.checkpoint_interval=500"]
    settings += [f"{key}={value}" for key, value in {**SHORT, "behaviors.Walker.max_steps": "1e6"}.items()]
    words = [sys.executable, "-m", "rl_tui", str(short_lessons(tmp_path)), "--no-ui", "--run-id", "run", "--seed", "1"]
    words += [word for setting in settings for word in ("--set", setting)]
    lesson, step = killed_after_a_lesson(words, tmp_path)
    longer = ["--resume", "--set", f"behaviors.Walker.max_steps={step + 200}"]
    resumed = subprocess.run(
        [*words, *longer], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    assert lesson > 1
    assert f"length: continues at lesson {lesson}\n" in resumed.stdout
    assert resumed.returncode == 0


def killed_after_a_lesson(words: list[str], folder: Path) -> tuple[int, int]:
    """Kill the program once it has saved a checkpoint in a lesson that is not the first; that lesson and the step."""
    begun = 1 << 62
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if lesson := re.search(r": lesson 2 of 4 .* from step (\d+)", line):
                begun = int(lesson[1])
            saved = re.search(r"step (\d+) saved", line)
            if saved and int(saved[1]) >= begun:
                process.kill()
    store = CheckpointStore(folder / "results/run/Walker/checkpoints", "Walker", 0)
    newest = store.newest_valid().path
    assert newest is not None
    state, checkpoint = read_values(newest)
    return json.loads(json.dumps(state.values))["lessons"]["lessons"]["length"] + 1, checkpoint.step
