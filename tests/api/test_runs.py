"""Whole runs from Python: started, followed, commanded, interrupted."""

from __future__ import annotations

import _thread
import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rl_tui
from rl_tui.engine.api import runs
from rl_tui.engine.api.run_keywords import RunKeywords, argument_of, runnable_config
from rl_tui.engine.config import run_flags
from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.naming import name_of, naming, set_to, switched_on
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.session.messages import (
    AddNote,
    CheckpointSaved,
    CommandFinished,
    Envelope,
    LogEmitted,
    MetricsReported,
    NoteAdded,
    Pause,
    RunStarted,
    RunStateChanged,
)
from rl_tui.engine.specs import Actions, Steps
from rl_tui.engine.storage.checkpoint_format import read
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import run as command
from tests.end_to_end.program import surroundings
from tests.running.runs import ENDLESS, behavior, equal, tensors_of, threads_left

RUN = "run"


class Slippery(Line):
    """A Line on which the hundredth step interrupts the program, or fails."""

    def __init__(self, fault: str) -> None:
        super().__init__("Walker", 4)
        self._fault, self._count = fault, 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        if self._count == 100 and self._fault == "interrupts":
            _thread.interrupt_main()
        if self._count == 100 and self._fault == "is terminated":
            os.kill(os.getpid(), signal.SIGTERM)
        if self._count == 100 and self._fault == "raises":
            raise ValueError("the floor was wet")
        return super().step(actions)


IS_MAKING, RELEASE = threading.Event(), threading.Event()


def slowly() -> Line:
    IS_MAKING.set()
    RELEASE.wait()
    return walker()


def walker() -> Line:
    return Line("Walker", 4)


def settings(**changes: Any) -> dict[str, object]:
    """The content of a file with one behavior, Walker."""
    return {
        "behaviors": {"Walker": behavior(**changes)},
        "env_settings": {"env": "toy:line", "num_envs": 4, "seed": 1},
        "torch_settings": {"device": "cpu"},
        "writers": {},
    }


def start(folder: Path, **keywords: Any) -> rl_tui.RunHandle:
    return rl_tui.start(settings(), **{"run_id": RUN, "results_dir": folder, "torch_device": "cpu"} | keywords)


def endless(folder: Path, **keywords: Any) -> rl_tui.RunHandle:
    return start(folder, set={"behaviors.Walker.max_steps": ENDLESS}, **keywords)


def kinds(events: list[Envelope]) -> list[type]:
    return [type(envelope.event) for envelope in events]


@pytest.fixture(autouse=True)
def no_thread_is_left(request: pytest.FixtureRequest) -> Any:
    others = set(threading.enumerate())
    yield
    assert threads_left(others) == []


def test_run_is_followed_from_its_first_event_to_its_last(tmp_path: Path) -> None:
    run = start(tmp_path, seed=3)
    events = list(run.events())
    assert [envelope.number for envelope in events] == list(range(1, len(events) + 1))
    (started,) = [envelope.event for envelope in events if isinstance(envelope.event, RunStarted)]
    assert (run.path, started.path, started.seed) == (tmp_path / RUN, str(tmp_path / RUN), 3)
    assert events[-1].event == RunStateChanged("finished", "", 0)
    assert (run.is_over, run.wait(0), run.exit_code, run.error) == (True, True, 0, None)
    assert (run.view.state, run.view.behaviors["Walker"].step) == ("finished", 512)
    assert list(run.events()) == []
    recorded = list(rl_tui.events(run.path))
    assert {MetricsReported, CheckpointSaved} <= set(kinds(recorded))
    assert [e for e in events if e.event in [r.event for r in recorded]][-1].event == events[-1].event
    assert "finished" in repr(run)


def test_commands_are_sent_by_methods_and_their_outcomes_waited_for(tmp_path: Path) -> None:
    with endless(tmp_path) as run:
        assert Path(run.checkpoint().wait(DEADLINE_SECONDS)).is_dir()
        assert run.export("Walker").wait(DEADLINE_SECONDS).endswith(".onnx")
        assert (
            run.set_hyperparameter("Walker", "learning_rate", 1e-4)
            .wait(DEADLINE_SECONDS)
            .startswith("learning_rate 0.0003 ->")
        )
        assert run.pause().wait(DEADLINE_SECONDS) == "Walker paused"
        view = run.view
        assert view.behaviors["Walker"].hyperparameters["learning_rate"] == 1e-4
        assert run.note("slower from here", "Walker").wait(DEADLINE_SECONDS) == "slower from here"
        (_, saved), *_ = view.behaviors["Walker"].checkpoints
        assert run.roll_back("Walker", saved.path).wait(DEADLINE_SECONDS).startswith(f"resumed from step {saved.step}")
        assert run.resume().wait(DEADLINE_SECONDS) == "Walker training"
        with pytest.raises(rl_tui.CommandError, match="there is no behavior Runner"):
            run.send(Pause("Runner")).wait(DEADLINE_SECONDS)
        for wrong in ("stop", Pause, Pause(3), AddNote(3)):  # type: ignore[arg-type]  # of a program without types
            with pytest.raises(rl_tui.CommandError, match=r"must be a command of rl_tui\.messages|must be text"):
                run.send(wrong)  # type: ignore[arg-type]
        assert (run.exit_code, run.error, run.wait(0)) == (None, None, False)
    assert run.view.state == "stopped"
    assert run.exit_code == 0
    with pytest.raises(rl_tui.CommandError, match="the run is over"):
        run.checkpoint().wait(DEADLINE_SECONDS)
    assert "slower from here" in [e.event.text for e in run.events() if isinstance(e.event, NoteAdded)]


def test_loop_over_events_that_is_left_is_continued_without_a_gap(tmp_path: Path) -> None:
    run = start(tmp_path)
    numbers = []
    for _ in range(3):
        for envelope in run.events():
            numbers.append(envelope.number)
            if isinstance(envelope.event, MetricsReported):
                break
    numbers += [envelope.number for envelope in run.events()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_stopping_now_loses_what_was_not_saved(tmp_path: Path) -> None:
    run = endless(tmp_path)
    next(envelope for envelope in run.events() if envelope.event == RunStateChanged("training"))
    run.stop(now=True).wait(DEADLINE_SECONDS)
    assert run.wait(DEADLINE_SECONDS)
    assert run.view.behaviors["Walker"].checkpoints == []


def test_every_flag_of_a_setting_is_a_keyword() -> None:
    assert set(RunKeywords.__annotations__) == {
        *(flag.keyword for flag in run_flags.IN_PYTHON),
        "deterministic",
        "set",
    }


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({"num_envs": 0}, "num_envs: must be at least 1, got 0"),
        ({"env": "toy:lien"}, r"Did you mean|must be"),
        (
            {"env": lambda: Line("Walker", 4)},
            "env: must be a name, or a class or function at the top level .*, got .*<lambda>",
        ),
        ({"env": {"Walker": 3}}, "env: must be a name, .*, got a int"),
        ({"set": {"behaviors.Walker.max_step": 3}}, "^behaviors.Walker.max_step: unknown key. Did you mean max_steps?"),
        ({"set": {"behaviors.Walker.max_steps": float("nan")}}, "must be finite"),
        (
            {"set": {"behaviors.walker.max_steps": 3}},
            r"^behaviors\.walker\.max_steps: no such behavior\. Did you mean Walker\?$",
        ),
        ({"resume": True, "run_id": "other"}, "^resume: no run in .*. Remove resume=True to start a new one"),
        ({"initialize_from": "other"}, "^initialize_from: no run in"),
        ({"every": 5}, "every: must be a mapping from intervals in steps to functions, got 5"),
        ({"set": "a=b"}, "set: must be a mapping from settings to values, such as .*, got 'a=b'"),
        ({"set": {1: 2}}, "set: must be a mapping from settings to values, such as .*, got {1: 2}"),
    ],
)
def test_what_is_wrong_is_said_at_the_start(keywords: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(rl_tui.ConfigError, match=complaint):
        start(tmp_path, **keywords)
    assert list(tmp_path.iterdir()) == []


def test_keyword_that_there_is_not_is_refused_as_by_any_function(tmp_path: Path) -> None:
    for keyword, advice in (("seeds", "Did you mean seed?"), ("gamma", "Other settings are given in `set`.")):
        with pytest.raises(TypeError) as raised:
            start(tmp_path, **{keyword: 3})
        assert str(raised.value) == f"rl_tui.train and rl_tui.start have no argument '{keyword}'. {advice}"


def test_messages_are_in_the_words_of_python() -> None:
    resume, run_id = "checkpoint_settings.resume", "checkpoint_settings.run_id"
    with naming(argument_of):
        assert (name_of(resume), switched_on(resume), name_of(run_id)) == ("resume", "resume=True", "run_id")
        assert set_to("behaviors.A.max_steps", 5) == 'set={"behaviors.A.max_steps": 5}'
    assert (name_of(resume), switched_on(resume), name_of(run_id)) == ("--resume", "--resume", "--run-id")
    assert set_to("behaviors.A.max_steps", 5) == "--set behaviors.A.max_steps=5"


def test_threads_of_a_run_use_the_words_of_python(tmp_path: Path) -> None:
    assert start(tmp_path).wait(DEADLINE_SECONDS)
    resumed = start(tmp_path, resume=True)
    said = [each.event.message for each in resumed.events() if isinstance(each.event, LogEmitted)]
    assert any('or with set={"behaviors.Walker.max_steps": ' in message for message in said), said


def test_settings_may_be_objects_and_keywords_win_over_them(tmp_path: Path) -> None:
    config = parse_config(effective_yaml(rl_tui_config()).encode(), "walk.yaml")
    run = rl_tui.start(config, results_dir=tmp_path, seed=5, deterministic=True)
    assert run.wait(DEADLINE_SECONDS)
    written = parse_config((run.path / "configuration.yaml").read_bytes(), "")
    assert (run.path.name, written.env_settings.seed) == ("from-a-file", 5)
    assert written.behaviors["Walker"].network_settings.deterministic


def rl_tui_config() -> Any:
    from rl_tui.engine.api.settings import read_run_config

    return read_run_config(settings() | {"checkpoint_settings": {"run_id": "from-a-file"}})


def test_profile_is_named_as_a_preset_is_where_the_environment_has_a_name() -> None:
    config = runnable_config("ppo/gymnasium", {"env": "Pendulum-v1", "num_envs": 2})
    assert (list(config.behaviors), config.env_settings.num_envs) == (["Pendulum"], 2)
    assert config.behaviors["Pendulum"].normalize_reward
    with pytest.raises(rl_tui.ConfigError, match="ppo/gymnasium: needs the name of an environment"):
        runnable_config("ppo/gymnasium", {})


def test_environment_may_be_a_function_that_can_be_imported(tmp_path: Path) -> None:
    result = rl_tui.train(settings(), env=walker, run_id=RUN, results_dir=tmp_path, quiet=True)
    assert "env: tests.api.test_runs:walker" in (result.path / "configuration.yaml").read_text()
    result = rl_tui.train(settings(), env={"Walker": walker}, run_id="2", results_dir=tmp_path, quiet=True)
    assert result.exit_code == 0
    run = rl_tui.start(settings(), env="CartPole-v1", run_id="3", results_dir=tmp_path)
    assert run.wait(DEADLINE_SECONDS)
    assert run.view.behaviors["Walker"].environment == "gymnasium:CartPole-v1"


def test_training_returns_what_was_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rl_tui.train(settings(), run_id=RUN, results_dir=tmp_path)
    assert (result.path, result.exit_code) == (tmp_path / RUN, 0)
    assert result.returns == {"Walker": result.view.behaviors["Walker"].mean_return}
    assert result.returns["Walker"] is not None
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[INFO] run: fewer than 20 updates: Walker makes 8")
    assert lines[1].startswith(f"[INFO] Run {RUN} started in {tmp_path / RUN}")
    assert lines[-1] == "[INFO] Run finished (exit code 0)"
    again = rl_tui.train(settings(), run_id=RUN, results_dir=tmp_path, resume=True, quiet=True)
    assert again.returns["Walker"] == pytest.approx(result.returns["Walker"], abs=0.2), "of its checkpoint"
    assert repr(again) == f"RunResult(path={result.path!r}, exit_code=0, returns={again.returns})"
    with pytest.raises(rl_tui.ConfigError, match=r"holds an earlier run\. Continue it with resume=True, replace"):
        rl_tui.train(settings(), run_id=RUN, results_dir=tmp_path, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_failing_run_raises_its_error_and_has_saved_what_it_learned(tmp_path: Path) -> None:
    wrong = {"env": "tests.api.test_runs:Slippery", "set": {"env_settings.env_kwargs": {"fault": "raises"}}}
    with pytest.raises(rl_tui.EnvironmentFailure, match="the floor was wet"):
        rl_tui.train(settings(max_steps=ENDLESS), run_id=RUN, results_dir=tmp_path, quiet=True, **wrong)
    assert len(list((tmp_path / RUN / "Walker/checkpoints").iterdir())) == 1


def test_environment_of_an_unknown_kind_is_refused_with_the_one_that_is_meant(tmp_path: Path) -> None:
    with pytest.raises(rl_tui.ConfigError, match=r"Did you mean gymnasium:CartPole-v1\?$"):
        rl_tui.train(settings(), env="gym:CartPole-v1", run_id=RUN, results_dir=tmp_path, quiet=True)


def test_run_that_cannot_start_has_the_error_and_no_folder(tmp_path: Path) -> None:
    run = start(tmp_path, env="tests.api.test_runs:Slippery")
    assert run.wait(DEADLINE_SECONDS)
    assert isinstance(run.error, rl_tui.ConfigError)
    assert run.exit_code == 2
    with pytest.raises(rl_tui.ConfigError, match="fault"):
        run.path  # noqa: B018
    assert list(tmp_path.iterdir()) == []


def test_hooks_are_called_while_it_trains(tmp_path: Path) -> None:
    losses, milestones = list[float](), list[rl_tui.Milestone]()
    result = rl_tui.train(
        settings(),
        run_id=RUN,
        results_dir=tmp_path,
        quiet=True,
        on_train_step=lambda seen: losses.append(float(seen.losses["Losses/Policy Loss"])),
        every={200: milestones.append, -1: milestones.clear},
    )
    assert len(losses) == 2 * result.view.behaviors["Walker"].num_updates > 0
    assert [(seen.behavior, seen.multiple) for seen in milestones] == [("Walker", 200), ("Walker", 400)]


def test_hook_that_raises_ends_the_run_with_everything_saved(tmp_path: Path) -> None:
    def fail(milestone: rl_tui.Milestone) -> None:
        raise LookupError("no such plot")

    with pytest.raises(rl_tui.HookError, match="fail raised LookupError: no such plot, at ") as raised:
        rl_tui.train(settings(), run_id=RUN, results_dir=tmp_path, quiet=True, every={200: fail})
    assert isinstance(raised.value.__cause__, LookupError)
    assert len(list((tmp_path / RUN / "Walker/checkpoints").iterdir())) == 1
    with pytest.raises(rl_tui.ConfigError, match=r"every: the interval of .*fail must be a whole number"):
        start(tmp_path, run_id="other", every={0: fail})


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("kind", ["train step", "every"])
def test_hook_that_raises_stop_iteration_stops_the_run_well(kind: str, threaded: bool, tmp_path: Path) -> None:
    def enough(_: object) -> None:
        raise StopIteration

    hooks: dict[str, Any] = {"on_train_step": enough} if kind == "train step" else {"every": {200: enough}}
    walkers = settings(max_steps=ENDLESS, threaded=threaded)
    result = rl_tui.train(walkers, run_id=RUN, results_dir=tmp_path, quiet=True, **hooks)
    assert (result.exit_code, result.view.state) == (0, "stopped")
    (checkpoint,) = (result.path / "Walker/checkpoints").iterdir()
    assert read(checkpoint)[1].reason == "interrupted"
    logged = [e.event for e in rl_tui.events(result.path) if isinstance(e.event, LogEmitted)]
    (line,) = [event for event in logged if "stopped by the hook" in event.message]
    assert re.fullmatch(r"stopped by the hook \S+enough, at .*test_runs\.py:\d+ in enough", line.message)
    assert [event for event in logged if event.level in ("warning", "error")] == []
    assert not (result.path / "run_logs/output.log").exists()


class Pruned(Exception):
    """As a library that searches hyperparameters defines it."""


class Worse(Pruned):
    """What is derived from it counts, too."""


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("kind", ["train step", "every"])
def test_exception_that_the_caller_names_stops_the_run_and_comes_out_as_it_is(
    kind: str, threaded: bool, tmp_path: Path
) -> None:
    def prune(_: object) -> None:
        raise Worse("not promising")

    hooks: dict[str, Any] = {"on_train_step": prune} if kind == "train step" else {"every": {200: prune}}
    walkers = settings(max_steps=ENDLESS, threaded=threaded)
    with pytest.raises(Worse, match=r"^not promising$") as raised:
        rl_tui.train(walkers, run_id=RUN, results_dir=tmp_path, quiet=True, stop_on=Pruned, **hooks)
    assert raised.traceback[-1].name == "prune"
    path = tmp_path / RUN
    (checkpoint,) = (path / "Walker/checkpoints").iterdir()
    assert read(checkpoint)[1].reason == "interrupted"
    found = [e.event for e in rl_tui.events(path)]
    assert [e for e in found if isinstance(e, RunStateChanged)][-1] == RunStateChanged(
        "stopped", "everything is saved", 0
    )
    (line,) = [e for e in found if isinstance(e, LogEmitted) and "stopped by the hook" in e.message]
    assert re.fullmatch(r"stopped by the hook \S+prune, at .*test_runs\.py:\d+ in prune", line.message)
    assert not (path / "run_logs/output.log").exists()


def test_run_in_the_background_says_by_what_it_was_stopped(tmp_path: Path) -> None:
    def prune(_: object) -> None:
        raise Pruned

    def fail(_: object) -> None:
        raise LookupError

    with start(tmp_path, every={200: prune}, stop_on=(KeyError, Pruned)) as run:
        assert run.wait(DEADLINE_SECONDS)
    assert isinstance(run.stopped_by, Pruned)
    assert (run.exit_code, run.error, run.view.state) == (0, None, "stopped")
    with start(tmp_path, run_id="other", every={200: fail}, stop_on=(KeyError, Pruned)) as run:
        assert run.wait(DEADLINE_SECONDS)
    assert (run.exit_code, run.stopped_by) == (2, None)
    assert isinstance(run.error, rl_tui.HookError)
    wrong: list[Any] = [Pruned(), "Pruned", KeyboardInterrupt, (Pruned, 3)]
    for kinds in wrong:
        with pytest.raises(rl_tui.ConfigError, match="stop_on: must be a class of exceptions, or a tuple of them, got"):
            start(tmp_path, run_id="third", every={200: prune}, stop_on=kinds)
    with pytest.raises(rl_tui.ConfigError, match="every: a hook must be a function, got 7"):
        start(tmp_path, run_id="third", every={200: 7}, stop_on=Pruned)


@pytest.fixture
def leaves_at_sigterm() -> Iterator[None]:
    """As docs/python.md advises."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("leaves_at_sigterm")
@pytest.mark.parametrize(("fault", "raised"), [("interrupts", KeyboardInterrupt), ("is terminated", SystemExit)])
def test_interrupt_saves_everything_before_it_is_raised(
    fault: str, raised: type[BaseException], tmp_path: Path
) -> None:
    slippery = {"env": "tests.api.test_runs:Slippery", "set": {"env_settings.env_kwargs": {"fault": fault}}}
    with pytest.raises(raised):
        rl_tui.train(settings(max_steps=ENDLESS), run_id=RUN, results_dir=tmp_path, quiet=True, num_envs=1, **slippery)
    ended = [e.event for e in rl_tui.events(tmp_path / RUN) if isinstance(e.event, RunStateChanged)][-1]
    assert ended == RunStateChanged("stopped", "everything is saved", 0)
    assert len(list((tmp_path / RUN / "Walker/checkpoints").iterdir())) == 1


def test_second_interrupt_does_not_wait_for_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rl_tui.engine.api.runs._follow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rl_tui.train(settings(max_steps=ENDLESS), run_id=RUN, results_dir=tmp_path, quiet=True)
    assert not list((tmp_path / RUN).glob("Walker/checkpoints/*"))


@pytest.mark.usefixtures("leaves_at_sigterm")
def test_sigterm_that_comes_twice_at_once_is_one_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the scheduler, and from the job's script that passes it on."""
    follow, signals = runs._follow, iter(range(2))

    def terminated(run: rl_tui.RunHandle, progress: Any) -> None:
        if next(signals, None) is not None:
            wait_until_it_trains(run)
            signal.raise_signal(signal.SIGTERM)
        follow(run, progress)

    monkeypatch.setattr(runs, "_follow", terminated)
    with pytest.raises(SystemExit):
        rl_tui.train(settings(max_steps=ENDLESS), run_id=RUN, results_dir=tmp_path, quiet=True)
    ended = [e.event for e in rl_tui.events(tmp_path / RUN) if isinstance(e.event, RunStateChanged)][-1]
    assert ended == RunStateChanged("stopped", "everything is saved", 0)


def wait_until_it_trains(run: rl_tui.RunHandle) -> None:
    while run.view.state == "starting":
        run.wait(0.01)


def final(run: Path) -> Any:
    (path,) = (run / "Walker/checkpoints").iterdir()
    return tensors_of(path)


def test_runs_side_by_side_learn_what_each_learns_alone(tmp_path: Path) -> None:
    alone = rl_tui.train(settings(), run_id="alone", results_dir=tmp_path, quiet=True)
    both = [start(tmp_path, run_id=f"both-{number}") for number in range(2)]
    assert both[0].path.is_dir()
    with pytest.raises(rl_tui.RunBusyError, match="is writing to this run"):
        start(tmp_path, run_id="both-0", force=True)
    for run in both:
        assert run.wait(DEADLINE_SECONDS)
        assert run.error is None
        assert equal(final(run.path), final(alone.path))


async def test_training_works_while_a_loop_runs_and_in_other_threads(tmp_path: Path) -> None:
    here = rl_tui.train(settings(), run_id="here", results_dir=tmp_path, quiet=True)
    there = await asyncio.to_thread(rl_tui.train, settings(), run_id="there", results_dir=tmp_path, quiet=True)
    assert equal(final(here.path), final(there.path))


SCRIPT = """
import sys
import rl_tui
from rl_tui.engine.sampling.environments.toys.line import Line

class Corridor(Line):
    def __init__(self):
        super().__init__("Walker", 4)

settings = {settings!r}
try:
    rl_tui.start(settings, env=Corridor, num_workers=2, run_id="b")
except rl_tui.ConfigError as error:
    print(error)
run = rl_tui.start(settings, env=Corridor, run_id="a", set={{"behaviors.Walker.max_steps": 100_000_000}})
for envelope in run.events():
    if type(envelope.event).__name__ == "MetricsReported":
        break
print(*sorted({{"rich", "textual"}} & sys.modules.keys()))
"""


def test_program_that_ends_while_its_run_trains_saves_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(settings=settings())],
        cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    refused, imported, *_ = done.stdout.split("\n")
    assert refused.startswith("env: Corridor is defined in the program itself, where worker processes cannot import it")
    assert imported == "", "neither a screen nor what draws progress"
    assert "the program ends while <run a: training, Walker at step" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    ended = [e.event for e in rl_tui.events(tmp_path / "results/a") if isinstance(e.event, RunStateChanged)][-1]
    assert ended == RunStateChanged("stopped", "everything is saved", 0)
    exit_code, _, stderr = command("results/a/configuration.yaml", "--no-ui", "--resume", folder=tmp_path)
    assert exit_code == 2
    assert "this program defines no Corridor" in stderr


CRASH = """
import ctypes, rl_tui
from rl_tui.engine.sampling.environments.toys.line import Line

class Crashing(Line):
    def __init__(self):
        super().__init__("Walker", 4)

    def step(self, actions):
        ctypes.string_at(0)

rl_tui.train({settings!r}, env=Crashing)
"""


@pytest.mark.slow
def test_program_whose_environment_crashes_shows_where(tmp_path: Path) -> None:
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH.format(settings=settings())],
        cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert crashed.returncode == -signal.SIGSEGV
    assert 'File "<string>", line 10 in step' in crashed.stderr


def test_outcome_that_does_not_come_in_time_is_reported(tmp_path: Path) -> None:
    with endless(tmp_path) as run:
        with pytest.raises(TimeoutError, match="SaveCheckpoint is not finished after 0 s"):
            run.checkpoint().wait(0)
        while not any(isinstance(e.event, CommandFinished) for e in run.events(wait=False)):
            assert not run.wait(0.05)


def test_settings_of_an_object_are_not_taken_for_what_its_maker_wrote(tmp_path: Path) -> None:
    run = rl_tui.start(rl_tui_config(), results_dir=tmp_path)
    assert run.wait(DEADLINE_SECONDS)
    assert [e.event for e in run.events() if isinstance(e.event, LogEmitted) and e.event.level == "warning"] == []


def test_a_stop_does_not_wait_for_an_environment_that_is_being_made(tmp_path: Path) -> None:
    run = start(tmp_path, env=f"{__name__}:slowly", timeout_wait=900)
    assert IS_MAKING.wait(DEADLINE_SECONDS)
    try:
        assert run.stop().wait(DEADLINE_SECONDS) == "stopped"
        assert run.wait(DEADLINE_SECONDS)
        assert (run.view.state, run.exit_code, run.error) == ("stopped", 0, None)
        assert not (tmp_path / RUN).exists(), "nothing to resume from"
    finally:
        RELEASE.set()
