"""The whole program without a screen: files, resuming, signals and exit codes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import DELTAS, CheckpointSaved, Event, RunStateChanged
from tests.end_to_end.program import CARTPOLE, COMMAND, events_of, finish, read_until, run, start, surroundings
from tests.pseudo_terminal import DEADLINE_SECONDS

ENDLESS = ("--set", "behaviors.CartPole.max_steps=1e8", "--set", "behaviors.CartPole.checkpoint_interval=1e8")

FAILING = """\
import gymnasium


class Failing(gymnasium.Wrapper):
    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 300:
            raise RuntimeError("the leg broke off")
        return super().step(action)


def make(**settings):
    return Failing(gymnasium.make("CartPole-v1"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with one configuration in it."""
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    return tmp_path


UNFINISHED = """\
import gymnasium


class World(gymnasium.Env):
    def __init__(self):
        self.build_the_maze()

    def build_the_maze(self):
        raise KeyError("entrance")
"""


def saved(events: list[Event]) -> list[CheckpointSaved]:
    return [event for event in events if isinstance(event, CheckpointSaved)]


def test_run_writes_every_documented_file_and_resumes_where_it_stopped(folder: Path) -> None:
    exit_code, stdout, stderr = run("cartpole.yaml", "--run-id", "a", folder=folder)
    assert exit_code == 0, stdout + stderr
    assert stderr == "no screen: stdin is not a terminal\n"
    assert "Mean Reward" in stdout
    results = folder / "results/a"
    for name in ("configuration.yaml", "CartPole.onnx", "run_logs/timers.json", "run_logs/training_status.json"):
        assert (results / name).stat().st_size > 0, name
    assert list((results / "CartPole").glob("events.out.tfevents.*"))
    last = saved(events_of(results))[-1]
    assert last.reason == "final"
    assert last.step >= 2000
    assert (folder / last.path).is_dir()
    assert (results / f"CartPole/CartPole-{last.step}.onnx").exists()
    status = json.loads((results / "run_logs/training_status.json").read_text())
    assert status["CartPole"]["final_checkpoint"]["steps"] == last.step

    longer = ("--set", "behaviors.CartPole.max_steps=4000")
    words = ("--no-ui", "--debug", "--run-id", "a", "--resume", *longer)
    exit_code, stdout, stderr = run("cartpole.yaml", *words, folder=folder)
    assert exit_code == 0, stdout + stderr
    assert stderr == ""
    for detail in ("device cpu", "1 instance in this process, started in", "observations: ", "export of step"):
        assert detail in stdout
    assert f"from step {last.step} of 4000" in stdout
    assert saved(events_of(results))[-1].step >= 4000


def test_json_lines_are_the_events_of_the_run(folder: Path) -> None:
    words = ("--no-ui", "--log-format", "json", "--set", "behaviors.CartPole.max_steps=600")
    exit_code, stdout, stderr = run("cartpole.yaml", *words, folder=folder)
    assert exit_code == 0, stdout + stderr
    lines = [json.loads(line) for line in stdout.splitlines()]
    assert {line["v"] for line in lines} == {1}
    assert lines[-1]["event"] == "RunStateChanged"
    assert (lines[-1]["state"], lines[-1]["exit_code"]) == ("finished", 0)
    deltas = {kind.__name__ for kind in DELTAS}  # the file keeps one every few seconds
    assert deltas & {line["event"] for line in lines}
    reported = [type(event).__name__ for event in events_of(folder / "results/cartpole")]
    assert [line["event"] for line in lines if line["event"] not in deltas] == [e for e in reported if e not in deltas]


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_signal_saves_what_was_learned_and_ends(folder: Path, number: signal.Signals, exit_code: int) -> None:
    """SIGTERM also where it comes twice: from a scheduler, and from the job's script that passes it on."""
    process = start("cartpole.yaml", "--no-ui", *ENDLESS, folder=folder)
    said = read_until(process, "Step: ")
    for _ in range(2 if number == signal.SIGTERM else 1):
        process.send_signal(number)
    code, stdout, stderr = finish(process)
    assert code == exit_code, said + stdout + stderr
    assert stderr == ""
    events = events_of(folder / "results/cartpole")
    (checkpoint,) = saved(events)
    assert checkpoint.reason == "interrupted"
    assert checkpoint.step > 0
    assert (folder / checkpoint.path).is_dir()
    ending = [event for event in events if isinstance(event, RunStateChanged)][-1]
    assert ending.exit_code == exit_code


def test_signal_within_an_update_saves_after_the_mini_batch(folder: Path) -> None:
    settings = ("--set", "behaviors.CartPole.hyperparameters.num_epoch=1000000000")
    settings += ("--set", "behaviors.CartPole.summary_freq=100")
    process = start("cartpole.yaml", "--no-ui", *ENDLESS, *settings, folder=folder)
    read_until(process, "Step: ")  # the first 512 are taken before a line is printed
    process.send_signal(signal.SIGINT)
    code, stdout, stderr = finish(process)
    assert code == 130, stdout + stderr
    (checkpoint,) = saved(events_of(folder / "results/cartpole"))
    assert checkpoint.reason == "interrupted"


def test_run_goes_on_after_sigusr1_which_saves_and_sigusr2_and_after_a_hangup_under_nohup(folder: Path) -> None:
    process = start("cartpole.yaml", "--no-ui", *ENDLESS, folder=folder, ignored=[signal.SIGHUP])
    read_until(process, "Step: ")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGUSR1)
    read_until(process, r"step \d+ saved \(asked")
    process.send_signal(signal.SIGUSR2)
    read_until(process, "SIGUSR2 was ignored")
    read_until(process, "Step: ")
    read_until(process, "Step: ")
    process.send_signal(signal.SIGTERM)
    code, stdout, stderr = finish(process)
    assert code == 143, stdout + stderr


def test_signal_while_the_program_starts_is_not_lost(folder: Path) -> None:
    process = start("cartpole.yaml", "--no-ui", "--log-format", "json", *ENDLESS, folder=folder, from_cold=True)
    read_until(process, "RunStateChanged|RunStarted")
    process.send_signal(signal.SIGTERM)
    code, stdout, stderr = finish(process)
    assert code == 143, stdout + stderr
    assert "Traceback" not in stdout + stderr


def test_second_writer_of_a_run_is_refused(folder: Path) -> None:
    first = start("cartpole.yaml", "--no-ui", *ENDLESS, folder=folder)
    try:
        read_until(first, "Step: ")
        exit_code, stdout, stderr = run("cartpole.yaml", "--no-ui", "--resume", folder=folder)
        assert exit_code == 6, stdout + stderr
        assert str(first.pid) in stderr
        assert "Traceback" not in stderr
    finally:
        first.kill()
        finish(first)


def test_existing_run_is_not_overwritten_and_missing_run_not_resumed(folder: Path) -> None:
    (folder / "results/cartpole").mkdir(parents=True)
    (folder / "results/cartpole/run.lock").touch()
    (folder / "results/cartpole/configuration.yaml").write_text("default_settings: null\n")
    (folder / "results/cartpole/CartPole.onnx").write_text("kept\n")
    exit_code, _, stderr = run("cartpole.yaml", "--no-ui", "--run-id", "cartpole", folder=folder)
    assert exit_code == 2
    assert "--resume" in stderr
    assert "--force" in stderr
    assert (folder / "results/cartpole/configuration.yaml").read_text() == "default_settings: null\n"
    exit_code, _, stderr = run("cartpole.yaml", "--no-ui", "--resume", "--run-id", "missing", folder=folder)
    assert exit_code == 2
    assert "missing" in stderr


def test_environment_that_raises_ends_the_run_with_its_work_saved(folder: Path) -> None:
    (folder / "legs.py").write_text(FAILING)
    exit_code, stdout, stderr = run("cartpole.yaml", "--no-ui", "--env", "legs:make", *ENDLESS, folder=folder)
    assert exit_code == 3, stdout + stderr
    reason, *traceback = [line for line in stdout.splitlines() if "the leg broke off" in line]
    assert reason.startswith("[ERROR] Environment failed, ending ")
    assert [line.strip() for line in traceback] == [
        'raise RuntimeError("the leg broke off")',
        "RuntimeError: the leg broke off",
    ]
    (checkpoint,) = saved(events_of(folder / "results/cartpole"))
    assert checkpoint.reason == "error"


def test_every_error_of_a_broken_file_is_reported_at_once(folder: Path) -> None:
    """Each line of the file with a comment has one kind of error; the answer names that line."""
    (folder / "broken.yaml").write_text(BROKEN)
    exit_code, stdout, stderr = run("broken.yaml", folder=folder)
    assert exit_code == 2
    assert stdout == ""
    assert "Traceback" not in stderr
    for number, line in enumerate(BROKEN.splitlines(), start=1):
        _, marked, kind = line.partition("# ")
        if marked:
            assert f"broken.yaml:{number}:" in stderr, f"{kind}\n{stderr}"


BROKEN = """\
behaviors:
  Jumper:
    trainer_type: pppo  # bad choice
  Walker:
    trainer_type: ppo
    max_step: 1e5  # typo
    time_horizon: many  # wrong type
    summary_freq: 1000
    summary_freq: 2000  # duplicate
    hyperparameters:
      learning_rte: 3e-4  # typo at depth
      epsilon: .nan  # not finite
      batch_size: -4  # bad number
      buffer_size: &size 2048  # anchor
    network_settings:
      num_layers: !!python/object:os.system 2  # tag
    keep_checkpoints: *size  # alias
engine_setings: {}  # unknown section
env_settings:
  num_envs: 1.5  # not whole
"""


def test_pipe_that_closes_does_not_end_the_run(folder: Path) -> None:
    process = start("cartpole.yaml", "--no-ui", folder=folder)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert process.wait(DEADLINE_SECONDS) == 0
    assert saved(events_of(folder / "results/cartpole"))[-1].reason == "final"
    assert process.stderr is not None
    with process.stderr:
        (reported,) = process.stderr.read().splitlines()  # one line, and no traceback at the exit
    assert reported == "stdout cannot be written (Broken pipe): training continues, events.jsonl has every line"


def test_reader_of_stdout_and_stderr_that_goes_away_does_not_end_the_run(folder: Path) -> None:
    process = start("cartpole.yaml", "--no-ui", folder=folder)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(DEADLINE_SECONDS) == 0
    assert saved(events_of(folder / "results/cartpole"))[-1].reason == "final"


SMALL_FILES = 32 * 512  # less than a checkpoint
LARGE = ("--set", "behaviors.CartPole.network_settings.hidden_units=512")


def test_run_whose_last_checkpoint_could_not_be_written_ends_with_7(folder: Path) -> None:
    process = start("cartpole.yaml", "--no-ui", "--run-id", "a", *LARGE, folder=folder, file_bytes=SMALL_FILES)
    exit_code, stdout, stderr = finish(process)
    assert exit_code == 7, stdout + stderr
    assert re.search(r"Run unsaved: CartPole: step \d+ was not saved: .*File too large.*\(exit code 7\)", stdout), (
        stdout
    )


def test_stopped_run_whose_checkpoint_could_not_be_written_ends_with_7(folder: Path) -> None:
    process = start(
        "cartpole.yaml", "--no-ui", "--run-id", "a", *LARGE, *ENDLESS, folder=folder, file_bytes=SMALL_FILES
    )
    read_until(process, "Mean Reward")
    process.send_signal(signal.SIGTERM)
    exit_code, stdout, stderr = finish(process)
    assert exit_code == 7, stdout + stderr
    assert "was not saved" in stdout


def closing(streams: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`rl-tui` with these words, started by a shell that closes these streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND, *words],
        cwd=folder,
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


@pytest.mark.slow  # tests/test_cli.py closes them for programs that start sooner
def test_run_whose_streams_are_closed_trains_and_keeps_its_files_clean(folder: Path) -> None:
    """No file of the run gets the number of a closed stream, to which libraries print."""
    done = closing("<&- >&-", "cartpole.yaml", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "stdout cannot be written" in done.stderr
    assert "no screen: stdin is not a terminal" in done.stderr
    assert [e for e in events_of(folder / "results/cartpole") if isinstance(e, RunStateChanged)][-1].exit_code == 0


HANGING = """\
import ctypes
from pathlib import Path

from gymnasium.envs.classic_control.cartpole import CartPoleEnv


def hang(place):
    if place == "{place}":
        Path("hangs").touch()
        while True:
            ctypes.PyDLL(None).sleep(100)  # and nothing else of this process runs


class Hanging(CartPoleEnv):
    def __init__(self, render_mode=None):
        hang("constructor")
        super().__init__()

    def reset(self, **more):
        hang("reset")
        return super().reset(**more)

    def step(self, action):
        hang("step")
        return super().step(action)


hang("import")
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["import", "constructor", "reset", "step"])
def test_sigterm_ends_the_program_wherever_an_environment_keeps_it(folder: Path, place: str) -> None:
    (folder / "hanging.py").write_text(HANGING.format(place=place))
    env = ("--set", "env_settings.env=hanging:Hanging", "--set", "env_settings.num_envs=1")
    process = start("cartpole.yaml", "--no-ui", *ENDLESS, *env, folder=folder)
    while not (folder / "hangs").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    code, stdout, stderr = finish(process)
    assert code == 143, stdout + stderr
    assert "did not end within 5 s of SIGTERM and was killed" in stderr
    assert "hanging.py" in stderr + (folder / "results/cartpole/run_logs/output.log").read_text()
