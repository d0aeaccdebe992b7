"""Runs with plug-ins of installed packages: they learn, are saved and resumed, and fail alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import PluginError
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import make_trainer
from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointSaved,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
)
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.packages import MAZE, PATCHES, Packages
from tests.running.runs import ENDLESS, THREADED, behavior, configuration, ending, equal, live, run_to_end, tensors_of

CPU = torch.device("cpu")
SPEC = BehaviorSpec("Walker", (ObservationSpec("side", (1,)),), ActionSpec(0, (3,)))
BROKEN = """
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from tests.learning.rewards.signals import Distillation, DistillationSettings

class BrokenSettings(DistillationSettings):
    implementation = "broken:Broken"

class Broken(Distillation):
    def update(self, transitions):
        raise ValueError("no such\\nluck")

class BrokenPPOSettings(PPOSettings):
    implementation = "broken:BrokenPPO"

class BrokenPPO(PPOTrainer):
    def update(self, step, should_continue):
        raise ValueError("no such\\nluck")
"""
UNSAVED = """
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.specs import State

class UnsavedSettings(PPOSettings):
    implementation = "unsaved:Unsaved"

class Unsaved(PPOTrainer):
    def state(self):
        return {returned}
"""
SMALL = {"hidden_units": 8, "num_layers": 1}


def rewarded(name: str, **changes: Any) -> dict[str, Any]:
    return behavior(reward_signals={"extrinsic": {}, name: {"network_settings": SMALL}}, **changes)


@pytest.fixture(autouse=True)
def installed(packages: Packages) -> None:
    packages.install("distilled", "", reward_signals="distilled = tests.learning.rewards.signals:DistillationSettings")
    points = {"reward_signals": "broken = broken:BrokenSettings", "trainers": "broken = broken:BrokenPPOSettings"}
    packages.install("broken", BROKEN, **points)


def newest(run: Any) -> Path:
    path = CheckpointStore(run.folder / "Walker" / "checkpoints", "Walker", 5).newest_valid().path
    assert path is not None
    return path


def test_a_learned_reward_is_reported_saved_and_resumed(tmp_path: Path) -> None:
    first = run_to_end(configuration(tmp_path, {"Walker": rewarded("distilled", max_steps=128)}))
    assert first.launch.exit_code == 0, first.recent_events()
    reported = {tag for event in first.of(MetricsReported) for tag in event.metrics}
    assert {"Losses/Distillation Loss", "Policy/Distilled Reward", "Policy/Distilled Value Estimate"} <= reported
    before = tensors_of(newest(first))
    more = rewarded("distilled", max_steps=256)
    longer = run_to_end(configuration(tmp_path, {"Walker": more}, checkpoint_settings={"resume": True}))
    assert any("resumed at step 128" in event.message for event in longer.of(LogEmitted)), longer.recent_events()
    after = tensors_of(newest(longer))
    own = [{name: array for name, array in of.items() if "reward_distilled" in name} for of in (before, after)]
    assert own[0]
    assert own[0].keys() == own[1].keys()
    assert not equal(*own)
    assert all(equal({name: own[0][name]}, {name: own[1][name]}) for name in own[0] if ".target." in name)


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize("kind", ["reward_signals", "trainers"])
def test_a_plug_in_that_fails_ends_its_behavior_alone(kind: str, threaded: bool, tmp_path: Path) -> None:
    broken = behavior(trainer_type="broken") if kind == "trainers" else rewarded("broken")
    behaviors = {"Walker": broken | {"threaded": threaded}, "Runner": behavior(threaded=threaded)}
    run = run_to_end(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Runner": "toy:line"}))
    states = {event.behavior: event for event in run.of(BehaviorStateChanged)}
    assert (states["Walker"].state, states["Runner"].state) == ("failed", "finished"), run.recent_events()
    failure = (
        rf"broken of broken 1.0 \({kind}: broken:\w+\): update raised ValueError: no such, at .*broken.py:\d+ in update"
    )
    assert re.fullmatch(failure, states["Walker"].reason), states["Walker"].reason
    assert not states["Walker"].can_roll_back
    assert (ending(run).state, run.launch.exit_code) == ("failed", 2)
    log = next(run.folder.glob("run_logs/*.log")).read_text()
    assert "Traceback" in log
    assert 'raise ValueError("no such\\nluck")' in log
    assert tensors_of(newest(run))


@pytest.mark.parametrize("threaded", THREADED)
def test_a_plug_in_that_raises_what_ctrl_c_does_fails_like_any_other(
    threaded: bool, packages: Packages, tmp_path: Path
) -> None:
    code = BROKEN.replace('raise ValueError("no such\\nluck")', "raise KeyboardInterrupt").replace(
        "broken:", "pressed:"
    )
    packages.install("pressed", code, trainers="pressed = pressed:BrokenPPOSettings")
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type="pressed", threaded=threaded)}))
    reason = r"pressed of pressed 1\.0 .*: update raised KeyboardInterrupt, at .*pressed.py:\d+ in update"
    assert re.fullmatch(reason, ending(run).reason), run.recent_events()
    assert run.launch.exit_code == 2
    assert tensors_of(newest(run))


@pytest.mark.parametrize("trainer", ["ppo", pytest.param("sac", marks=pytest.mark.slow)])
def test_an_encoder_learns_is_saved_and_resumed(trainer: str, packages: Packages, tmp_path: Path) -> None:
    packages.install("patches", PATCHES, encoders="patches = patches:PatchSettings")
    network = {**SMALL, "vis_encode_type": "patches", "encoder_settings": {"side": 8}}
    settings = behavior(trainer_type=trainer, network_settings=network, max_steps=64)
    if trainer == "sac":
        settings["hyperparameters"] = {"batch_size": 8, "buffer_init_steps": 16, "steps_per_update": 4}
    first = run_to_end(configuration(tmp_path, {"Walker": settings}, "toy:pixels"))
    assert first.launch.exit_code == 0, first.recent_events()
    before = tensors_of(newest(first))
    more = configuration(
        tmp_path, {"Walker": settings | {"max_steps": 128}}, "toy:pixels", checkpoint_settings={"resume": True}
    )
    longer = run_to_end(more)
    assert any("resumed at step 64" in event.message for event in longer.of(LogEmitted)), longer.recent_events()
    after = tensors_of(newest(longer))
    names = [name for name in before if "embed.weight" in name]
    assert names
    assert before.keys() == after.keys()
    assert not equal({name: before[name] for name in names}, {name: after[name] for name in names})


def test_an_environment_is_trained_in_worker_processes(packages: Packages, tmp_path: Path) -> None:
    packages.install("maze", MAZE, environments="maze = maze:MazeSettings")
    workers = {"num_envs": 2, "num_workers": 2, "env_kwargs": {"size": 3}}
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, "maze:small", env_settings=workers))
    assert run.launch.exit_code == 0, run.recent_events()
    assert "size: 3\n    masked: true" in (run.folder / "configuration.yaml").read_text()


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("super().state() if self.num_updates < 3 else self.lost", "state raised AttributeError: .*, at .*unsaved.py"),
        ("State({}, {}) if self.num_updates > 2 else super().state()", "state must always return the same arrays, "),
    ],
)
def test_a_state_that_cannot_be_saved_later_names_the_checkpoint_that_is_left(
    returned: str, message: str, threaded: bool, packages: Packages, tmp_path: Path
) -> None:
    packages.install("unsaved", UNSAVED.format(returned=returned), trainers="unsaved = unsaved:UnsavedSettings")
    walker = behavior(trainer_type="unsaved", checkpoint_interval=128, threaded=threaded)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    assert (ending(run).state, run.launch.exit_code) == ("failed", 2), run.recent_events()
    state = run.of(BehaviorStateChanged)[-1]
    assert state.state == "failed"
    assert re.match(r"unsaved of unsaved 1\.0.*: " + message, state.reason), state.reason
    step = run.of(PolicyExported)[-1].step
    lost = f"the state at step {step} is not saved: the newest checkpoint is {newest(run)}"
    assert lost in [event.message for event in run.of(LogEmitted)], "and the policy itself is kept"


@pytest.mark.parametrize("arguments", ["hyperparameters()", "replay()", "set_hyperparameter(name, value)"])
def test_what_a_trainer_does_wrong_with_its_values_or_its_replay_is_its_mistake(
    arguments: str, packages: Packages, tmp_path: Path
) -> None:
    name = arguments.partition("(")[0]
    method = f"def {arguments.replace('(', '(self, ')}:\n        if self.num_updates: raise ValueError('no luck')"
    code = UNSAVED.replace("def state(self):", method).format(returned=f"super().{arguments}")
    code = code.replace('Unsaved"', 'Unsaved"\n    saves_replay = property(lambda self: True)')
    packages.install("unsaved", code, trainers="unsaved = unsaved:UnsavedSettings")
    walker = behavior(trainer_type="unsaved", checkpoint_interval=ENDLESS if name == "replay" else 128)
    with live(configuration(tmp_path, {"Walker": walker | {"max_steps": ENDLESS}})) as run:
        run.wait_for(MetricsReported)
        command = SetHyperparameter("Walker", "beta", 0.5) if name.startswith("set") else SaveCheckpoint()
        assert not run.send(command).ok
        run.wait()
    reason = rf"unsaved of unsaved 1\.0 .*: {name} raised ValueError: no luck, at .*unsaved.py:\d+ in {name}"
    assert re.fullmatch(reason, ending(run).reason), run.recent_events()
    assert run.launch.exit_code == 2
    assert run.of(PolicyExported), "and the policy is kept"
    assert bool(run.of(CheckpointSaved)) == (not name.startswith("hyper")), "with the state, where that can be had"


def test_metrics_of_a_trainer_that_are_no_numbers_are_its_mistake(packages: Packages, tmp_path: Path) -> None:
    code = BROKEN.replace('raise ValueError("no such\\nluck")', 'return {"Losses/Policy Loss": "low"}')
    packages.install("worded", code.replace("broken:", "worded:"), trainers="worded = worded:BrokenPPOSettings")
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type="worded")}))
    text = "worded of worded 1.0: update must return numbers or tensors of one element, got Losses/Policy Loss: 'low'"
    assert (ending(run).reason, run.launch.exit_code) == (text, 2)


def test_a_trainer_whose_state_cannot_be_saved_is_refused_before_the_run(packages: Packages, tmp_path: Path) -> None:
    packages.install("unsaved", UNSAVED.format(returned="{}"), trainers="unsaved = unsaved:UnsavedSettings")
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type="unsaved")}))
    assert run.launch.exit_code == 2
    assert str(run.launch.error) == "unsaved of unsaved 1.0: state must return a State of numpy arrays, got dict"
    assert not run.folder.exists()


def test_a_trainer_that_fails_in_its_constructor_has_its_line(packages: Packages, tmp_path: Path) -> None:
    code = UNSAVED.format(returned="{}").replace("state(self)", "__init__(self, *_)").replace("return {}", "self.lost")
    packages.install("unmade", code.replace("unsaved:", "unmade:"), trainers="unmade = unmade:UnsavedSettings")
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type="unmade")}))
    raised = r"unmade of unmade 1\.0 .*: its constructor raised AttributeError: .* at .*unmade.py:\d+ in __init__"
    assert re.match(raised, str(run.launch.error)), run.launch.error
    assert "self.lost" in str(run.launch.error and run.launch.error.detail)


FORGETFUL = """
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.trainer import PPOTrainer

class ForgetfulSettings(PPOSettings):
    implementation = "forgetful:Forgetful"

class Forgetful(PPOTrainer):
    def load(self, state):
        raise ValueError("forgotten")
"""
LARGE = FORGETFUL.replace("forgetful", "large").replace("Forgetful", "Large")
FORGOTTEN = r"forgetful of forgetful 1\.0 .*: load raised ValueError: forgotten, at .*forgetful.py:\d+ in load"


def test_a_trainer_that_cannot_load_its_state_has_its_line(packages: Packages, tmp_path: Path) -> None:
    packages.install("forgetful", FORGETFUL, trainers="forgetful = forgetful:ForgetfulSettings")
    walker = {"Walker": behavior(trainer_type="forgetful")}
    first = run_to_end(configuration(tmp_path, walker))
    run = run_to_end(configuration(tmp_path, walker, checkpoint_settings={"resume": True}))
    assert re.match(FORGOTTEN, str(run.launch.error)), run.recent_events()
    assert 'raise ValueError("forgotten")' in str(run.launch.error and run.launch.error.detail)
    assert run.launch.exit_code == 2
    with pytest.raises(PluginError, match=FORGOTTEN):
        SavedRun(first.folder).play(EvaluationRequest(episodes=1, seed=1, ways=("greedy",)))


@pytest.mark.parametrize("threaded", THREADED)
def test_a_trainer_that_cannot_be_rolled_back_ends_and_is_not_saved_as_it_is_then(
    threaded: bool, packages: Packages, tmp_path: Path
) -> None:
    packages.install("forgetful", FORGETFUL, trainers="forgetful = forgetful:ForgetfulSettings")
    walker = behavior(trainer_type="forgetful", max_steps=ENDLESS, checkpoint_interval=128, keep_checkpoints=0)
    walker["threaded"] = threaded
    with live(configuration(tmp_path, {"Walker": walker})) as run:
        oldest = run.wait_for(CheckpointSaved)
        outcome = run.send(RollBack("Walker", oldest.path))
        assert not outcome.ok
        assert re.match(FORGOTTEN, outcome.message)
        assert run.wait() == 2
    state = run.of(BehaviorStateChanged)[-1]
    assert (state.state, state.reason) == ("failed", outcome.message)
    assert newest(run) == Path(oldest.path)
    lost = rf"the state at step \d+ is not saved: the newest checkpoint is {oldest.path}"
    assert [line for line in run.of(LogEmitted) if re.fullmatch(lost, line.message)]
    assert 'raise ValueError("forgotten")' in next(run.folder.glob("run_logs/*.log")).read_text()


@pytest.mark.parametrize("method", ["is_ready", "weights", "make_policy"])
def test_a_trainer_that_fails_in_any_method_has_its_line(method: str, packages: Packages, tmp_path: Path) -> None:
    lines = f"def {method}(self, *args):\n        if self.num_updates >= FIRST:\n            raise ValueError('lost')"
    code = FORGETFUL.replace(
        "def load(self, state):", f"{lines}\n        return super().{method}(*args)\n\n    def no(self):"
    )
    code = code.replace("FIRST", "0" if method == "make_policy" else "2")
    packages.install("forgetful", code, trainers="forgetful = forgetful:ForgetfulSettings")
    walker = behavior(trainer_type="forgetful", checkpoint_interval=64)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    failure = rf"forgetful of forgetful 1\.0 .*: {method} raised ValueError: lost, at .*forgetful.py:\d+ in {method}"
    assert re.match(failure, ending(run).reason), run.recent_events()
    assert run.launch.exit_code == 2


def test_only_an_installed_trainer_has_its_calls_checked(packages: Packages) -> None:
    packages.install("forgetful", FORGETFUL, trainers="forgetful = forgetful:ForgetfulSettings")
    config = BehaviorConfig.model_validate(behavior())
    assert type(make_trainer(SPEC, config, 0, CPU)) is PPOTrainer
    trainer = make_trainer(SPEC, BehaviorConfig.model_validate(behavior(trainer_type="forgetful")), 0, CPU)
    assert trainer.time_horizon == config.time_horizon
    assert not hasattr(trainer, "hidden")
    with pytest.raises(PluginError, match=FORGOTTEN) as raised:
        trainer.load(trainer.state())
    assert 'raise ValueError("forgotten")' in raised.value.detail


@pytest.mark.parametrize("trainer", ["large", "ppo"])
def test_too_little_memory_is_nobodys_mistake(
    trainer: str, packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.install("large", LARGE, trainers="large = large:LargeSettings")

    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr(PPOTrainer, "_prepare", full)
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type=trainer)}))
    reason = "training does not fit in memory: Unable to allocate 9 GiB. hyperparameters.buffer_size or the network"
    assert ending(run).reason == f"{reason} must be smaller", run.recent_events()
    assert run.launch.exit_code == 2
    assert tensors_of(newest(run))


def test_a_trainer_whose_numbers_are_none_is_refused(packages: Packages, tmp_path: Path) -> None:
    code = UNSAVED.format(returned="super().state()").replace("unsaved:", "uncounted:")
    packages.install(
        "uncounted",
        code + "\n    num_parameters = property(lambda *_: None, lambda *_: None)\n",
        trainers="uncounted = uncounted:UnsavedSettings",
    )
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(trainer_type="uncounted")}))
    assert "uncounted of uncounted 1.0: num_parameters must be a whole number" in str(run.launch.error)
