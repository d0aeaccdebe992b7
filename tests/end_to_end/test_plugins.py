"""The examples of docs/plugins.md are installed as a user installs them, and train."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
import yaml

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.rewards.base import RewardContext
from rl_tui.engine.learning.rewards.streams import require_signal
from rl_tui.engine.learning.trainer import Trainer, abstract_methods, make_trainer
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    Event,
    HyperparametersReported,
    LogEmitted,
    MetricsReported,
    Pause,
    PolicyExported,
    Range,
    Resume,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.specs import State
from rl_tui.tui.cli import main
from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import ROOT, surroundings
from tests.learning.rollouts import SPEC
from tests.learning.test_contracts import experience, same, through_a_file
from tests.learning.test_it_learns import mean_return, toy, train
from tests.plugin_examples import FILES, PAGE, write_examples, write_metadata
from tests.running.runs import ENDLESS, live, run_to_end
from tests.tui.driver import Driven

TRAIN = """
import json, sys
from rl_tui.tui.cli import main
for words in json.loads(sys.argv[1]):
    print("ended with", main(words), flush=True)
"""


def make_venv(folder: Path) -> Path:
    """The interpreter of an environment that sees what this one has installed."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    searched = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("-packages"))]
    (site / "packages_of_the_tests.pth").write_text("\n".join(searched))
    return folder / "bin/python"


def run_python(python: Path, *words: str, folder: Path) -> str:
    """What it prints; it must succeed."""
    done = subprocess.run(
        [python, *words],
        cwd=folder,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def events_of(run: Path) -> list[Event]:
    return [decode(line).event for line in (run / "events.jsonl").read_text().splitlines()]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The examples, for this process, with the metadata that pip would write."""
    for package in write_examples(tmp_path):
        write_metadata(package)
        monkeypatch.syspath_prepend(package)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("rl_tui_")]:
        del sys.modules[name]


TRAINER = "rl-tui-a2c/rl_tui_a2c/trainer.py"


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("def _place(self", "def _put(self", "trainers: rl_tui_a2c.trainer.A2CTrainer must have _place()"),
        ("def loss(self", "def losses(self", "trainers: rl_tui_a2c.trainer.A2CTrainer must have loss()"),
        ("is_on_policy = True", "", "trainers: rl_tui_a2c.trainer.A2CTrainer must have is_on_policy"),
        ("super().__init__(", "1 / 0, super().__init__(", "its constructor raised ZeroDivisionError"),
        ("return State.merge(own", "return (own", "a2c of rl-tui-a2c 1.0: state must return a State of numpy arrays"),
        ("", "", ""),
    ],
)
def test_dry_run_makes_the_trainer_and_says_what_it_lacks(
    right: str, wrong: str, reason: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILES[TRAINER]
    assert not right or text.count(right) == 1
    (installed / TRAINER).write_text(text.replace(right, wrong) if right else text)
    path = installed / "rl-tui-a2c/cartpole.yaml"
    words = [str(path), "--results-dir", str(installed / "results"), "--dry-run"]
    assert main(words) == (2 if reason else 0)
    said = capsys.readouterr()
    assert yaml.safe_load(said.out)["behaviors"]["CartPole"]["trainer_type"] == "a2c", "nothing else is on stdout"
    assert reason in said.err
    assert bool(said.err) == bool(reason)
    assert not (installed / "results").exists()


def test_dry_run_names_what_a_reward_signal_lacks(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = "rl-tui-count/rl_tui_count.py"
    (installed / module).write_text(FILES[module].replace("def evaluate(", "def assess("))
    path = installed / "rl-tui-count/line.yaml"
    assert main([str(path), "--results-dir", str(installed / "results"), "--dry-run"]) == 2
    lacks = "count of rl-tui-count 1.0: CountBonus must define `evaluate` or `evaluate_transitions`"
    assert re.search(rf"line.yaml:\d+:\d+: behaviors.Line.reward_signals.count: {lacks}\n", capsys.readouterr().err)


def test_page_lists_what_must_be_defined_next_to_what_an_actor_trainer_has() -> None:
    table = PAGE.read_text().partition("must define these:")[2].partition("```")[0]
    names = [name for row in table.splitlines() for name in re.findall(r"`(\w+)[(`]", row[:40].partition(" | ")[0])]
    methods = {name for name in names if f"`{name}(" in table}
    assert methods == abstract_methods(ActorTrainer)
    set_there = ActorTrainer.__init__.__code__.co_names
    assert set(names) - methods == {
        name for name in get_type_hints(Trainer) if name not in set_there and not hasattr(Trainer, name)
    }


def a2c(folder: Path, max_steps: int, **checkpoints: Any) -> RunConfig:
    """The page's configuration of it, for so many steps, in folder/results/run."""
    document = yaml.safe_load(FILES["rl-tui-a2c/cartpole.yaml"])
    document["behaviors"]["CartPole"] |= {"max_steps": max_steps, "summary_freq": 1000}
    document["env_settings"]["seed"] = 1
    document["checkpoint_settings"] = {"run_id": "run", "results_dir": str(folder / "results")} | checkpoints
    return parse_config(yaml.safe_dump(document).encode(), "cartpole.yaml")


@pytest.mark.slow
def test_every_example_is_installed_by_pip_and_trains_from_its_file(tmp_path: Path) -> None:
    packages, python = write_examples(tmp_path), make_venv(tmp_path / "venv")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    pip = ["-m", "pip", "--python", str(python), "install", *offline, *map(str, packages)]
    run_python(Path(sys.executable), *pip, folder=tmp_path)
    files = {Path(path).parent.name: path for path in FILES if path.endswith(".yaml")}
    runs = [[path, "--no-ui", f"--run-id={name}", "--seed=1"] for name, path in files.items()]
    for words, behavior in zip(runs, ("CartPole", "Line", "Line", "Point", "CartPole"), strict=True):
        words += ["--set", f"behaviors.{behavior}.max_steps=2500", "--set", f"behaviors.{behavior}.summary_freq=1000"]
    runs.append([*runs[list(files).index("rl-tui-sqlite")], "--resume", "--set", "behaviors.CartPole.max_steps=4000"])
    said = run_python(python, "-c", TRAIN, json.dumps([["plugins"], ["schema"], *runs]), folder=tmp_path)
    assert said.count("Run finished (exit code 0)") == said.count("ended with 0\n") - 2 == 6, said
    listed, schema, *_ = said.split("ended with 0\n")
    for name in ("sqlite", "count", "novelty", "point", "a2c"):
        assert re.search(rf"^  {name} +rl-tui-{name} 1.0 +\w", listed, re.MULTILINE), listed
    for key in ("cell_size", "goal_radius", "value_coefficient", '"sqlite"'):
        assert key in schema

    reported = {
        (event.behavior, event.step, tag): value
        for event in events_of(tmp_path / "results/rl-tui-sqlite")
        if isinstance(event, MetricsReported)
        for tag, value in event.metrics.items()
    }
    with sqlite3.connect(tmp_path / "results/rl-tui-sqlite/metrics.sqlite") as database:
        rows = database.execute("SELECT behavior, step, tag, value FROM metrics").fetchall()
    assert {tuple(key): value for *key, value in rows} == reported
    assert len(rows) == len(reported) > 12, "those of a resumed run are added"

    paid = [e for e in events_of(tmp_path / "results/rl-tui-count") if isinstance(e, MetricsReported)]
    bonuses = [event.metrics["Policy/Count Reward"] for event in paid]
    assert bonuses[0] > bonuses[-1] > 0, "everything is less rare than before"
    assert (tmp_path / "results/rl-tui-point/run_logs").is_dir()
    for name in files:
        events = events_of(tmp_path / "results" / name)
        troubles = [event for event in events if isinstance(event, LogEmitted) and event.level in ("warning", "error")]
        assert troubles == []
        exports = [event for event in events if isinstance(event, PolicyExported)]
        assert exports
        assert all(exported.max_difference < 1e-4 for exported in exports)


async def test_trainer_of_a_plug_in_pauses_changes_resumes_and_is_on_the_screen(installed: Path) -> None:
    with live(a2c(installed, ENDLESS)) as run:
        run.wait_for(MetricsReported)
        assert run.send(Pause()).ok
        changed = run.send(SetHyperparameter("CartPole", "beta", 0.02))
        assert changed.ok, changed
        assert not run.send(SetHyperparameter("CartPole", "buffer_size", 2)).ok
        assert run.send(Resume()).ok
        assert run.send(Stop()).ok
        run.wait()
        saved = run.of(CheckpointSaved)[-1]
    (started,) = run.of(BehaviorStarted)
    assert (started.algorithm, started.headline_metrics) == ("a2c", ("Policy/Explained Variance",))
    resumed = run_to_end(a2c(installed, saved.step + 2000, resume=True))
    (started,) = resumed.of(BehaviorStarted)
    assert started.step == saved.step
    assert resumed.of(HyperparametersReported)[-1].values["beta"] == 0.02
    assert resumed.of(PolicyExported)[-1].max_difference < 1e-4
    assert resumed.launch.exit_code == 0

    view = RunView()
    for envelope in resumed.mail:
        view.apply(envelope)
    async with Driven(view, (120, 40), opened="grid") as screen:
        assert "Explained Variance" in (await screen.text()).partition("Policy Loss")[0], "before the usual ones"


def test_trainer_of_a_plug_in_continues_from_its_state_bit_for_bit(installed: Path) -> None:
    config = a2c(installed, 10_000).behaviors["CartPole"]
    first, second = (make_trainer(SPEC, config, seed, torch.device("cpu")) for seed in (0, 1))
    first.add(experience(first))
    first.update(100)
    second.load(through_a_file(first.state()))
    block = experience(first, 3)
    losses = first.loss(block)
    assert losses == second.loss(block)
    for trainer in (first, second):
        trainer.add(block)
        trainer.update(200)
    assert same(first.state(), second.state())
    assert losses != first.loss(block)
    with pytest.raises(CheckpointError, match="no replay buffer"):
        first.load_replay(State())


def test_trainer_of_a_plug_in_computes_the_same_on_a_device(installed: Path, device: torch.device) -> None:
    config, losses = a2c(installed, 10_000).behaviors["CartPole"], []
    for place in (device, torch.device("cpu")):
        trainer = make_trainer(SPEC, config, 0, place)
        for number in range(2):
            trainer.add(experience(trainer, number))
            trainer.update(100 * number)
        losses.append(trainer.loss(experience(make_trainer(SPEC, config, 0, torch.device("cpu")), 3)))
    assert losses[0] == pytest.approx(losses[1], rel=1e-2, abs=1e-3)


@pytest.mark.slow
@pytest.mark.learning
@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_trainer_of_a_plug_in_solves_the_one_step_task(
    installed: Path, actions: str, torch_device: torch.device
) -> None:
    settings = {"trainer_type": "a2c", "hyperparameters": {"buffer_size": 64, "learning_rate": 1e-2}}
    config = BehaviorConfig.model_validate(settings | {"network_settings": {"hidden_units": 16, "num_layers": 1}})
    trainer = train(toy(actions), config, 5000, 1, torch_device)
    assert mean_return(toy(actions), trainer.make_policy(1), 400, seed=2) > 0.9


RATE = "reward_signals.novelty.learning_rate"


def novelty(folder: Path, max_steps: int, **checkpoints: Any) -> RunConfig:
    """The page's configuration of it, for so many steps, in folder/results/run."""
    document = yaml.safe_load(FILES["rl-tui-novelty/line.yaml"])
    document["behaviors"]["Line"] |= {"max_steps": max_steps}
    document["checkpoint_settings"] = {"run_id": "run", "results_dir": str(folder / "results")} | checkpoints
    return parse_config(yaml.safe_dump(document).encode(), "line.yaml")


def test_signal_that_learns_is_short() -> None:
    files = [text for path, text in FILES.items() if path.startswith("rl-tui-novelty") and path.endswith(".py")]
    assert sum(len(text.splitlines()) for text in files) <= 60


def test_learning_rate_of_a_signal_changes_while_it_trains_and_after_a_resume(installed: Path) -> None:
    with live(novelty(installed, ENDLESS)) as run:
        run.wait_for(MetricsReported)
        report = run.of(HyperparametersReported)[-1]
        assert (report.values[RATE], report.ranges[RATE]) == (1e-3, Range(0.0, above_minimum=True))
        assert not run.send(SetHyperparameter("Line", RATE, -1.0)).ok
        changed = run.send(SetHyperparameter("Line", RATE, 3e-3))
        assert changed.ok, changed
        assert changed.message.startswith(f"{RATE} 0.001 -> 0.003 from step ")
        assert run.send(Stop()).ok
        run.wait()
        saved = run.of(CheckpointSaved)[-1]
    assert "Losses/Novelty Loss" in run.of(MetricsReported)[-1].metrics
    resumed = run_to_end(novelty(installed, saved.step + 2000, resume=True))
    assert resumed.of(BehaviorStarted)[0].step == saved.step
    assert resumed.of(HyperparametersReported)[-1].values[RATE] == 3e-3
    assert resumed.launch.exit_code == 0


@pytest.mark.parametrize("trainer_type", ["ppo", "sac"])
@pytest.mark.parametrize("is_changed_in_both", [True, False])
def test_signal_that_learns_continues_from_its_state_bit_for_bit(
    trainer_type: str, is_changed_in_both: bool, installed: Path
) -> None:
    """Unless its learning rate is another one, which a run saves next to the state."""
    config = novelty(installed, 10_000).behaviors["Line"].model_dump()
    sizes = {"batch_size": 16, "buffer_size": 64}
    config |= {"trainer_type": trainer_type, "hyperparameters": sizes, "network_settings": {"hidden_units": 8}}
    settings = BehaviorConfig.model_validate(config)
    first, second = (make_trainer(SPEC, settings, seed, torch.device("cpu")) for seed in (0, 1))
    begun = first.state().part("reward_novelty")
    learn(first, range(3))
    first.set_hyperparameter(RATE, 0.01)
    if is_changed_in_both:
        second.set_hyperparameter(RATE, 0.01)
    second.load(through_a_file(first.state()))
    if (replay := first.replay()) is not None:
        second.load_replay(replay)
    before = first.state().part("reward_novelty")
    for trainer in (first, second):
        learn(trainer, range(3, 6))
    after = first.state().part("reward_novelty")
    assert same(after, second.state().part("reward_novelty")) == is_changed_in_both
    assert not same(before, after)
    target = {name: array for name, array in begun.tensors.items() if ".target." in name}
    assert target
    assert all((array == after.tensors[name]).all() for name, array in target.items()), "it is not trained"


def learn(trainer: Trainer, blocks: Iterable[int]) -> None:
    for number in blocks:
        trainer.add(experience(trainer, number))
        trainer.update(100 * number)


def test_what_was_seen_often_is_paid_less_than_what_was_not(installed: Path) -> None:
    """Observations near 1 are learned from 300 times, those near -1 never."""
    config = novelty(installed, 10_000).behaviors["Line"]
    context = RewardContext(SPEC, config, 0, torch.device("cpu"))
    signal = require_signal("novelty", config.reward_signals["novelty"])(config.reward_signals["novelty"], context)
    seen, unseen = (transitions_near(place) for place in (1.0, -1.0))
    first = [signal.evaluate_transitions(steps).mean() for steps in (seen, unseen)]
    for _ in range(300):
        signal.update(seen)
    last = [signal.evaluate_transitions(steps).mean() for steps in (seen, unseen)]
    assert last[0] < 0.02 * first[0]
    assert last[1] > 0.5 * first[1]


def transitions_near(place: float) -> Transitions:
    random = np.random.default_rng(0)
    observations = tuple(
        (place + 0.1 * random.standard_normal((64, *spec.shape))).astype(np.float32) for spec in SPEC.observations
    )
    actions = np.zeros((64, SPEC.actions.continuous), np.float32)
    branches = np.zeros((64, len(SPEC.actions.branches)), np.int64)
    return Transitions(
        observations=observations,
        next_observations=observations,
        endings=np.zeros(64, np.int8),
        continuous_actions=actions,
        discrete_actions=branches,
    )
