from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import pytest
import torch

from engine.errors import ExportError
from engine.learning.networks.exported import ExportedPolicy
from engine.learning.policies import VectorPolicy
from engine.running.export import OPSET, PolicyExporter
from engine.running.export_check import Run, check
from engine.running.onnx_graph import OnnxGraph, Outputs
from engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, Float32, ObservationSpec, Weights
from tests.weights import CARTPOLE, HOPPER, KINDS, MIXED, random_weights

ROOT = Path(__file__).parents[2]
Signature = list[tuple[str, int, list[str | int]]]


def exported(folder: Path, spec: BehaviorSpec, weights: Weights, dynamo: bool = False) -> bytes:
    path = folder / f"{spec.name}.onnx"
    PolicyExporter(spec, "swish", dynamo).export(weights, [path])
    return path.read_bytes()


def signature(values: object) -> Signature:
    """Name, element type and dimensions of a graph's inputs or outputs."""
    return [
        (
            value.name,
            value.type.tensor_type.elem_type,
            [dimension.dim_param or dimension.dim_value for dimension in value.type.tensor_type.shape.dim],
        )
        for value in values
    ]


def episode(act: Callable[[Float32], int]) -> tuple[list[int], float]:
    """The actions and the return of one CartPole episode."""
    environment, actions, total = gymnasium.make("CartPole-v1"), [], 0.0
    observation, _ = environment.reset(seed=1)
    while True:
        actions.append(act(observation[None].astype(np.float32)))
        observation, reward, terminated, truncated, _ = environment.step(actions[-1])
        total += float(reward)
        if terminated or truncated:
            environment.close()
            return actions, total


def cartpole_policy(weights: Weights) -> Callable[[Float32], int]:
    policy = VectorPolicy(CARTPOLE.actions, "swish", is_deterministic=True, seed=0)
    policy.load(weights)
    zeros = np.zeros(1, np.int64), np.zeros(1, np.float32)
    return lambda rows: int(policy.act(DecisionSteps(zeros[0], (rows,), zeros[1])).actions.discrete[0, 0])


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("is_normalized", [False, True])
def test_an_exported_graph_acts_as_its_policy(tmp_path: Path, spec: BehaviorSpec, is_normalized: bool) -> None:
    paths = [tmp_path / "Behavior-1000.onnx", tmp_path / "Behavior.onnx"]
    difference = PolicyExporter(spec, "swish").export(random_weights(spec, is_normalized), paths)
    assert difference < 1e-6
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted(paths), "nothing unfinished stays"


def test_a_graph_has_the_inputs_and_outputs_of_the_contract(tmp_path: Path) -> None:
    model = onnx.load_from_string(exported(tmp_path, MIXED, random_weights(MIXED)))
    number, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    assert signature(model.graph.input) == [
        ("obs_0", number, ["batch", 3]),
        ("obs_1", number, ["batch", 2, 4]),
        ("obs_2", number, ["batch", 1]),
        ("action_masks", number, ["batch", 5]),
    ]
    assert signature(model.graph.output) == [
        ("version_number", number, [1]),
        ("memory_size", number, [1]),
        ("continuous_actions", number, ["batch", 2]),
        ("continuous_action_output_shape", number, [1]),
        ("deterministic_continuous_actions", number, ["batch", 2]),
        ("discrete_actions", integer, ["batch", 2]),
        ("discrete_action_output_shape", number, [1, 2]),
        ("deterministic_discrete_actions", integer, ["batch", 2]),
    ]
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", OPSET)]


def test_a_graph_has_the_inputs_and_outputs_of_one_from_ml_agents(tmp_path: Path, mlagents_data: Path) -> None:
    reference = onnx.load(mlagents_data / "results" / "first3DBallRun" / "3DBall.onnx")
    ball = BehaviorSpec("3DBall", (ObservationSpec("observation", (8,)),), ActionSpec(continuous=2))
    model = onnx.load_from_string(exported(tmp_path, ball, random_weights(ball, is_normalized=True, hidden=128)))
    assert signature(model.graph.input) == signature(reference.graph.input)
    assert signature(model.graph.output) == signature(reference.graph.output)
    own, others = ({node.op_type for node in m.graph.node} for m in (model, reference))
    assert own - others <= {"Constant"}, "runtimes that read ML-Agents' graphs know every operation of ours"


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.name)
def test_constants_stand_in_the_graph_as_initializers(tmp_path: Path, spec: BehaviorSpec) -> None:
    """Some of Unity's runtimes look for them there, others among the outputs."""
    graph = onnx.load_from_string(exported(tmp_path, spec, random_weights(spec))).graph
    initializers = {initializer.name for initializer in graph.initializer}
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    for name in (output.name for output in graph.output if "actions" not in output.name):
        source = sources[name]
        while source in sources:  # torch keeps one of several equal initializers
            source = sources[source]
        assert source in initializers


def test_an_exported_graph_plays_cartpole_as_its_policy_does(tmp_path: Path) -> None:
    weights = random_weights(CARTPOLE, seed=3)
    graph = OnnxGraph(exported(tmp_path, CARTPOLE, weights))
    allowed = np.ones((1, 2), np.float32)

    def act(rows: Float32) -> int:
        return int(graph({"obs_0": rows, "action_masks": allowed})["deterministic_discrete_actions"][0, 0])

    actions, total = episode(act)
    assert (actions, total) == episode(cartpole_policy(weights))
    assert len(set(actions)) == 2, "a policy that always pushes one way would show nothing"


def test_the_example_in_the_documentation_plays_cartpole(tmp_path: Path) -> None:
    weights = random_weights(CARTPOLE, seed=3)
    exported(tmp_path, CARTPOLE, weights)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "onnx.md").read_text(), re.DOTALL)
    (tmp_path / "play.py").write_text(example)
    played = subprocess.run(
        [sys.executable, "play.py", "CartPole.onnx"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    _, total = episode(cartpole_policy(weights))
    assert (played.stdout, played.stderr) == (f"return {total:g}\n", "")


def test_torchs_newer_exporter_passes_the_same_checks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    weights = random_weights(MIXED, is_normalized=True)
    old, new = (exported(tmp_path, MIXED, weights, dynamo) for dynamo in (False, True))
    models = [onnx.load_from_string(content) for content in (old, new)]
    assert [opset.version for opset in models[1].opset_import] == [18]
    for part in ("input", "output"):
        assert signature(getattr(models[0].graph, part)) == signature(getattr(models[1].graph, part))
    assert capfd.readouterr() == ("", "")


def changed(weights: Weights, name: str, amount: float) -> Weights:
    return replace(weights, arrays={**weights.arrays, name: weights.arrays[name] + np.float32(amount)})


def with_input(name: str, change: Callable[[Float32], Float32]) -> Callable[[Run], Run]:
    """A graph that sees something else."""
    return lambda run: lambda inputs: run({**inputs, name: change(inputs[name])})


def with_output(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Run], Run]:
    """A graph that says something else."""

    def changed_graph(run: Run) -> Run:
        def changed_run(inputs: Mapping[str, Float32]) -> Outputs:
            outputs = run(inputs)
            return {**outputs, name: change(outputs[name])}

        return changed_run

    return changed_graph


@pytest.fixture(scope="module")
def mixed_graph(tmp_path_factory: pytest.TempPathFactory) -> OnnxGraph:
    return OnnxGraph(exported(tmp_path_factory.mktemp("mixed"), MIXED, random_weights(MIXED)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_input("obs_0", lambda rows: rows * np.float32(1.001)), "differ by"),
        (with_input("obs_0", lambda rows: rows[:, ::-1]), "differ by"),
        (with_input("action_masks", np.ones_like), "differ by"),
        (lambda run: lambda inputs: dict(reversed(run(inputs).items())), "outputs are"),
        (with_output("version_number", lambda value: value - 1), "version_number is"),
        (with_output("memory_size", lambda value: value.astype(np.float64)), "memory_size is float64"),
        (with_output("discrete_action_output_shape", lambda value: value[0]), "discrete_action_output_shape is"),
        (with_output("continuous_actions", lambda actions: actions[:1]), r"continuous_actions is float32\[1, 2\]"),
        (with_output("continuous_actions", lambda actions: actions * 3), "leave"),
        (with_output("continuous_actions", lambda actions: actions / 3), "as often"),
        (with_output("continuous_actions", np.zeros_like), "as often"),
        (with_output("deterministic_continuous_actions", lambda actions: actions * np.nan), "differ by nan"),
        (with_output("discrete_actions", lambda choices: choices.astype(np.int32)), "int32"),
        (with_output("discrete_actions", lambda choices: choices + 1), "beyond"),
        (with_output("discrete_actions", np.zeros_like), "as often"),
        (with_output("discrete_actions", lambda choices: np.roll(choices, 1, axis=0)), "forbidden"),
        (with_output("deterministic_discrete_actions", lambda choices: choices - 1), "beyond"),
        (with_output("deterministic_discrete_actions", np.zeros_like), "differ by"),
    ],
)
def test_a_graph_that_acts_differently_is_noticed(
    mixed_graph: OnnxGraph, change: Callable[[Run], Run], reason: str
) -> None:
    weights = random_weights(MIXED)
    with pytest.raises(ExportError, match=reason):
        check(change(mixed_graph), weights, ExportedPolicy(MIXED, "swish", weights.arrays))


@pytest.mark.parametrize(
    ("name", "amount", "reason"),
    [("layers.2.bias", 2e-4, "differ by"), ("normalizer.mean", 0.1, "differ by"), ("log_sigma", 0.8, "as often")],
)
def test_a_graph_of_other_weights_is_noticed(tmp_path: Path, name: str, amount: float, reason: str) -> None:
    weights = random_weights(HOPPER, is_normalized=True)
    graph = OnnxGraph(exported(tmp_path, HOPPER, changed(weights, name, amount)))
    with pytest.raises(ExportError, match=reason):
        check(graph, weights, ExportedPolicy(HOPPER, "swish", weights.arrays))


@pytest.mark.parametrize("log_sigma", [-60.0, -12.0, 20.0])
def test_a_policy_without_spread_or_with_too_much_of_it_is_exported(tmp_path: Path, log_sigma: float) -> None:
    weights = random_weights(HOPPER)
    weights.arrays["log_sigma"][:] = log_sigma
    assert exported(tmp_path, HOPPER, weights)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda arrays: {**arrays, "layers.1.bias": arrays["layers.1.bias"] * np.nan}, "layers.1.bias .* not finite"),
        (lambda arrays: {**arrays, "layers.0.weight": arrays["layers.0.weight"][:, 1:]}, "torch cannot export"),
        (lambda arrays: {name: array * np.float32(1e25) for name, array in arrays.items()}, "differ by"),
    ],
)
def test_a_refused_export_leaves_the_previous_files(
    tmp_path: Path, broken: Callable[[dict[str, Float32]], dict[str, Float32]], reason: str
) -> None:
    paths = [tmp_path / "Hopper-1000.onnx", tmp_path / "Hopper.onnx"]
    for path in paths:
        path.write_bytes(b"previous")
    with pytest.raises(ExportError, match=f"^Hopper: .*{reason}"):
        PolicyExporter(HOPPER, "relu").export(Weights(2, broken(random_weights(HOPPER).arrays)), paths)
    assert [path.read_bytes() for path in paths] == [b"previous", b"previous"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "Hopper.onnx"
    with pytest.raises(ExportError, match=f"{path}: cannot be written: No such file"):
        PolicyExporter(HOPPER, "swish").export(random_weights(HOPPER), [path])


def test_exporting_in_a_thread_changes_nothing_for_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    network = torch.nn.Linear(3, 3)
    state = torch.random.get_rng_state()
    exporting = threading.Thread(target=exported, args=(tmp_path, MIXED, random_weights(MIXED)))
    exporting.start()
    num_updates = 0
    while exporting.is_alive() or num_updates == 0:
        network.zero_grad()
        network(torch.ones(2, 3)).sum().backward()
        assert network.bias.grad is not None
        assert network.bias.grad.tolist() == [2.0, 2.0, 2.0]
        num_updates += 1
    exporting.join(10)
    assert (tmp_path / "Mixed.onnx").exists()
    assert num_updates > 1, "nothing happened beside the export"
    assert torch.equal(state, torch.random.get_rng_state())
    assert capfd.readouterr() == ("", "")


def test_exporting_imports_late_says_nothing_and_leaves_nothing_at_home(tmp_path: Path) -> None:
    """With onnxruntime's reports on, it would keep a number for this machine and a database there."""
    script = f"""
import sys
from pathlib import Path
from engine.running.export import PolicyExporter
from tests.weights import MIXED, random_weights
assert not {{"onnx", "onnxruntime"}} & sys.modules.keys(), "imported before the first export"
PolicyExporter(MIXED, "tanh").export(random_weights(MIXED), [Path({str(tmp_path / "Mixed.onnx")!r})])
"""
    home = tmp_path / "home"
    home.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=False,
        cwd=ROOT,
        env={"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "Mixed.onnx").exists()
    assert list(home.rglob("*")) == []
