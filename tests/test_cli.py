"""The command line: arguments, results and messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.loading import effective_yaml, load_config, parse_config
from rl_tui.engine.config.presets import preset_names, preset_path
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    Envelope,
    Event,
    ProgressReported,
    RunStarted,
    SaveCheckpoint,
    Stop,
)
from rl_tui.tui.cli import main, why_headless
from rl_tui.tui.command_line.command_arguments import parse_check
from rl_tui.tui.command_line.commands import calls_environments
from rl_tui.tui.command_line.configuration import find_config
from rl_tui.tui.command_line.train_arguments import ScreenOptions, _parser, parse_train_arguments, screen_flags
from rl_tui.tui.terminal.signals import RunSignals
from rl_tui.tui.terminal.streams import write_stderr
from tests.deadline import DEADLINE_SECONDS

ROOT = Path(__file__).parent.parent

CARTPOLE = """
behaviors:
  CartPole:
    trainer_type: ppo
    max_steps: 1000
env_settings:
  env: gymnasium:CartPole-v1
"""

# flag, value as typed, setting, value as parse; the flags of mlagents-learn and ours
FLAGS = [
    ("--debug", None, "debug", True),
    ("--run-id", "walk 1", "checkpoint_settings.run_id", "walk 1"),
    ("--results-dir", "out", "checkpoint_settings.results_dir", "out"),
    ("--resume", None, "checkpoint_settings.resume", True),
    ("--resume-or-start", None, "checkpoint_settings.resume_or_start", True),
    ("--force", None, "checkpoint_settings.force", True),
    ("--initialize-from", "other", "checkpoint_settings.initialize_from", "other"),
    ("--inference", None, "checkpoint_settings.inference", True),
    ("--seed", "7", "env_settings.seed", 7),
    ("--torch-device", "cuda:0", "torch_settings.device", "cuda:0"),
    ("--env", "gymnasium:CartPole-v1", "env_settings.env", "gymnasium:CartPole-v1"),
    ("--env", "A=gymnasium:X-v1,B=my.module:make", "env_settings.env", {"A": "gymnasium:X-v1", "B": "my.module:make"}),
    ("--num-envs", "8", "env_settings.num_envs", 8),
    ("--num-workers", "2", "env_settings.num_workers", 2),
    ("--num-workers", "auto", "env_settings.num_workers", "auto"),
    ("--timeout-wait", "5", "env_settings.timeout_wait", 5),
    ("--max-lifetime-restarts", "-1", "env_settings.max_lifetime_restarts", -1),
    ("--restarts-rate-limit-n", "3", "env_settings.restarts_rate_limit_n", 3),
    ("--restarts-rate-limit-period-s", "9", "env_settings.restarts_rate_limit_period_s", 9),
    ("--base-port", "6000", "env_settings.base_port", 6000),
    ("--num-areas", "4", "env_settings.num_areas", 4),
    ("--width", "100", "engine_settings.width", 100),
    ("--height", "90", "engine_settings.height", 90),
    ("--quality-level", "1", "engine_settings.quality_level", 1),
    ("--time-scale", "1.5", "engine_settings.time_scale", 1.5),
    ("--target-frame-rate", "30", "engine_settings.target_frame_rate", 30),
    ("--capture-frame-rate", "30", "engine_settings.capture_frame_rate", 30),
    ("--no-graphics", None, "engine_settings.no_graphics", True),
    ("--no-graphics-monitor", None, "engine_settings.no_graphics_monitor", True),
    ("--set", "behaviors.A.max_steps=1e5", "behaviors.A.max_steps", 1e5),
    ("--set", "behaviors.A.threaded=true", "behaviors.A.threaded", True),
    ("--set", "torch_settings.device=cpu", "torch_settings.device", "cpu"),
]


@pytest.mark.parametrize(("flag", "typed", "path", "value"), FLAGS)
def test_flag_sets_its_setting(flag: str, typed: str | None, path: str, value: object) -> None:
    words = ["run.yaml", flag] if typed is None else ["run.yaml", f"{flag}={typed}"]
    assert parse_train_arguments(words).overrides == {path: value}
    if typed is not None:
        assert parse_train_arguments(["run.yaml", flag, typed]).overrides == {path: value}


def test_every_flag_with_one_value_may_stand_once(capsys: pytest.CaptureFixture[str]) -> None:
    actions = (action for action in _parser()._actions if action.option_strings and action.nargs is None)
    once = {action.option_strings[0]: action for action in actions if action.dest != "set"}
    assert {"--seed", "--run-id", "--env", "--log-format", "--theme", "--time-scale"} <= once.keys()
    for flag, action in once.items():
        value = {"--log-format": "json", "--on-hangup": "stop"}.get(flag, "1")
        with pytest.raises(SystemExit) as left:
            parse_train_arguments(["c.yaml", flag, value, f"{flag}={value}"])
        found = value if action.type is None else action.type(value)
        assert left.value.code == 2
        shown = capsys.readouterr().err
        assert f" {flag}: " in shown
        assert f" {found} and {found}" in shown
    repeated = parse_train_arguments(["c.yaml", "--set", "a.b=1", "--set", "a.c=2", "--no-ui", "--no-ui"])
    assert repeated.overrides == {"a.b": 1, "a.c": 2}


def test_flag_that_was_not_typed_leaves_the_setting_to_the_file() -> None:
    assert parse_train_arguments(["run.yaml"]).overrides == {}


def test_everything_after_env_args_belongs_to_the_player() -> None:
    arguments = parse_train_arguments(["run.yaml", "--seed", "1", "--env-args", "--seed", "2", "-x"])
    assert arguments.overrides == {"env_settings.seed": 1, "env_settings.env_args": ["--seed", "2", "-x"]}


def test_flag_may_be_shortened_while_it_is_unambiguous() -> None:
    assert parse_train_arguments(["run.yaml", "--num-e", "2"]).overrides == {"env_settings.num_envs": 2}


def test_several_settings_may_be_set() -> None:
    arguments = parse_train_arguments(["run.yaml", "--set", "a.b=1", "--set", "a.c=x=y"])
    assert arguments.overrides == {"a.b": 1, "a.c": "x=y"}


def test_screen_is_as_the_flags_say() -> None:
    assert parse_train_arguments(["run.yaml"]).options == ScreenOptions()
    typed = parse_train_arguments(["run.yaml", "--ascii", "--theme", "ansi", "--readonly", "--no-bell", "--no-mouse"])
    assert typed.options == ScreenOptions(
        is_ascii=True, theme="ansi", is_readonly=True, has_bell=False, has_mouse=False
    )
    assert typed.overrides == {}


def test_screen_options_have_the_flags_that_were_typed() -> None:
    flags = ["--theme", "ansi", "--ascii", "--readonly", "--no-bell", "--no-mouse", "--no-title"]
    assert screen_flags(parse_train_arguments(["run.yaml", *flags]).options) == flags
    assert screen_flags(parse_train_arguments(["run.yaml"]).options) == []


def test_deprecated_flags_change_nothing() -> None:
    arguments = parse_train_arguments(["run.yaml", "--load", "--train", "--torch", "--tensorflow"])
    assert (arguments.overrides, len(arguments.warnings)) == ({}, 4)


def test_flags_of_the_screen_are_named_where_there_is_none() -> None:
    warnings = parse_train_arguments(["run.yaml", "--no-ui", "--theme", "ansi", "--no-bell"]).warnings
    assert [line.partition(": ")[0] for line in warnings] == ["--theme", "--no-bell"]
    assert parse_train_arguments(["run.yaml", "--theme", "ansi"]).warnings == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--version"], "rl-tui 0.1.0\n"),
        (["--help"], "rl-tui presets"),
        (["--help"], "rl-tui demo"),
        (["demo", "--help"], "--speed"),
        (["replay", "--help"], "--results-dir"),
        (["ls", "--help"], "--json"),
        (["plugins", "--help"], "--json"),
        (["--help"], "rl-tui plugins"),
        (["--help"], "rl-tui upgrade-config"),
        (["upgrade-config", "--help"], "--force"),
        (["--help"], "rl-tui play RUN"),
        (["play", "--help"], "--opponent"),
        (["--help"], "rl-tui demonstrations"),
        (["demonstrations", "--help"], "record RUN FILE"),
        (["demonstrations", "info", "--help"], "--json"),
        (["demonstrations", "record", "--help"], "--episodes"),
        (["demonstrations", "play", "--help"], "--env-kwargs"),
    ],
)
def test_question_is_answered_on_stdout(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(words)
    assert exit_info.value.code == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["demo"],
        ["replay"],
        ["ls"],
        ["presets"],
        ["plugins"],
        ["schema"],
        ["upgrade-config"],
        ["check-env"],
        ["play"],
        ["demonstrations"],
        ["demonstrations", "info"],
        ["demonstrations", "record"],
        ["demonstrations", "play"],
    ],
    ids=str,
)
def test_help_fits_eighty_columns(command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_first_words_fit_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert max(map(len, err.splitlines())) <= 80


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert "behaviors" in json.loads(capsys.readouterr().out)["properties"]


def test_presets_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    rows = {row.split()[0]: row for row in capsys.readouterr().out.splitlines()}
    assert list(rows) == preset_names()
    assert rows["ppo/CartPole"].split(maxsplit=3)[1:3] == ["100,000", "steps"]
    assert rows["ppo/CartPole"].endswith("CartPole-v1: keep a pole upright by pushing its cart left or right")
    assert rows["sac/Hopper"].endswith("hop forward on one leg without falling. Needs MuJoCo: rl-tui's extra `mujoco`")
    assert "1,000,000 steps" in rows["sac/Hopper"]
    assert rows["ppo/Catch"].endswith("Learned from pixels within a minute on a CPU")
    assert main(["presets", "ppo/CartPole"]) == 0
    assert capsys.readouterr().out == (ROOT / "config/ppo/CartPole.yaml").read_text()


def test_preset_name_stands_for_its_file_where_no_file_has_that_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config("ppo/CartPole").read_text() == (ROOT / "config/ppo/CartPole.yaml").read_text()
    (tmp_path / "ppo").mkdir()
    (tmp_path / "ppo/CartPole").write_text(CARTPOLE)
    assert find_config("ppo/CartPole").read_text() == CARTPOLE


def test_only_what_calls_environments_is_watched() -> None:
    played = ["evaluate walk", "check-env toy:line", "demonstrations record walk a.demo"]
    read = ["demonstrations info a.demo", "demonstrations play toy:rooms a.demo", "demonstrations", "ls", "replay walk"]
    read += ["play walk"]  # its environment has a process of its own
    assert [line for line in [*played, *read] if calls_environments(line.split())] == played


REFUSED = ("", "relpay", "ppo/Nope", "nowhere.yaml", "ppo/CartPole --no-iu", "demo --sped 3", "broken.yaml --no-ui")
NAME_WHAT_IS_HEAVY = """
import sys
from rl_tui.tui.cli import main
for words in sys.argv[1:]:
    try:
        code = main(words.split())
    except SystemExit as exit:
        code = exit.code
    print(repr(words), code, [name for name in ("torch", "textual", "numpy", "gymnasium") if name in sys.modules])
"""


def test_what_is_refused_at_once_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("behaviors: [\n")
    command = [sys.executable, "-c", NAME_WHAT_IS_HEAVY, *REFUSED]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{words!r} 2 []" for words in REFUSED]


@pytest.mark.parametrize("flags", [[], ["--no-ui"], ["--dry-run"]])
def test_word_that_names_nothing_is_refused_before_configurations_can_be_read(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their libraries are most of the time that the answer would take."""
    monkeypatch.setitem(sys.modules, "rl_tui.engine.config.loading", None)
    assert main(["relpay", *flags]) == 2
    assert "replay" in capsys.readouterr().err


def test_word_that_names_nothing_is_refused_before_a_screen_opens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rl_tui.tui.cli.why_no_screen", lambda: "")
    monkeypatch.setitem(sys.modules, "rl_tui.tui.command_line.train_on_screen", None)
    assert main(["relpay"]) == 2
    assert "replay" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["schema", "presets", "plugins", "ls", "demo", "play", "replay", "upgrade-config"])
def test_file_named_like_a_command_is_reached_through_its_path(
    name: str, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(CARTPOLE)
    assert main([f"./{name}", "--dry-run"]) == 0
    assert "gymnasium:CartPole-v1" in capsys.readouterr().out


def test_dry_run_prints_the_effective_configuration(
    tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints is itself a configuration, with the typed flags in it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.yaml"
    path.write_text(CARTPOLE)
    assert main([str(path), "--dry-run", "--seed", "5", "--set", "behaviors.CartPole.max_steps=2e3"]) == 0
    first = capsys.readouterr().out
    assert "seed: 5" in first
    assert "max_steps: 2000" in first
    again = tmp_path / "again.yaml"
    again.write_text(first)
    assert main([str(again), "--dry-run"]) == 0
    assert capsys.readouterr().out == first


def test_dry_run_without_an_environment_says_how_to_name_one(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.yaml"
    path.write_text("behaviors:\n  Walker:\n    trainer_type: ppo\n")
    assert main([str(path), "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert "trainer_type: ppo" in captured.out
    assert "--env" in captured.err
    assert main([str(path), "--dry-run", "--env", "unity:editor"]) == 0
    assert capsys.readouterr().err == ""


def test_dry_run_says_whether_a_run_would_be_resumed_or_started(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(CARTPOLE)
    words = ["run.yaml", "--dry-run", "--resume-or-start", "--set", "behaviors.CartPole.max_steps=300000"]
    assert main(words) == 0
    assert f"{tmp_path}/results/run " in capsys.readouterr().err
    (tmp_path / "results").mkdir()
    record(tmp_path / "results", "run")
    (tmp_path / "results/run/Walker.onnx").touch()
    assert main([*words, "--initialize-from", "gone"]) == 0
    captured = capsys.readouterr()
    assert f"{tmp_path}/results/run " in captured.err
    assert "resume_or_start: true" in captured.out
    assert main([*words, "--resume"]) == 0
    assert "--resume-or-start" in capsys.readouterr().err


def test_dry_run_of_what_would_be_refused_prints_the_configuration_too(tmp_path: Path, capsys) -> None:
    (tmp_path / "run.yaml").write_text(CARTPOLE)
    assert main([str(tmp_path / "run.yaml"), "--dry-run", "--env", "3DBall"]) == 2
    captured = capsys.readouterr()
    assert "max_steps: 1000" in captured.out
    assert len(captured.err.splitlines()) == 1


def test_run_of_something_not_built_yet_exits_2_and_names_it(tmp_path: Path, capsys) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("behaviors:\n  Walker:\n    init_path: old.pt\nenv_settings:\n  env: gymnasium:Pendulum-v1\n")
    assert main([str(path), "--no-ui"]) == 2
    assert capsys.readouterr().err.startswith(f"{path}:3:16: behaviors.Walker.init_path: ")


@pytest.mark.parametrize(
    "assignment",
    [
        f"env_settings.env_kwargs.x={'[' * 100_000}",
        f"env_settings.env_kwargs.x={'[' * 40 + ']' * 40}",
        "env_settings.env_kwargs.x=" + '{"a":' * 900 + "1" + "}" * 900,
        "env_settings.env_kwargs." + ".".join("a" * 3000) + "=1",
        f"env_settings.env_kwargs.x={'1' * 5000}",
        f"env_settings.env_kwargs.x=[1{'0' * 30}]",
        "env_settings.env_kwargs.x=[NaN]",
        "env_settings.env_kwargs.x=\udcff",
    ],
)
def test_setting_that_no_file_could_hold_is_refused_in_one_line(assignment: str, capsys) -> None:
    assert main(["ppo/CartPole", "--dry-run", "--set", assignment]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("--set env_settings.env_kwargs.")


def test_setting_without_a_flag_of_its_own_is_named_by_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ppo/CartPole", "--dry-run", "--set", 'env_settings.metrics=["speed","speed"]']) == 2
    assert capsys.readouterr().err.startswith("--set env_settings.metrics: ")


def test_every_mistake_stands_on_a_line_of_its_own(tmp_path: Path, capsys) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("behaviors:\n  A:\n    trainer_typ: ppo\n    max_steps: many\n    time_horizon: .nan\n")
    assert main([str(path), "--no-ui"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith(f"{path}:")]) == 3
    assert "trainer_type" in lines[0]


def test_complaint_carries_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    write_stderr("bad key \x1b]0;title\x07 here\nand \x9b2J there \u202e")
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 2
    assert not any(c in shown for c in "\x1b\x07\x9b\u202e")


def test_redirected_standard_input_means_no_screen() -> None:
    """pytest's own stdin is no terminal."""
    assert "stdin" in str(why_headless(parse_train_arguments(["run.yaml"])))
    assert why_headless(parse_train_arguments(["run.yaml", "--no-ui"])) == ""


def record(folder: Path, run_id: str) -> None:
    """A run of which the start and some progress are on disk."""
    started = BehaviorStarted("Walker", "ppo", "gymnasium:Walker2d-v5", 0, 1000, 1, 10, False)
    events: list[Event] = [
        RunStarted(run_id, str(folder / run_id), 1, "cpu", False, {}),
        started,
        ProgressReported("Walker", 250, 250, 100.0, 1),
    ]
    (folder / run_id).mkdir()
    lines = [encode(Envelope(number, 1e9 + number, event)) for number, event in enumerate(events, start=1)]
    (folder / run_id / "events.jsonl").write_text("\n".join(lines) + "\n")


def test_runs_of_a_folder_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, "first walk")
    record(tmp_path, "second")
    (tmp_path / "no run").mkdir()
    assert main(["ls", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "first walk" in shown
    assert "250/1k" in shown
    assert "interrupted" in shown
    assert "no run" not in shown
    assert f"2 runs in {tmp_path}" in shown


def test_runs_of_a_folder_are_listed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, "walk")
    assert main(["ls", str(tmp_path), "--json"]) == 0
    (run,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (run["run_id"], run["state"], run["behaviors"][0]["step"]) == ("walk", "interrupted", 250)


def test_folder_without_runs_is_no_mistake_but_a_missing_one_is(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ls"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["ls", "reslts"]) == 2
    assert capsys.readouterr().err.startswith("reslts: ")


def test_reader_that_goes_away_ends_the_answer_quietly() -> None:
    command = f"{sys.executable} -m rl_tui schema | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.stdout == "{\n"
    assert done.stderr == ""


def in_shell(command: str, folder: Path) -> tuple[int, str]:
    """The exit code of `rl-tui COMMAND` in a shell, and what it wrote to stderr."""
    program = f"PYTHONPATH={ROOT}/src {sys.executable} -m rl_tui {command}"
    done = subprocess.run(
        ["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ls >/dev/full", "No space left on device"),
        ("ls >&-", "Bad file descriptor"),
        ("ppo/CartPole --dry-run >/dev/full", "No space left on device"),
        ("--help >/dev/full", "No space left on device"),
    ],
)
def test_stdout_that_takes_nothing_is_one_line_and_exit_code_1(command: str, reason: str, tmp_path: Path) -> None:
    exit_code, shown = in_shell(command, tmp_path)
    assert exit_code == 1
    assert shown.splitlines() == [shown.rstrip()]
    assert shown.endswith(f" {reason}\n")


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
def test_complaint_that_stderr_does_not_take_is_lost_and_nothing_else(stderr: str, tmp_path: Path) -> None:
    assert in_shell(f"nothing --no-ui {stderr}", tmp_path) == (2, "")
    assert in_shell(f"ls >&- {stderr}", tmp_path) == (1, "")


def test_closed_stdin_changes_nothing(tmp_path: Path) -> None:
    assert in_shell("presets <&- >/dev/null", tmp_path) == (0, "")


HAS_STREAMS = "import os; [os.fstat(number) for number in (0, 1, 2)]"
START_A_PROCESS = f"""
import subprocess, sys
from rl_tui.tui.terminal.streams import ensure_streams
ensure_streams()
subprocess.run([sys.executable, "-c", {HAS_STREAMS!r}], check=True)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_processes_that_are_started_have_the_streams_that_were_closed(closed: str) -> None:
    """No file that such a process opens gets the number of a stream."""
    shell = ["bash", "-c", f'exec "$@" {closed}', "bash"]
    subprocess.run([*shell, sys.executable, "-c", START_A_PROCESS], cwd=ROOT, check=True, timeout=DEADLINE_SECONDS)


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["y" * 200] * 30), "loop", "file/below"])
@pytest.mark.parametrize(
    "words",
    [
        ["{}"],
        ["{}", "--dry-run"],
        ["ls", "{}"],
        ["presets", "{}"],
        ["evaluate", "{}"],
        ["evaluate", "walk", "--results-dir", "{}"],
        ["demonstrations", "info", "{}"],
        ["demonstrations", "record", "walk", "{}.demo"],
        ["demonstrations", "play", "toy:rooms", "{}.demo"],
        ["upgrade-config", "{}", "new.yaml"],
        ["upgrade-config", "old.yaml", "{}"],
        ["upgrade-config", "old.yaml", "{}", "--force"],
        ["ppo/CartPole", "--dry-run", "--results-dir", "{}"],
        ["ppo/CartPole", "--no-ui", "--results-dir", "{}"],
    ],
    ids=" ".join,
)
def test_path_that_cannot_be_is_one_line_and_exit_code_2(
    words: list[str], name: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "old.yaml").write_text("Walker: {trainer: ppo}\n")
    (tmp_path / "file").touch()
    assert main([word.format(name) for word in words]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len([line for line in shown if not line.startswith("no screen")]) == 1


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_only_a_regular_file_is_replaced_by_an_upgraded_one(kind: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "old.yaml").write_text("Walker: {trainer: ppo}\n")
    target = tmp_path / "new.yaml"
    match kind:
        case "folder":
            target.mkdir()
        case "pipe":
            os.mkfifo(target)
        case "link":
            target.symlink_to(tmp_path / "elsewhere.yaml")
    before = target.lstat()
    assert main(["upgrade-config", str(tmp_path / "old.yaml"), str(target), "--force"]) == 2
    assert capsys.readouterr().err.startswith(f"{target}: ")
    assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_first_signal_saves_and_second_leaves_at_once() -> None:
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        stops = [(each.mode, each.exit_code) for each in signals.pop_commands() if isinstance(each, Stop)]
    assert stops == [("checkpoint", 143), ("now", 130)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_sigterm_that_comes_twice_at_once_is_one_request() -> None:
    """From the scheduler, and from the job's script that forwards it."""
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert len(signals.pop_commands()) == 1


def test_sigusr1_saves_a_checkpoint_and_sigusr2_does_nothing_but_a_line() -> None:
    with RunSignals() as signals:
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR2)
        (command,) = signals.pop_commands()
        assert isinstance(command, SaveCheckpoint)
        (note,) = signals.pop_notes()
        assert note.startswith("SIGUSR2 was ignored")
        os.kill(os.getpid(), signal.SIGTERM)
        (stop,) = signals.pop_commands()
        assert isinstance(stop, Stop)
        assert stop.mode == "checkpoint", "the first that stops"


def test_third_signal_ends_the_process_even_while_it_hangs() -> None:
    program = (
        "import os, signal, time\n"
        "from rl_tui.tui.terminal.signals import RunSignals\n"
        "with RunSignals(lambda: os.write(1, b'left')):\n"
        "    for _ in range(3): os.kill(os.getpid(), signal.SIGHUP)\n"
        "    time.sleep(60)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False, timeout=DEADLINE_SECONDS
    )
    assert (done.returncode, done.stdout) == (129, b"left")


CHATTY = """\
from tests.sampling.worlds import Counting


class Chatty(Counting):
    def step(self, action):
        print("stepped")
        answer = super().step(action)
        {last}
"""
HANGING = ["tests.sampling.worlds:Misbehaving", "--timeout-wait", "1", "--env-kwargs", '{"fault": "hangs"}']


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["gymnasium:CartPol-v1"], 2, "gymnasium:CartPole-v1"),
        (["tests.sampling.worlds:Counting", "--env-kwargs", '{"lenth": 3}'], 2, "lenth"),
        (["tests.sampling.worlds:Misbehaving", "--env-kwargs", '{"fault": "raises"}'], 3, "ValueError: the wheels"),
        (["tests.sampling.worlds:Misbehaving", "--env-kwargs", '{"fault": "shows_nan"}'], 5, "[nan]"),
        (HANGING, 3, "tests/sampling/worlds.py"),
    ],
)
def test_check_of_an_environment_says_what_is_wrong(words: list[str], exit_code: int, said: str, capfd) -> None:
    assert main(["check-env", *words]) == exit_code
    captured = capfd.readouterr()
    assert said in captured.err
    assert ("Traceback" in captured.err) == ("ValueError" in said), "only of the user's own code"


@pytest.mark.parametrize(("last", "exit_code"), [("return answer", 0), ("raise KeyError('wheel')", 3)])
def test_what_a_checked_environment_prints_is_apart_from_what_is_found(
    last: str, exit_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY.format(last=last))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "chatty", raising=False)
    assert main(["check-env", "chatty:Chatty", "--steps", "20"]) == exit_code
    captured = capfd.readouterr()
    assert "stepped" not in captured.out
    assert "ok       2 copies made" in captured.out
    said = captured.err.splitlines()
    assert said[0].endswith(":")
    shown = [line for line in said if line == "stepped"]
    assert len(shown) == (5 if exit_code == 0 else 1)
    assert ("KeyError: 'wheel'" in captured.err) == (exit_code != 0)


def test_players_are_checked_without_graphics_if_that_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    checked = parse_check(["builds/Ball", "--env-kwargs", '{"num_areas": 2}', "--no-graphics"])
    assert checked.kwargs == {"num_areas": 2, "no_graphics": True}


def test_wrapped_environment_is_checked(capfd: pytest.CaptureFixture[str]) -> None:
    wrappers = '[{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 5}}]'
    assert main(["check-env", "gymnasium:CliffWalking-v1", "--steps", "50", "--wrappers", wrappers]) == 0
    assert "18 episodes: mean length 5.0, " in capfd.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["run.yaml", "--no-ui", "--run-id", "a", "--env", "Ball"],
        ["--no-ui", "run.yaml", "--run-id=a", "--env=Ball"],
        ["--run-id", "a", "run.yaml", "--no-ui", "--env=Ball"],
        ["--env", "Ball", "--run-id", "a", "--no-ui", "run.yaml"],
    ],
)
def test_configuration_may_stand_anywhere_and_everything_after_env_args_is_the_players(words: list[str]) -> None:
    typed = parse_train_arguments([*words, "--env-args", "--level", "3", "x.yaml", "--no-ui"])
    assert typed.config == "run.yaml"
    assert typed.overrides == {
        "checkpoint_settings.run_id": "a",
        "env_settings.env": "Ball",
        "env_settings.env_args": ["--level", "3", "x.yaml", "--no-ui"],
    }


@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_without_a_configuration_the_behaviors_of_a_player_have_mlagents_defaults(
    trainer: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--dry-run", "--env", "unity:editor", *([] if trainer == "ppo" else ["--trainer", trainer])]) == 0
    captured = capsys.readouterr()
    config = parse_config(captured.out.encode(), "")
    assert config.default_settings == BehaviorConfig.model_validate({"trainer_type": trainer})
    assert f" {trainer.upper()} " in captured.err


def test_without_a_configuration_an_environment_has_its_preset_and_that_is_the_first_line(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, preset in (([], "ppo/Pendulum"), (["--trainer", "sac"], "sac/Pendulum")):
        assert main(["--dry-run", "--env", "gymnasium:Pendulum-v1", *words]) == 0
        captured = capsys.readouterr()
        assert preset in captured.err.splitlines()[0]
        assert captured.out == effective_yaml(load_config(preset_path(preset)))


def test_without_a_configuration_and_preset_there_is_a_profile_whose_file_is_printed(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--dry-run", "--env", "gymnasium:MountainCar-v0"]) == 0
    captured = capsys.readouterr()
    assert "ppo/gymnasium" in captured.err
    Path("mine.yaml").write_text(captured.out)
    assert main(["--dry-run", "mine.yaml"]) == 0
    assert capsys.readouterr().out == captured.out
    assert main(["--dry-run", "ppo/gymnasium", "--env", "gymnasium:MountainCar-v0"]) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (captured.out, "")


def test_environment_trains_without_a_configuration(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--env", "gymnasium:MountainCar-v0", "--set", "behaviors.MountainCar.max_steps=2048"]
    assert main([*words, "--no-ui"]) == 0
    captured = capfd.readouterr()
    assert "MountainCar makes 1 in 2,048" in captured.out
    assert (tmp_path / "results/MountainCar/MountainCar.onnx").is_file()
