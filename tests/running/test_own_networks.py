"""An installed trainer with a network and policies of its own is evaluated, watched, exported and resumed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rl_tui
from rl_tui.engine.errors import ExportError, NotSupportedError
from rl_tui.engine.export.policy_files import read_policy_file
from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    EvaluationReported,
    ExportFailed,
    ExportPolicy,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.specs import DecisionSteps
from tests.packages import Packages
from tests.plugin_examples import PAGE
from tests.running.runs import ENDLESS, THREADED, configuration, ending, live, run_to_end
from tests.running.watching.test_watching import SIZE, until

CODE = (Path(__file__).parent / "own_net.py").read_text()
EVALUATED = {"interval": 128, "episodes": 4}


def install(packages: Packages, *changes: tuple[str, str]) -> None:
    code = CODE
    for old, new in changes:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    packages.install("own_net", code, trainers="own = own_net:OwnSettings")


def own(**changes: Any) -> dict[str, Any]:
    settings = {"trainer_type": "own", "max_steps": 1024, "summary_freq": 128, "checkpoint_interval": 256}
    return settings | {"time_horizon": 16, "evaluation": EVALUATED} | changes


@pytest.mark.parametrize("threaded", THREADED)
def test_it_is_evaluated_watched_exported_and_resumed(threaded: bool, packages: Packages, tmp_path: Path) -> None:
    install(packages)
    endless = own(max_steps=ENDLESS, threaded=threaded)
    with live(configuration(tmp_path, {"Walker": endless})) as run:
        run.wait_for(EvaluationReported)
        run.wait_for(PolicyExported)
        assert run.send(SetHyperparameter("Walker", "learning_rate", 0.2)).ok
        watching = run.launch.watching
        assert watching.begin("Walker", SIZE) == ""
        played = until(watching, lambda scene: len(scene.returns) > 1)
        assert played.is_greedy
        watching.send("drawn")
        until(watching, lambda scene: not scene.is_greedy and (scene.policy_step or 0) > (played.policy_step or 0))
        watching.end()
        assert run.send(ExportPolicy()).ok
        assert run.send(Stop()).ok
        assert run.wait() == 0, run.recent_events()
    assert not run.of(ExportFailed)
    assert max(event.max_difference for event in run.of(PolicyExported)) < 1e-5
    assert not [line for line in run.of(LogEmitted) if line.level in ("warning", "error")], run.recent_events()

    step = run.of(CheckpointSaved)[-1].step
    again = own(max_steps=step + 256, threaded=threaded)
    resumed = run_to_end(configuration(tmp_path, {"Walker": again}, checkpoint_settings={"resume": True}))
    assert resumed.launch.exit_code == 0, resumed.recent_events()
    assert resumed.of(BehaviorStarted)[0].step == step
    assert resumed.of(EvaluationReported)
    assert resumed.of(PolicyExported)[-1].step >= step + 256


def test_its_checkpoints_and_exported_files_play_alike(packages: Packages, tmp_path: Path) -> None:
    install(packages)
    run = run_to_end(configuration(tmp_path, {"Walker": own(export_policies=["greedy", "stochastic"])}))
    assert run.launch.exit_code == 0, run.recent_events()
    saved = SavedRun(run.folder)
    both = saved.play(EvaluationRequest(episodes=8, seed=1, ways=("greedy", "sampled"))).scores
    graph = saved.play(EvaluationRequest(episodes=8, seed=1, ways=("greedy",), is_onnx=True)).scores
    assert both["greedy"].returns.tolist() == graph["greedy"].returns.tolist()
    assert both["greedy"].returns.tolist() != both["sampled"].returns.tolist()
    assert {path.name.split("-")[-1] for path in (run.folder / "Walker/policies").iterdir()} == {
        "greedy.onnx",
        "stochastic.onnx",
    }


def test_a_python_program_acts_with_its_policy(packages: Packages, tmp_path: Path) -> None:
    install(packages)
    settings = {"behaviors": {"Walker": own(evaluation=None)}}
    with rl_tui.Learner(settings, "toy:line", tmp_path / "run", num_envs=4, seed=1) as learner:
        learner.run(2)
        rows = np.random.default_rng(0).standard_normal((500, 2), np.float32)
        seen = DecisionSteps(np.arange(500), (rows[:, :1], rows[:, 1:]), np.zeros(500, np.float32))
        greedy, drawn = (learner.policy(kind, seed=1).act(seen).discrete for kind in ("greedy", "stochastic"))
        assert (greedy == learner.policy().act(seen).discrete).all()
        assert (greedy != drawn).any()
        files = learner.export()
        with pytest.raises(ExportError, match="has a network that only its trainer can make"):
            rl_tui.load_policy(files["raw"])
        file = read_policy_file(tmp_path / "run/Walker.onnx", True, 0)
        assert (file.policy.act(seen).actions.discrete == greedy).mean() > 0.99, "but where two are as likely"


NO_MODULE = ("def policy_module(self)", "def its_module(self)")


def test_without_a_module_it_trains_and_nothing_is_exported(packages: Packages, tmp_path: Path) -> None:
    install(packages, NO_MODULE)
    why_not = "own of own_net 1.0: its policy cannot be exported: OwnTrainer has no policy_module()"
    with live(configuration(tmp_path, {"Walker": own(max_steps=ENDLESS)})) as run:
        run.wait_for(CheckpointSaved)
        run.wait_for(EvaluationReported)
        asked = run.send(ExportPolicy())
        assert (asked.ok, asked.message) == (False, why_not)
        assert run.send(Stop()).ok
        assert run.wait() == 0
    said = [line.message for line in run.of(LogEmitted) if line.level in ("warning", "error")]
    assert said == [why_not], "once, at the start"
    assert not run.of(ExportFailed)
    assert not list(run.folder.rglob("*.onnx"))
    again = configuration(tmp_path, {"Walker": own(max_steps=ENDLESS)}, checkpoint_settings={"resume": True})
    with live(again) as resumed:
        resumed.wait_for(MetricsReported)
    assert not resumed.of(ExportFailed)


def test_a_learner_says_why_it_exports_nothing(packages: Packages, tmp_path: Path) -> None:
    install(packages, NO_MODULE)
    settings = {"behaviors": {"Walker": own(evaluation=None)}}
    with rl_tui.Learner(settings, "toy:line", tmp_path / "run", num_envs=4, seed=1) as learner:
        learner.run(1)
        with pytest.raises(ExportError, match=r"own of own_net 1\.0: its policy cannot be exported"):
            learner.export()


ONLY_SEED = (
    "def make_policy(self, seed: int, is_greedy: bool = False) -> Policy:",
    "def make_policy(self, seed):\n        is_greedy = False",
)


def test_without_greedy_policies_it_trains_and_is_not_asked_for_them(packages: Packages, tmp_path: Path) -> None:
    install(packages, ONLY_SEED)
    lacks = "own_net.OwnTrainer.make_policy must take is_greedy, to make policies of the likeliest actions"
    refused = run_to_end(configuration(tmp_path, {"Walker": own(evaluation=EVALUATED | {"deterministic": True})}))
    assert str(refused.launch.error) == f"behaviors.Walker.evaluation: {lacks}"
    assert not refused.folder.exists()
    drawn = own(evaluation=EVALUATED | {"deterministic": False}, max_steps=ENDLESS)
    with live(configuration(tmp_path, {"Walker": drawn})) as run:
        run.wait_for(EvaluationReported)
        assert lacks in run.wait_for(ExportFailed).message
        assert run.launch.watching.begin("Walker", SIZE) == ""
        assert until(run.launch.watching, lambda scene: scene.state == "failed").reason == lacks
        run.launch.watching.end()
        assert run.send(Stop()).ok
        assert run.wait() == 0
    assert len(SavedRun(run.folder).play(EvaluationRequest(episodes=2, seed=1, ways=("sampled",))).scores) == 1
    with pytest.raises(NotSupportedError, match=r"own_net\.OwnTrainer\.make_policy must take is_greedy"):
        SavedRun(run.folder).play(EvaluationRequest(episodes=2, seed=1, ways=("greedy",)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("+ self.table[:, -1]", "- self.table[:, -1]"), "differ by"),
        (
            ('= torch.tensor(weights.arrays["table"])', '= weights.arrays["weight"]'),
            r"own of own_net 1\.0 .*: policy_module raised KeyError: 'weight', at .*own_net.py:\d+ in load",
        ),
    ],
)
def test_a_module_that_is_wrong_is_not_exported(
    change: tuple[str, str], reason: str, packages: Packages, tmp_path: Path
) -> None:
    install(packages, change)
    run = run_to_end(configuration(tmp_path, {"Walker": own()}))
    assert run.launch.exit_code == 0, run.recent_events()
    assert re.search(reason, run.of(ExportFailed)[-1].message), run.of(ExportFailed)
    assert not run.of(PolicyExported)
    assert run.of(CheckpointSaved)[-1].step >= 1024


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ("self.version = -1", "self.version, self._lock = -1, __import__('threading').Lock()"),
            r"own of own_net 1\.0 \(trainers: own_net:OwnSettings\): policy_maker raised TypeError: cannot pickle",
        ),
        (
            ("return OwnModule(self._spec, self._table.astype(np.float32))", "return None"),
            r"own of own_net 1\.0: policy_module must return a PolicyModule, got None",
        ),
    ],
)
def test_what_nothing_can_be_made_of_is_refused_before_the_run(
    change: tuple[str, str], reason: str, packages: Packages, tmp_path: Path
) -> None:
    install(packages, change)
    run = run_to_end(configuration(tmp_path, {"Walker": own()}))
    assert re.match(reason, str(run.launch.error)), run.launch.error
    assert not run.folder.exists()


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize("evaluated", [True, False])
def test_a_policy_that_fails_names_its_package_and_what_was_learned_is_saved(
    evaluated: bool, threaded: bool, packages: Packages, tmp_path: Path
) -> None:
    """The greedy one acts in evaluations, the other in training."""
    fails = f"if self._is_greedy == {evaluated} and self.version > 3:\n            raise ValueError('lost')\n        "
    first = "logits = seen(decisions.observations) @ self._table.T"
    install(packages, (first, fails + first))
    run = run_to_end(configuration(tmp_path, {"Walker": own(threaded=threaded)}))
    reason = r"own of own_net 1\.0 \(trainers: .*\): act raised ValueError: lost, at .*own_net.py:\d+ in act"
    assert re.fullmatch(reason, ending(run).reason), run.recent_events()
    assert run.launch.exit_code == 2
    assert run.of(CheckpointSaved)[-1].reason == "error"
    assert "raise ValueError('lost')" in next(run.folder.glob("run_logs/*.log")).read_text()


def test_the_module_of_the_page_is_the_one_that_is_tested() -> None:
    section = PAGE.read_text().partition("### A network of its own")[2].partition("\n## ")[0]
    (module,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert module in CODE
