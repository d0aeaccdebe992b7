"""A learner in the caller's hands: what it is made of, what it does, and what it leaves."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import json
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml

import rl_tui
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.tui.cli import main
from tests.running import runs
from tests.running.environments import Overwhelming, Pair
from tests.running.growing import Growing
from tests.running.runs import configuration, equal, run_to_end, tensors_of

SAC = {
    "trainer_type": "sac",
    "hyperparameters": {"batch_size": 16, "buffer_size": 400, "buffer_init_steps": 64, "steps_per_update": 16},
}


def behavior(**changes: Any) -> dict[str, Any]:
    """As the others, with one quick export."""
    return runs.behavior(**{"export_policies": ["raw"], **changes})


def line(folder: Path, **keywords: Any) -> rl_tui.Learner:
    """A learner of four agents on lines, with PPO."""
    return rl_tui.Learner(behavior(), "toy:line", folder / "a", seed=1, num_envs=4, **keywords)


def checkpoints(folder: Path, behavior: str = "*") -> list[Path]:
    """Of that behavior of a run, or of the only one, oldest first."""
    found = folder.glob(f"{behavior}/checkpoints/*")
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def everything(learner: rl_tui.Learner) -> State:
    """All that a trainer and its policy hold, the replay buffer included."""
    own = learner._learner.trainer
    replay = own.replay() or State()
    return State.merge({"trainer": own.state(), "policy": learner._own.policy.state(), "replay": replay})


@pytest.mark.parametrize("trainer", [{}, SAC], ids=["ppo", "sac"])
def test_learner_learns_as_a_run_does_bit_for_bit(trainer: Mapping[str, Any], tmp_path: Path) -> None:
    settings = behavior(**trainer)
    config = configuration(tmp_path, {"Walker": settings}, env_settings={"num_envs": 4, "seed": 5})
    assert run_to_end(config).launch.exit_code == 0
    with rl_tui.Learner(config, None, tmp_path / "results/hand") as learner:
        while not learner.is_finished:
            learner.run(3)
    (ours,) = checkpoints(tmp_path / "results/hand")
    (theirs,) = checkpoints(tmp_path / "results/run")
    assert ours.name == theirs.name
    assert equal(tensors_of(ours), tensors_of(theirs))
    assert read(ours)[0].values == read(theirs)[0].values


def test_iteration_is_an_update_and_returns_its_losses(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        losses = learner.run(2)
        assert learner.num_updates == 2
        assert 128 <= learner.step < 256
        assert {"Losses/Policy Loss", "Losses/Value Loss", "Policy/Entropy"} <= losses.keys()
        assert all(type(value) is float for value in losses.values())
        assert learner.run(0) == losses
        assert isinstance(learner.mean_return, float)
        wrong: list[Any] = [-1, 1.5, "3", True, None]
        for iterations in wrong:
            with pytest.raises(
                rl_tui.ConfigError, match=f"iterations: must be a whole .* at least 0, got {iterations!r}"
            ):
                learner.run(iterations)
        learner.run(1000)
        assert learner.is_finished
        step = learner.step
        assert step >= 512
        assert learner.run() == learner.run(5)
        assert learner.step == step


def test_blocks_taken_by_hand_learn_as_run_does(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), "toy:line", tmp_path / "a", seed=1) as learner:
        learner.run(5)
        expected = everything(learner)
    with rl_tui.Learner(behavior(), "toy:line", tmp_path / "b", seed=1) as learner:
        while learner.num_updates < 5:
            block = learner.collect()
            before, updates = learner.loss(block), learner.num_updates
            losses = learner.learn(block)
            assert block.num_rows < 32, "at most time_horizon steps, and those of segments before"
            assert (losses is None) == (learner.num_updates == updates)
            assert before.keys() >= {"Losses/Policy Loss", "Losses/Value Loss"}
        assert equal(everything(learner).tensors, expected.tensors)
        assert everything(learner).values == expected.values


def test_experience_that_is_not_of_the_behavior_is_refused(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), "Pendulum-v1", tmp_path / "b") as other:
        foreign = other.collect()
    with line(tmp_path) as learner:
        block = learner.collect()
        wrong: list[tuple[Any, str]] = [
            (None, "experience: must be Trajectories, as collect.. returns them, got None"),
            ([block], "experience: must be Trajectories, .* got a list"),
            (
                foreign,
                r"experience: must be of Agent:\n  observations: must be a tuple of 2, got 1\n.*\n  continuous_act",
            ),
            (
                dataclasses.replace(block, observations=tuple(one[1:] for one in block.observations)),
                r"observations, \w+: must be float32\[",
            ),
            (dataclasses.replace(block, rewards=[1.0]), r"\n  rewards: must be float32\[1\], got a list"),
            (dataclasses.replace(block, rewards=block.rewards * np.float64(2)), r"rewards: .* got float64\["),
            (dataclasses.replace(block, lengths=block.lengths + 1), r"lengths: .* add up to the \d+ rows, got"),
            (dataclasses.replace(block, observations=()), r"observations: must be a tuple of 2, got 0"),
        ]
        for experience, message in wrong:
            for method in (learner.loss, learner.learn):
                with pytest.raises(rl_tui.ConfigError, match=message):
                    method(experience)
        assert learner.step == 0
        learner.learn(dataclasses.replace(block, rewards=block.rewards * 0.5))
        assert learner.step == block.num_rows


@pytest.mark.parametrize(
    "carrier", [rl_tui.Trajectories, rl_tui.Transitions, rl_tui.Minibatch, rl_tui.RolloutMinibatch]
)
def test_help_describes_every_column_of_experience(carrier: type) -> None:
    described = "".join(inspect.getdoc(each) or "" for each in carrier.__mro__ if each is not object)
    columns = [field.name for field in dataclasses.fields(carrier)]
    assert [name for name in columns if f"\n{name}: " not in described] == []


@pytest.mark.parametrize("trainer", [{}, SAC], ids=["ppo", "sac"])
def test_loss_changes_nothing(trainer: Mapping[str, Any], tmp_path: Path) -> None:
    settings = behavior(**trainer, network_settings__normalize=True)
    if trainer:
        settings["hyperparameters"]["save_replay_buffer"] = True
    with rl_tui.Learner(settings, "toy:line", tmp_path / "a", seed=1) as learner:
        learner.run(3)
        block = learner.collect()
        before, counters = everything(learner), (learner.step, learner.num_updates, learner.mean_return)
        losses = learner.loss(block)
        assert learner.loss(block) == losses
        assert equal(everything(learner).tensors, before.tensors)
        assert everything(learner).values == before.values
        assert (learner.step, learner.num_updates, learner.mean_return) == counters


def test_learner_continues_from_the_newest_checkpoint_of_its_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with line(tmp_path) as learner:
        learner.run(2)
        assert learner.resumed_from is None
        state, step = learner._learner.trainer.state(), learner.step
    with caplog.at_level(logging.INFO, "rl_tui"), line(tmp_path) as learner:
        assert (learner.step, learner.num_updates) == (step, 2)
        assert learner.resumed_from == checkpoints(tmp_path / "a")[-1]
        assert equal(learner._learner.trainer.state().tensors, state.tensors)
        assert f"resumed at step {step}" in caplog.text
        learner.run(1)
        assert learner.step > step


def test_log_has_the_lines_of_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rl_tui"):
        with line(tmp_path) as learner:
            learner.run(3)
            learner.save()
        with (
            rl_tui.Learner(behavior(), Counting(fails_at=10), tmp_path / "b") as learner,
            pytest.raises(rl_tui.EnvironmentFailure),
        ):
            learner.run(1)
    for expected in (
        r"Run a started in .*a \(seed 1, cpu; ",
        r"\w+\. Step: 100\. Time Elapsed: .* Training\.",
        r"\w+: step \d+ saved",
        r"Run stopped: everything is saved \(exit code 0\)",
        r"Environment failed, ending \w+: Counting, instance 0: step raised RuntimeError",
    ):
        assert re.search(expected, caplog.text), expected
    assert {record.levelname for record in caplog.records} == {"INFO"}, "the failure itself is raised"


def test_replay_buffer_is_restored_where_it_is_saved(tmp_path: Path) -> None:
    settings = behavior(**SAC)
    settings["hyperparameters"]["save_replay_buffer"] = True
    with rl_tui.Learner(settings, "toy:line", tmp_path / "a", seed=1) as learner:
        learner.run(5)
        replay = learner._learner.trainer.replay()
    with rl_tui.Learner(settings, "toy:line", tmp_path / "a", seed=1) as learner:
        restored = learner._learner.trainer.replay()
        assert replay is not None
        assert restored is not None
        assert equal(restored.tensors, replay.tensors)


class Counting(gymnasium.Env[Any, Any]):
    """Episodes of three steps; raises at the `fails_at`-th step of all."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, error: type[BaseException] = RuntimeError, fails_at: int = -1) -> None:
        self.num_closed = self.num_steps = 0
        self._error, self._fails_at = error, fails_at

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._left = 3
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.num_steps += 1
        if self.num_steps == self._fails_at:
            raise self._error("on purpose")
        self._left -= 1
        return np.ones(2, np.float32), 1.0, self._left == 0, False, {}

    def close(self) -> None:
        self.num_closed += 1


def test_environment_may_be_a_name_an_object_or_a_function(tmp_path: Path) -> None:
    vector = gymnasium.make_vec("CartPole-v1", 3)
    own = Line("Walker", 2)
    named = f"{__name__}:Counting"
    several: list[tuple[Any, str, str | None, int]] = [
        ("CartPole-v1", "CartPole", "gymnasium:CartPole-v1", 1),
        ("gymnasium:CartPole-v1", "CartPole", "gymnasium:CartPole-v1", 1),
        ("toy:line", "Agent", "toy:line", 1),
        (named, "Agent", named, 1),
        (gymnasium.make("CartPole-v1"), "CartPole", "gymnasium:CartPole-v1", 1),
        (gymnasium.make("CartPole-v1", max_episode_steps=9), "CartPole", None, 1),
        (Counting(), "Agent", None, 1),
        (vector, "CartPole", None, 3),
        (own, "Walker", None, 1),
        (Counting, "Agent", named, 2),
        (lambda: gymnasium.make("CartPole-v1"), "Agent", None, 2),
        (lambda: Line("Runner", 2), "Runner", None, 2),
    ]
    for number, (env, name, written, copies) in enumerate(several):
        num_envs = copies if callable(env) else None
        with rl_tui.Learner(behavior(), env, tmp_path / str(number), num_envs=num_envs) as learner:
            learner.run(1)
            assert learner.behavior == name
        saved = yaml.safe_load((tmp_path / str(number) / "configuration.yaml").read_text())
        assert saved["env_settings"]["env"] == written
        assert saved["env_settings"]["num_envs"] == copies
        assert list(saved["behaviors"]) == [name]


def test_environments_in_worker_processes_begin_again_after_an_interruption(tmp_path: Path) -> None:
    settings = {"behaviors": {"Agent": behavior()}, "env_settings": {"num_workers": 1, "num_envs": 2}}
    with rl_tui.Learner(settings, "CartPole-v1", tmp_path / "a", seed=1) as learner:
        learner.run(1)
        learner._is_interrupted = True
        learner.run(1)
        assert learner.num_updates == 2
        learner.export()
    observation, _ = gymnasium.make("CartPole-v1").reset(seed=1)
    assert rl_tui.load_policy(tmp_path / "a", "raw").act(observation) in (0, 1)
    with pytest.raises(rl_tui.NotSupportedError, match="num_workers: must be 0, got 1: worker processes need the name"):
        rl_tui.Learner(settings, Counting(), tmp_path / "b")


def test_workers_are_chosen_for_what_they_can_import(tmp_path: Path) -> None:
    settings = {"behaviors": {"Agent": behavior()}, "env_settings": {"num_workers": "auto"}}
    for folder, env in (("object", Counting()), ("name", "CartPole-v1")):
        with rl_tui.Learner(settings, env, tmp_path / folder, seed=1) as learner:
            learner.run(1)
            assert learner.num_updates == 1
        saved = yaml.safe_load((tmp_path / folder / "configuration.yaml").read_text())
        assert saved["env_settings"]["num_workers"] == 0, "there is one copy"


def test_environment_of_the_caller_is_not_closed(tmp_path: Path) -> None:
    env, made = Counting(), list[Counting]()

    def make() -> Counting:
        made.append(Counting())
        return made[-1]

    with rl_tui.Learner(behavior(), env, tmp_path / "a") as learner:
        learner.run(1)
    assert env.num_closed == 0
    with rl_tui.Learner(behavior(), make, tmp_path / "b", num_envs=3) as learner:
        learner.run(1)
    assert [each.num_closed for each in made] == [1, 1, 1]


@pytest.mark.parametrize(
    ("env", "changes", "message"),
    [
        (None, {}, "^env: must be gymnasium:ID, .* The Unity Editor, .* rl_tui.train"),
        ("gym:CartPole-v1", {}, r'got "gym:CartPole-v1"\. Did you mean gymnasium:CartPole-v1\?$'),
        (3, {}, "env: must be gymnasium:ID, .* or a function that makes one; got a int"),
        ("CartPole", {}, r"^CartPole: no such Unity player\..* An environment of Gymnasium is named gymnasium:ID"),
        ("NoSuch-v1", {}, "gymnasium:NoSuch-v1: no such Gymnasium environment"),
        ("toy:nothing", {}, "toy:nothing: "),
        (dict, {}, "dict: must return a gymnasium.Env, .* got dict"),
        (Counting(), {"num_envs": 2}, "num_envs: must be 1, which is how many copies env has, got 2"),
        (Counting(), {"device": "tpu!"}, "^device: must be auto, cpu, cuda"),
        (Counting(), {"num_envs": 0}, "num_envs: must be at least 1, got 0"),
        (
            itertools.repeat(Counting()).__next__,
            {"num_envs": 2},
            "must return a new environment at each of 2 calls, got the same C",
        ),
        (Pair, {"behavior": "Left"}, "the environment has a behavior 'Right', the file has Left"),
        (lambda: Line("Walker", 1), {"behavior": "Wlker"}, "has no such behavior, it has Walker. Did you mean Walker?"),
    ],
)
def test_what_cannot_be_an_environment_is_refused(
    env: Any, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(rl_tui.RlTuiError, match=message):
        rl_tui.Learner(behavior(), env, tmp_path / "a", **changes)
    assert not (tmp_path / "a").exists()


def test_settings_may_be_a_mapping_a_file_a_preset_or_objects(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"behaviors": {"Mine": behavior()}}))
    whole = {"behaviors": {"A": behavior(), "B": behavior(max_steps=64)}, "env_settings": {"env": "toy:line"}}
    several: list[tuple[Any, dict[str, Any], str]] = [
        (behavior(), {}, "Agent"),
        (behavior(), {"behavior": "Walker"}, "Walker"),
        (BehaviorConfig.model_validate(behavior()), {"behavior": "Walker"}, "Walker"),
        (str(tmp_path / "own.yaml"), {}, "Mine"),
        (tmp_path / "own.yaml", {}, "Mine"),
        ("ppo/CartPole", {}, "CartPole"),
        (whole, {"behavior": "B"}, "B"),
        ({"default_settings": behavior()}, {"behavior": "Other"}, "Other"),
    ]
    for number, (settings, changes, name) in enumerate(several):
        with rl_tui.Learner(settings, "toy:line", tmp_path / str(number), **changes) as learner:
            assert learner.behavior == name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_stps": 3}, r"^max_stps: unknown key. Did you mean max_steps\?$"),
        ({"behaviors": {"A": {"max_steps": -1}}}, "^behaviors.A.max_steps: must be at least 1, got -1$"),
        ("ppo/Cartpole", r"settings: ppo/Cartpole: no such file or preset. Did you mean ppo/CartPole\?"),
        ({"behaviors": {"A": {}, "B": {}}}, "env: must map each of the 2 behaviors to an environment; toy:line has on"),
        ({"max_steps": object()}, "settings: max_steps: must be a plain value, got object"),
        ({1: 2}, "settings: : keys must be text, got 1"),
        ({"max_steps": float("inf")}, "settings: max_steps: must be finite, got inf"),
        (
            {"self_play": {}},
            r"^behaviors\.Agent\.self_play: toy:line has only one team, of Agent: a game needs two",
        ),
        (3, "settings: must be a mapping, the path of a file, the name of a preset, .* got int"),
    ],
)
def test_settings_that_are_wrong_are_refused_by_name(settings: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(rl_tui.RlTuiError, match=message):
        rl_tui.Learner(settings, "toy:line", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_error_in_a_file_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("behaviors:\n  A:\n    max_steps: -3\n")
    with pytest.raises(rl_tui.ConfigError, match=r"own\.yaml:3:16: behaviors\.A\.max_steps: must be"):
        rl_tui.Learner(tmp_path / "own.yaml", "toy:line", tmp_path / "a")


def test_interrupted_learner_is_saved_and_continues(tmp_path: Path) -> None:
    env = Counting(KeyboardInterrupt, fails_at=100)
    with rl_tui.Learner(behavior(), env, tmp_path / "a", seed=1) as learner:
        with pytest.raises(KeyboardInterrupt):
            learner.run(5)
        step = learner.step
        assert learner.num_updates == 1
        assert learner.save().name == f"Agent-{step}"
        learner.run(1)
        assert learner.num_updates == 2
        assert step < learner.step <= step + 66
    assert [path.name for path in checkpoints(tmp_path / "a")] == [f"Agent-{step}", f"Agent-{learner.step}"]


class Preempted(Exception):
    """Of a user, whose cluster wants its machine back."""


def leave(*_: object) -> None:
    sys.exit(143)


def give_up(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Preempted


@pytest.fixture(params=[leave, give_up])
def on_sigterm(request: pytest.FixtureRequest) -> Iterator[type[BaseException]]:
    """What a program's handler of SIGTERM raises."""
    before = signal.signal(signal.SIGTERM, request.param)
    yield SystemExit if request.param is leave else Preempted
    signal.signal(signal.SIGTERM, before)


class Terminated(Exception):
    """Instead of being raised in an environment, it sends SIGTERM."""

    def __init__(self, *_: object) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_signal_that_the_program_handles_ends_run_as_ctrl_c_does(
    on_sigterm: type[BaseException], tmp_path: Path
) -> None:
    with rl_tui.Learner(behavior(), Counting(Terminated, fails_at=100), tmp_path / "a") as learner:
        with pytest.raises(on_sigterm):
            learner.run(5)
        assert learner.num_updates == 1
        learner.run(1)
    assert read(checkpoints(tmp_path / "a")[-1])[1].reason == "interrupted"


@pytest.mark.parametrize("kind", ["train step", "every"])
def test_signal_that_comes_in_a_hook_is_no_failure_of_it(
    kind: str, on_sigterm: type[BaseException], tmp_path: Path
) -> None:
    with line(tmp_path) as learner:
        if kind == "every":
            learner.every(100, lambda _: signal.raise_signal(signal.SIGTERM))
        else:
            learner.on_train_step(lambda _: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(on_sigterm) as raised:
            learner.run(5)
        assert not hasattr(raised.value, "__notes__")
    assert not (tmp_path / "a/run_logs/output.log").exists(), "no traceback"


def test_environment_that_ends_the_program_itself_has_failed(on_sigterm: object, tmp_path: Path) -> None:
    with (
        rl_tui.Learner(behavior(), Counting(SystemExit, fails_at=100), tmp_path / "a") as learner,
        pytest.raises(rl_tui.EnvironmentFailure, match="step raised SystemExit: on purpose"),
    ):
        learner.run(5)


def test_failing_environment_ends_training_with_everything_saved(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Counting(fails_at=100), tmp_path / "a") as learner:
        with pytest.raises(rl_tui.EnvironmentFailure, match="step raised RuntimeError: on purpose, at "):
            learner.run(5)
        assert read(checkpoints(tmp_path / "a")[-1])[1].reason == "error"
        with pytest.raises(rl_tui.RlTuiError, match="training has failed, and a new Learner continues"):
            learner.run(1)
        step = learner.step
    with rl_tui.Learner(behavior(), Counting(), tmp_path / "a") as learner:
        assert learner.step == step >= 64
        learner.run(1)
    kinds = [json.loads(row)["event"] for row in (tmp_path / "a/events.jsonl").read_text().splitlines()]
    assert kinds.count("EnvironmentFailed") == 1
    assert kinds.count("RunStarted") == 2


class Painted(Counting):
    """Fails with a text that would color a terminal."""

    def step(self, action: Any) -> Any:
        raise ValueError("\x1b[31mred\x07")


def test_text_of_a_failure_controls_no_terminal(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Painted(), tmp_path / "a") as learner:
        with pytest.raises(rl_tui.EnvironmentFailure, match="step raised ValueError: red, at ") as first:
            learner.run(1)
        with pytest.raises(rl_tui.RlTuiError, match=r"training has failed.*: red, at ") as second:
            learner.save()
    for failure in (first.value, second.value):
        assert str(failure).isprintable()
    assert first.value.detail
    assert "\x1b" not in first.value.detail
    with pytest.raises(rl_tui.ConfigError) as third:
        rl_tui.Learner(behavior(), "toy:line", tmp_path / "b", device="\x1b[31mred")
    assert str(third.value).isprintable()


def test_second_thread_is_refused_until_the_first_has_returned(tmp_path: Path) -> None:
    said: list[str] = []

    def meddle(learner: rl_tui.Learner) -> None:
        methods = learner.run, learner.collect, learner.save, learner.policy, learner.close
        for method in methods:
            try:
                method()
            except rl_tui.RlTuiError as error:
                said.append(str(error))

    with line(tmp_path) as learner:

        def hook(_: object) -> None:
            if not said:
                other = threading.Thread(target=meddle, args=(learner,), name="meddler")
                other.start()
                other.join()

        learner.on_train_step(hook)
        learner.run(2)
        here = threading.current_thread().name
        words = f"thread 'meddler' must wait until {here!r} has returned: a Learner serves one thread at a time"
        assert said == [words] * 5
        step = learner.step
        other = threading.Thread(target=lambda: learner.run(1))  # now it is free
        other.start()
        other.join()
        assert learner.step > step


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_divergence_ends_training_with_the_last_finite_state(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Overwhelming, tmp_path / "a") as learner:
        with pytest.raises(rl_tui.NonFiniteError):
            learner.run(5)
        assert learner.num_updates > 0
    assert checkpoints(tmp_path / "a") != []


def test_settings_without_a_name_continue_what_the_folder_holds(tmp_path: Path) -> None:
    with line(tmp_path, behavior="Walker") as learner:
        learner.run(1)
    with rl_tui.Learner(behavior(), "CartPole-v1", tmp_path / "b", num_envs=1) as learner:
        assert learner.behavior == "CartPole"
        learner.run(1)
    for settings in (behavior(), BehaviorConfig.model_validate(behavior()), {"default_settings": behavior()}):
        with rl_tui.Learner(settings, "toy:line", tmp_path / "a") as learner:
            assert learner.behavior == "Walker"
            assert learner.resumed_from is not None


def test_folder_of_another_behavior_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with line(tmp_path, behavior="Walker") as learner:
        learner.run(1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "run.lock"}
    message = r"behavior: must be Walker, which \S+a holds, got Wolker\. Choose another folder"
    for settings in (behavior(), {"behaviors": {"Wolker": behavior()}}):
        with pytest.raises(rl_tui.ConfigError, match=message):
            rl_tui.Learner(settings, "toy:line", tmp_path / "a", behavior="Wolker")
    with pytest.raises(rl_tui.ConfigError, match=r"behavior: must be Walker, .* got Runner"):
        rl_tui.Learner(behavior(), Line("Runner", 1), tmp_path / "a")
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "run.lock"}
    assert after == before


def test_other_settings_than_those_of_the_folder_are_named(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        learner.run(1)
    configuration = (tmp_path / "a/configuration.yaml").read_text()
    several: list[tuple[Any, str, str]] = [
        (behavior(**SAC), "toy:line", r"trainer_type ppo \(here sac\)\. Use these again"),
        (behavior(network_settings__hidden_units=6), "toy:line", r"network_settings.hidden_units 8 \(here 6\)\. Use"),
        (behavior(), "CartPole-v1", r"observations .* \(here observation \[4\]\)"),
    ]
    for settings, env, message in several:
        with pytest.raises(rl_tui.CheckpointError, match=rf"^Agent: its checkpoint was trained with {message}"):
            rl_tui.Learner(settings, env, tmp_path / "a")
    assert (tmp_path / "a/configuration.yaml").read_text() == configuration


def test_two_learners_in_one_process_do_not_disturb_each_other(tmp_path: Path) -> None:
    with line(tmp_path / "alone") as learner:
        learner.run(4)
        expected = everything(learner)
    with line(tmp_path / "one") as one, line(tmp_path / "two") as two:
        for _ in range(4):
            one.run(1)
            two.run(1)
        for learner in (one, two):
            assert equal(everything(learner).tensors, expected.tensors)


def test_folder_has_one_writer(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        learner.run(1)
        with pytest.raises(rl_tui.RunBusyError, match=r"this process itself is writing to this run: end what does"):
            line(tmp_path)
        learner.run(1)
    wrong: list[tuple[Any, str]] = [
        (None, "folder: must be a path, got None"),
        ("", "folder: must be a path, got ''"),
        (tmp_path / "file/a", r"cannot be created|cannot create the run folder .* It must be in a folder that can be"),
    ]
    (tmp_path / "file").touch()
    for folder, message in wrong:
        with pytest.raises(rl_tui.ConfigError, match=message):
            rl_tui.Learner(behavior(), "toy:line", folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/letter.txt").write_text("mine")
    with pytest.raises(rl_tui.ConfigError, match=r"of rl-tui \(letter.txt\)\. .* choose another folder$"):
        rl_tui.Learner(behavior(), "toy:line", tmp_path / "other")
    assert os.listdir(tmp_path / "other") == ["letter.txt"]


def test_learner_that_was_forgotten_does_not_keep_its_folder(tmp_path: Path) -> None:
    import gc

    learner = line(tmp_path)
    learner.run(1)
    del learner
    gc.collect()
    with line(tmp_path) as learner:
        assert learner.step == 0


def test_closed_learner_is_saved_and_refuses_to_train(tmp_path: Path) -> None:
    learner = line(tmp_path)
    learner.run(3)
    learner.close()
    learner.close()
    assert [path.name for path in checkpoints(tmp_path / "a")] == [f"Agent-{learner.step}"]
    assert read(checkpoints(tmp_path / "a")[0])[1].reason == "interrupted"
    with pytest.raises(rl_tui.RlTuiError, match="this Learner is closed"):
        learner.run(1)


def test_learner_shows_where_it_is_and_cannot_be_copied(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        learner.run(1)
        text = f"Learner of Agent in {tmp_path}/a, step {learner.step}, update 1>"
        assert repr(learner) == f"<{text}"
        for method in (copy.copy, copy.deepcopy, lambda own: own.__reduce_ex__(2)):
            with pytest.raises(
                TypeError, match="a Learner cannot be copied or pickled, since it has locked its folder"
            ):
                method(learner)
    assert repr(learner) == f"<closed {text}"


def test_fork_of_a_learner_is_refused_and_releases_nothing(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        child = os.fork()
        if child == 0:  # no test may run here: the fork ends with what it found
            found = 1
            try:
                learner.run(1)
            except rl_tui.RlTuiError as error:
                found = 0 if "cannot be used in a fork" in str(error) else 2
            learner.close()
            os._exit(found)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(rl_tui.RunBusyError):
            line(tmp_path)
        learner.run(1)


def test_everything_that_a_run_leaves_is_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    others = set(threading.enumerate())
    with rl_tui.Learner(runs.behavior(summary_freq=128), "CartPole-v1", tmp_path / "a", seed=1) as learner:
        learner.run(4)
        step = learner.step
        assert learner.save() == tmp_path / f"a/CartPole/checkpoints/CartPole-{step}"
        exported = learner.export()
    assert set(threading.enumerate()) == others
    assert capfd.readouterr() == ("", "")
    assert set(exported) == {"stochastic", "greedy", "raw"}
    assert all(path.is_file() for path in exported.values())
    assert list((tmp_path / "a/CartPole").glob("events.out.tfevents.*")) != []
    assert (tmp_path / "a/run_logs/training_status.json").is_file()
    assert main(["ls", str(tmp_path), "--json"]) == 0
    (run,) = [json.loads(row) for row in capfd.readouterr().out.splitlines()]
    assert (run["run_id"], run["state"], run["behaviors"][0]["step"]) == ("a", "stopped", step)
    assert main(["evaluate", str(tmp_path / "a"), "--episodes", "2"]) == 0
    assert "mean" in capfd.readouterr().out


def test_hyperparameter_set_by_hand_is_used_and_restored(tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        learner.set_hyperparameter("learning_rate", 1e-3)
        assert learner.hyperparameters["learning_rate"] == 1e-3
        assert repr(learner.hyperparameters["num_epoch"]) == "1"
        assert learner.run(1)["Policy/Learning Rate"] < 1e-3
        with pytest.raises(rl_tui.ConfigError, match="learning_rte"):
            learner.set_hyperparameter("learning_rte", 1.0)
        learner.run(1)
    with line(tmp_path) as learner:
        assert learner.hyperparameters["learning_rate"] == 1e-3


def test_evaluation_needs_environments_of_its_own(tmp_path: Path) -> None:
    settings = behavior(evaluation={"interval": 64, "episodes": 2})
    with pytest.raises(rl_tui.NotSupportedError, match="evaluation: needs environments of its own"):
        rl_tui.Learner(settings, Counting(), tmp_path / "a")
    milestones = list[rl_tui.Milestone]()
    with rl_tui.Learner(settings, Counting, tmp_path / "a") as learner:
        learner.every(64, milestones.append)
        learner.run(2)
        assert milestones[-1].mean_return == learner.mean_return
        assert milestones[-1].evaluated_return == 3.0
    assert "EvaluationReported" in (tmp_path / "a/events.jsonl").read_text()


def test_learner_of_two_behaviors_learns_as_a_run_does_bit_for_bit(tmp_path: Path) -> None:
    settings = {"Left": behavior(max_steps=256), "Right": behavior(**SAC, max_steps=192)}
    config = configuration(tmp_path, settings, env="tests.running.environments:Pair", env_settings={"seed": 5})
    assert run_to_end(config).launch.exit_code == 0
    with rl_tui.Learner(config, None, tmp_path / "results/hand") as learner:
        assert list(learner.behaviors) == ["Left", "Right"]
        losses = learner.run(1)
        assert {"Left/Losses/Policy Loss", "Right/Losses/Policy Loss"} <= losses.keys()
        while not learner.is_finished:
            learner.run(3)
        assert {name: one.step for name, one in learner.behaviors.items()} == {"Left": 256, "Right": 192}
    for name in settings:
        ours, theirs = (checkpoints(tmp_path / "results" / run, name)[-1] for run in ("hand", "run"))
        assert equal(tensors_of(ours), tensors_of(theirs)), name
        assert read(ours)[0].values == read(theirs)[0].values


def test_each_of_two_behaviors_can_be_taught_by_hand(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Pair, tmp_path / "a", seed=1) as learner:
        left, right = learner.behaviors["Left"], learner.behaviors["Right"]
        while left.num_updates < 2:
            left.learn(left.collect())
        assert right.step == 0
        held = left.step
        while right.step < held:  # what came meanwhile was kept
            right.learn(right.collect())
        assert right.losses.keys() == left.losses.keys()
        left.set_hyperparameter("learning_rate", 1e-4)
        assert right.hyperparameters["learning_rate"] != 1e-4
        assert left.save().parent.parent.name == "Left"
        assert set(right.export()) == {"raw"}
        assert left.policy().behavior == "Left"
        message = r"this Learner has several behaviors, Left and Right: use learner.behaviors\[NAME\]"
        for call in (learner.collect, learner.save, lambda: learner.step):
            with pytest.raises(rl_tui.ConfigError, match=message):
                call()
    assert {path.name for path in (tmp_path / "a").iterdir()} >= {"Left", "Right"}


@pytest.mark.filterwarnings("ignore:overflow")
def test_failure_of_one_behavior_ends_that_one(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), lambda: Pair(bad="Right"), tmp_path / "a", seed=1) as learner:
        with pytest.raises(rl_tui.NonFiniteError):
            learner.run(9)
        with pytest.raises(rl_tui.RlTuiError, match="training has failed"):
            learner.run(1)
        with pytest.raises(rl_tui.RlTuiError, match="training has failed"):
            learner.behaviors["Right"].collect()
        left = learner.behaviors["Left"]
        updates = left.num_updates
        while left.num_updates == updates:
            left.learn(left.collect())


def test_behavior_that_appears_later_is_learned_too(tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(), Growing(3), tmp_path / "a") as learner:
        assert list(learner.behaviors) == ["Left"]
        learner.run(2)
        assert list(learner.behaviors) == ["Left", "Right"]
        assert learner.behaviors["Right"].step > 0


@pytest.mark.parametrize("trainer", [{}, SAC], ids=["ppo", "sac"])
def test_hooks_see_train_steps_and_multiples_and_change_nothing(trainer: Mapping[str, Any], tmp_path: Path) -> None:
    with rl_tui.Learner(behavior(**trainer), "toy:line", tmp_path / "a", seed=1, num_envs=4) as learner:
        learner.run(6)
        expected = everything(learner)
    steps, milestones = list[rl_tui.TrainStep](), list[rl_tui.Milestone]()
    with rl_tui.Learner(behavior(**trainer), "toy:line", tmp_path / "b", seed=1, num_envs=4) as learner:
        learner.on_train_step(steps.append)
        learner.every(100, milestones.append)
        losses = learner.run(6)
        assert equal(everything(learner).tensors, expected.tensors)
        assert [each.multiple for each in milestones] == list(range(100, learner.step + 1, 100))
        assert all(each.behavior == "Agent" and each.step >= each.multiple for each in milestones)
    assert len(steps) >= 6
    assert {"Losses/Policy Loss"} <= steps[-1].losses.keys() <= losses.keys()
    assert (steps[-1].errors is None) == (trainer == {})


class Enough(StopIteration):
    """Of a user; generators turn a StopIteration into another error."""


@pytest.mark.parametrize("kind", [Enough, LookupError])
def test_hook_that_raises_ends_run_with_everything_saved_and_training_may_continue(
    kind: type[Exception], tmp_path: Path
) -> None:
    def stop(milestone: rl_tui.Milestone) -> None:
        if milestone.multiple == 200:
            raise kind("for today")

    with line(tmp_path) as learner:
        learner.every(100, stop)
        with pytest.raises(kind, match="for today") as raised:
            learner.run(1000)
        (checkpoint,) = checkpoints(tmp_path / "a")
        (note,) = raised.value.__notes__
        what = "stopped by the hook" if kind is Enough else "the hook"
        assert re.fullmatch(
            rf"{what} \S+stop( raised LookupError: for today)?, at .*:\d+ in stop; saved in {checkpoint}", note
        )
        step, state = learner.step, learner._learner.trainer.state()
        assert checkpoint.name == f"Agent-{step}"
        assert equal(tensors_of(checkpoint), {f"trainer.{name}": array for name, array in state.tensors.items()})
        learner.run(1)
        assert learner.step > step
    output = tmp_path / "a/run_logs/output.log"
    assert output.exists() == (kind is LookupError), "the traceback of what has failed"
    events = (tmp_path / "a/events.jsonl").read_text()
    assert ('"failed"' in events, "stopped by the hook" in events) == (False, kind is Enough)


def test_hook_after_a_train_step_that_raises_undoes_the_update(tmp_path: Path) -> None:
    seen = list[rl_tui.TrainStep]()

    def stop(step: rl_tui.TrainStep) -> None:
        seen.append(step)
        if len(seen) == 3:
            raise Enough

    with line(tmp_path) as learner:
        learner.run(1)
        before = learner._learner.trainer.weights()
        learner.on_train_step(stop)
        learner.run(1)
        assert learner.num_updates == 2
        after = learner._learner.trainer.weights()
        with pytest.raises(Enough):
            learner.run(1)
        assert learner.num_updates == 2
        assert equal(learner._learner.trainer.weights().arrays, after.arrays)
        assert not equal(before.arrays, after.arrays)
        learner.run(1)
        assert learner.num_updates == 3


def test_hook_may_save_and_act_but_not_train(tmp_path: Path) -> None:
    with line(tmp_path) as learner:

        def hook(milestone: rl_tui.Milestone) -> None:
            assert learner.save().name == f"Agent-{learner.step}"
            assert learner.policy().step == learner.step
            for method in (learner.run, learner.collect, learner.close):
                with pytest.raises(rl_tui.RlTuiError, match="a hook cannot"):
                    method()

        learner.every(100, hook)
        learner.run(2)
        assert learner.step > 100


def test_removed_hook_is_called_no_more(tmp_path: Path) -> None:
    steps, milestones = list[rl_tui.TrainStep](), list[rl_tui.Milestone]()

    def once(milestone: rl_tui.Milestone) -> None:
        milestones.append(milestone)
        learner.remove_hook(once)

    with line(tmp_path) as learner:
        learner.on_train_step(steps.append)
        learner.every(10, once)
        learner.every(20, once)
        learner.run(1)
        assert len(milestones) == 1
        learner.remove_hook(steps.append)
        seen = len(steps)
        learner.run(1)
        assert len(steps) == seen > 0
        learner.on_train_step(steps.append)
        learner.run(1)
        assert len(steps) == 2 * seen
        with pytest.raises(rl_tui.ConfigError, match="hook: must be one that was added, got <function"):
            learner.remove_hook(once)


def test_hook_that_is_no_function_is_refused(tmp_path: Path) -> None:
    wrong: Any = 5
    with line(tmp_path) as learner:
        with pytest.raises(rl_tui.ConfigError, match="on_train_step: a hook must be a function, got 5"):
            learner.on_train_step(wrong)
        with pytest.raises(rl_tui.ConfigError, match="every: a hook must be a function, got 5"):
            learner.every(10, wrong)
        with pytest.raises(
            rl_tui.ConfigError, match=r'kind: must be greedy or stochastic, got "greddy"\. Did you mean greedy\?'
        ):
            learner.policy("greddy")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("interval", [0, -2, 1.5])
def test_impossible_interval_of_a_hook_is_refused(interval: Any, tmp_path: Path) -> None:
    with line(tmp_path) as learner:
        with pytest.raises(rl_tui.ConfigError, match=r"every: the interval of list\.append must be a whole number"):
            learner.every(interval, [].append)
        learner.run(1)
