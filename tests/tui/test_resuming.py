"""The last line in the terminal: how to go on with the run."""

from pathlib import Path

import pytest

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import Envelope, RunStateChanged
from rl_tui.engine.storage.archive import Archive
from rl_tui.tui.command_line.train_arguments import parse_train_arguments
from rl_tui.tui.command_line.train_on_screen import can_be_resumed, earlier_events, resume_command
from tests.tui import scenes


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["ppo/CartPole"], "rl-tui ppo/CartPole --run-id a-2 --resume"),
        (["my config.yaml", "--run-id", "x", "--force", "--seed", "3"],
         "rl-tui 'my config.yaml' --seed 3 --run-id a-2 --resume"),
        (["--run-id=x", "a.yaml", "--resume", "--set", "behaviors.A.max_steps=1e6"],
         "rl-tui a.yaml --set behaviors.A.max_steps=1e6 --run-id a-2 --resume"),
        (["a.yaml", "--resume-or-start", "--run-id", "a-2"], "rl-tui a.yaml --run-id a-2 --resume"),
        (["a.yaml", "--resume-or", "--resume"], "rl-tui a.yaml --run-id a-2 --resume"),
        (["a.yaml", "--init", "old", "--results-dir", "out"], "rl-tui a.yaml --results-dir out --run-id a-2 --resume"),
        (["a.yaml", "--env-args", "--force", "1"], "rl-tui a.yaml --run-id a-2 --resume --env-args --force 1"),
    ],
)  # fmt: skip
def test_the_command_keeps_all_but_how_the_run_began(words: list[str], command: str) -> None:
    assert resume_command(parse_train_arguments(words).words, "a-2") == command


@pytest.mark.parametrize(
    ("state", "is_possible"),
    [("finished", False), ("stopped", True), ("unsaved", True), ("failed", True), ("training", False)],
)
def test_what_ended_before_its_time_can_be_resumed(state: str, is_possible: bool) -> None:
    story = scenes.healthy(1)
    story.publish(RunStateChanged(state))  # type: ignore[arg-type]  # one of them
    assert can_be_resumed(story.view()) == is_possible
    without = scenes.empty()
    without.publish(RunStateChanged(state))  # type: ignore[arg-type]
    assert not can_be_resumed(without.view())


def test_the_screen_shows_the_earlier_events_of_a_run_that_resume_or_start_continues(tmp_path: Path) -> None:
    text = f"checkpoint_settings: {{resume_or_start: true, results_dir: {tmp_path}}}"
    config = parse_config(text.encode(), "walker.yaml")
    assert earlier_events(config, Archive(Path("elsewhere"))) is None, "there is no run yet"
    (tmp_path / "walker").mkdir()
    (tmp_path / "walker/events.jsonl").write_text(encode(Envelope(1, 0.0, RunStateChanged("training"))) + "\n")
    (tmp_path / "walker-2").mkdir()
    past = earlier_events(config, Archive(Path("elsewhere")))
    assert past is not None
    assert [envelope.event for envelope in past] == [RunStateChanged("training")]
