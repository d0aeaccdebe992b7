from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import pytest
import safetensors
import torch

from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ExportError
from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.exporter import OPSET, PolicyExporter
from rl_tui.engine.export.graph_check import GraphFunction, check_graph
from rl_tui.engine.export.onnx_graph import OnnxGraph, Outputs
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, Float32, ObservationSpec, Policy, Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.version import VERSION
from tests.deadline import DEADLINE_SECONDS
from tests.export.exporters import actor_exporter, exported_actor
from tests.warm_start import WarmProcess
from tests.weights import CARTPOLE, HOPPER, KINDS, Kind

pytestmark = pytest.mark.usefixtures("one_torch_thread")

ROOT = Path(__file__).parents[2]
STEP = 1000
FIRST = "body.core.layers.weights.0"
Signature = list[tuple[str, int, list[str | int]]]

# Those that our graphs have of what Unity lists for Sentis 1 and 2 (Inference Engine) under "Supported ONNX operators".
KNOWN_TO_UNITY = """
Add ArgMax Cast Clip Concat Constant Conv Div Exp Flatten Gather Gemm Identity LSTM LeakyRelu Less LogSoftmax MatMul
MaxPool Mul Multinomial Not Pow RandomNormalLike ReduceMean ReduceSum Relu Reshape Shape Sigmoid Slice Softmax Split
Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""


def place(folder: Path, kind: Kind) -> BehaviorFolder:
    return BehaviorFolder(kind.spec.name, folder / kind.spec.name)


def exporter(kind: Kind, *policies: ExportedKind) -> PolicyExporter:
    return actor_exporter(kind.spec, kind.network, kind.is_squashed, policies)


def exported(folder: Path, kind: Kind, weights: Weights | None = None) -> bytes:
    """The graph for Unity."""
    exporter(kind).export(weights or kind.weights(), STEP, place(folder, kind))
    return place(folder, kind).export(STEP).read_bytes()


def policy_of(kind: Kind, weights: Weights) -> ExportedPolicy:
    return exported_actor(kind.spec, kind.network, kind.is_squashed, weights)


def reference_of(kind: Kind, weights: Weights) -> Policy:
    """What acts greedily with these weights."""
    policy = make_policy(kind.spec, kind.network, kind.is_squashed, seed=0, is_greedy=True)
    policy.load(weights)
    return policy


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
    policy = make_policy(CARTPOLE, NetworkSettings(deterministic=True), is_squashed=False, seed=0)
    policy.load(weights)
    zeros = np.zeros(1, np.int64), np.zeros(1, np.float32)
    return lambda rows: int(policy.act(DecisionSteps(zeros[0], (rows,), zeros[1])).actions.discrete[0, 0])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_graph_acts_as_its_policy_by_operations_that_unity_has(tmp_path: Path, kind: Kind) -> None:
    files = place(tmp_path, kind)
    difference = exporter(kind).export(kind.weights(), STEP, files)
    assert difference < 5e-6
    assert files.export(STEP).read_bytes() == files.final_export.read_bytes()
    graph = onnx.load(files.final_export).graph
    assert {node.op_type for node in graph.node} <= set(KNOWN_TO_UNITY.split())
    values = signature(graph.input) + signature(graph.output)
    assert all(isinstance(size, int) for _, _, sizes in values for size in sizes[1:]), "only the batch is open"
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert written == sorted([files.export(STEP), files.final_export]), "nothing unfinished stays"


def test_a_graph_has_the_inputs_and_outputs_of_the_contract(tmp_path: Path) -> None:
    model = onnx.load_from_string(exported(tmp_path, KINDS["sac goal image memory"]))
    number, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    assert signature(model.graph.input) == [
        ("obs_0", number, ["batch", 2]),
        ("obs_1", number, ["batch", 3, 20, 24]),
        ("obs_2", number, ["batch", 3]),
        ("action_masks", number, ["batch", 5]),
        ("recurrent_in", number, ["batch", 1, 8]),
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
        ("recurrent_out", number, ["batch", 1, 8]),
    ]
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", OPSET)]


def test_a_set_of_entities_keeps_its_rows(tmp_path: Path) -> None:
    model = onnx.load_from_string(exported(tmp_path, KINDS["sac sets only"]))
    assert [dimensions for _, _, dimensions in signature(model.graph.input)] == [["batch", 4, 3], ["batch", 2, 5]]


def test_a_graph_has_the_inputs_and_outputs_of_one_from_ml_agents(tmp_path: Path, mlagents_data: Path) -> None:
    reference = onnx.load(mlagents_data / "results" / "first3DBallRun" / "3DBall.onnx")
    spec = BehaviorSpec("3DBall", (ObservationSpec("observation", (8,)),), ActionSpec(continuous=2))
    ball = Kind(spec, NetworkSettings(hidden_units=128), is_normalized=True)
    model = onnx.load_from_string(exported(tmp_path, ball))
    assert signature(model.graph.input) == signature(reference.graph.input)
    assert signature(model.graph.output) == signature(reference.graph.output)
    own, others = ({node.op_type for node in m.graph.node} for m in (model, reference))
    assert own - others <= {"Constant"}, "runtimes that read ML-Agents' graphs know every operation of ours"


@pytest.mark.parametrize("name", ["ppo discrete", "ppo continuous normalized", "sac hybrid memory"])
def test_constants_stand_in_the_graph_as_initializers(tmp_path: Path, name: str) -> None:
    """Some of Unity's runtimes look for them there, others among the outputs."""
    graph = onnx.load_from_string(exported(tmp_path, KINDS[name])).graph
    initializers = {initializer.name for initializer in graph.initializer}
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    constants = [output.name for output in graph.output if not re.search("actions|recurrent", output.name)]
    assert len(constants) >= 3
    for name in constants:
        source = sources[name]
        while source in sources:  # torch keeps one of several equal initializers
            source = sources[source]
        assert source in initializers


def test_an_observation_of_size_zero_is_not_an_input(tmp_path: Path) -> None:
    model = onnx.load_from_string(exported(tmp_path, KINDS["ppo unused observation"]))
    assert [value.name for value in model.graph.input] == ["obs_1", "action_masks"]


def test_an_exported_graph_plays_cartpole_as_its_policy_does(tmp_path: Path) -> None:
    kind = Kind(CARTPOLE)
    weights = kind.weights(seed=3)
    graph = OnnxGraph(exported(tmp_path, kind, weights))
    allowed = np.ones((1, 2), np.float32)

    def act(rows: Float32) -> int:
        return int(graph({"obs_0": rows, "action_masks": allowed})["deterministic_discrete_actions"][0, 0])

    actions, total = episode(act)
    assert (actions, total) == episode(cartpole_policy(weights))
    assert len(set(actions)) == 2, "a policy that always pushes one way would show nothing"


def test_the_example_in_the_documentation_plays_cartpole(tmp_path: Path) -> None:
    kind = Kind(CARTPOLE)
    weights = kind.weights(seed=3)
    exported(tmp_path, kind, weights)
    example = example_of_the_page("gymnasium.make")
    _, total = episode(cartpole_policy(weights))
    assert run_example(example, "CartPole.onnx", tmp_path) == (f"return {total:g}\n", "")


def example_of_the_page(part: str) -> str:
    """The one program on the page about exported policies that has this part."""
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "onnx.md").read_text(), re.DOTALL)
    (example,) = [example for example in examples if part in example]
    return str(example)


def run_example(example: str, file: str, folder: Path) -> tuple[str, str]:
    """What it writes to stdout and stderr."""
    command = [sys.executable, "-c", example, file]
    process = WarmProcess(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process.communicate(timeout=DEADLINE_SECONDS)


class Reaching(gymnasium.Env):
    """Its keys are not written in the order in which Gymnasium has them."""

    observation_space = gymnasium.spaces.Dict(
        {
            "position": gymnasium.spaces.Box(-1, 1, (3,)),
            "camera": gymnasium.spaces.Box(0, 255, (20, 20, 3), np.uint8),
            "desired_goal": gymnasium.spaces.Box(-1, 1, (2,)),
        }
    )
    action_space = gymnasium.spaces.Discrete(2)


def test_file_says_which_observation_each_input_is(tmp_path: Path) -> None:
    kind = Kind(GymnasiumLoop("Reaching", [Reaching()]).specs["Reaching"])
    content = exported(tmp_path, kind)
    named = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    assert json.loads(named.pop("spec")) == json.loads(json.dumps(asdict(kind.spec)))
    assert named == {
        "program": f"rl-tui {VERSION}",
        "behavior": "Reaching",
        "step": str(STEP),
        "kind": "unity",
        "obs_0": "camera",
        "obs_1": "desired_goal",
        "obs_2": "position",
    }
    shown = run_example(example_of_the_page("custom_metadata_map"), str(place(tmp_path, kind).export(STEP)), tmp_path)
    assert shown[0].splitlines() == [
        "obs_0 camera ['batch', 3, 20, 20]",
        "obs_1 desired_goal ['batch', 2]",
        "obs_2 position ['batch', 3]",
        "action_masks  ['batch', 2]",
    ]
    assert shown[1] == ""


@pytest.mark.parametrize("name", ["ppo hybrid", "sac hybrid memory", "sac continuous normalized", "ppo discrete"])
def test_policies_beside_it_have_one_kind_of_actions_under_the_plain_names(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    files = place(tmp_path, kind)
    assert exporter(kind, "stochastic", "greedy").export(kind.weights(), STEP, files) < 2e-6
    actions, memory = kind.spec.actions, kind.network.memory
    plain = ["continuous_actions"] * bool(actions.continuous) + ["discrete_actions"] * bool(actions.branches)
    for policy in ("stochastic", "greedy"):
        graph = onnx.load(files.policy(STEP, policy)).graph
        assert [output.name for output in graph.output] == plain + ["recurrent_out"] * (memory is not None)
        is_drawing = {"RandomNormalLike", "Multinomial"} & {node.op_type for node in graph.node}
        assert bool(is_drawing) == (policy == "stochastic")


def test_all_files_of_a_step_stand_where_its_folder_says(tmp_path: Path) -> None:
    kind = KINDS["ppo discrete"]
    files = place(tmp_path, kind)
    exporter(kind, "stochastic", "greedy", "raw").export(kind.weights(), STEP, files)
    assert [str(path.relative_to(files.path)) for path in files.exports(STEP)] == [
        "CartPole-1000.onnx",
        "policies/CartPole-1000-stochastic.onnx",
        "policies/CartPole-1000-greedy.onnx",
        "policies/CartPole-1000-raw.safetensors",
    ]
    assert {path for path in files.path.rglob("*") if path.is_file()} == set(files.exports(STEP))


def test_raw_weights_come_with_all_that_a_policy_is_made_of(tmp_path: Path) -> None:
    kind = KINDS["sac goal image memory"]
    weights = kind.weights()
    exporter(kind, "raw").export(weights, STEP, place(tmp_path, kind))
    with safetensors.safe_open(place(tmp_path, kind).policy(STEP, "raw"), "numpy") as file:
        about = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it cannot be iterated over
    spec, actions = json.loads(about["spec"]), json.loads(about["spec"])["actions"]
    observations = [ObservationSpec(**{**one, "shape": tuple(one["shape"])}) for one in spec["observations"]]
    found = BehaviorSpec(
        about["behavior"], tuple(observations), ActionSpec(actions["continuous"], tuple(actions["branches"]))
    )
    assert found == kind.spec
    assert NetworkSettings.model_validate_json(about["network_settings"]) == kind.network
    assert (json.loads(about["is_squashed"]), int(about["step"])) == (True, STEP)
    assert arrays.keys() == weights.arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, weights.arrays[name])


def changed(weights: Weights, name: str, amount: float) -> Weights:
    return replace(weights, arrays={**weights.arrays, name: weights.arrays[name] + np.float32(amount)})


def with_input(name: str, change: Callable[[Float32], Float32]) -> Callable[[GraphFunction], GraphFunction]:
    """A graph that sees something else."""
    return lambda run: lambda inputs: run({**inputs, name: change(inputs[name])})


def with_output(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[GraphFunction], GraphFunction]:
    """A graph that says something else."""

    def changed_graph(run: GraphFunction) -> GraphFunction:
        def changed_function(inputs: Mapping[str, Float32]) -> Outputs:
            outputs = run(inputs)
            return {**outputs, name: change(outputs[name])}

        return changed_function

    return changed_graph


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OnnxGraph]:
    names = "ppo hybrid", "sac two cameras memory"
    return {name: OnnxGraph(exported(tmp_path_factory.mktemp("graphs"), KINDS[name])) for name in names}


def unsquashed(actions: np.ndarray) -> np.ndarray:
    return np.clip(np.arctanh(actions * np.float32(0.9999)), -1, 1)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("ppo hybrid", with_input("obs_0", lambda rows: rows * np.float32(1.001)), "differ by"),
        ("ppo hybrid", with_input("obs_0", lambda rows: rows[:, ::-1]), "differ by"),
        ("ppo hybrid", with_input("action_masks", np.ones_like), "differ by"),
        ("ppo hybrid", lambda run: lambda inputs: dict(reversed(run(inputs).items())), "outputs must be"),
        ("ppo hybrid", with_output("version_number", lambda value: value - 1), "version_number must be"),
        (
            "ppo hybrid",
            with_output("memory_size", lambda value: value.astype(np.float64)),
            "got float64",
        ),
        ("ppo hybrid", with_output("discrete_action_output_shape", lambda value: value[0]), "output_shape must be"),
        ("ppo hybrid", with_output("continuous_actions", lambda actions: actions[:1]), r"got float32\[1, 2\]"),
        ("ppo hybrid", with_output("continuous_actions", lambda actions: actions * 3), r"must be in \[-1, 1\]"),
        ("ppo hybrid", with_output("continuous_actions", lambda actions: actions / 3), "distributed like"),
        ("ppo hybrid", with_output("continuous_actions", np.zeros_like), "distributed like"),
        (
            "ppo hybrid",
            with_output("deterministic_continuous_actions", lambda actions: actions * np.nan),
            "input is zero",
        ),
        ("ppo hybrid", with_output("discrete_actions", lambda choices: choices.astype(np.int32)), "int32"),
        ("ppo hybrid", with_output("discrete_actions", lambda choices: choices + 1), "must be from 0 to"),
        ("ppo hybrid", with_output("discrete_actions", np.zeros_like), "distributed like"),
        ("ppo hybrid", with_output("discrete_actions", lambda choices: np.roll(choices, 1, axis=0)), "forbidden"),
        ("ppo hybrid", with_output("deterministic_discrete_actions", lambda choices: choices - 1), "must be from 0 to"),
        ("ppo hybrid", with_output("deterministic_discrete_actions", np.zeros_like), "differ by"),
        ("sac two cameras memory", with_input("obs_0", lambda pixels: pixels * np.float32(1.01)), "differ by"),
        ("sac two cameras memory", with_input("obs_2", lambda pixels: pixels[:, :, ::-1]), "differ by"),
        ("sac two cameras memory", with_input("recurrent_in", np.zeros_like), "differ by"),
        ("sac two cameras memory", with_output("recurrent_out", lambda memory: memory * 1.001), "differ by"),
        ("sac two cameras memory", with_output("recurrent_out", lambda memory: memory[..., ::-1]), "differ by"),
        ("sac two cameras memory", with_output("deterministic_continuous_actions", unsquashed), "differ by"),
        ("sac two cameras memory", with_output("continuous_actions", unsquashed), "distributed like"),
    ],
)
def test_a_graph_that_acts_differently_is_noticed(
    graphs: dict[str, OnnxGraph], name: str, change: Callable[[GraphFunction], GraphFunction], reason: str
) -> None:
    weights = KINDS[name].weights()
    with pytest.raises(ExportError, match=reason):
        check_graph(change(graphs[name]), weights, policy_of(KINDS[name], weights), reference_of(KINDS[name], weights))


@pytest.mark.parametrize(
    ("name", "part", "amount", "reason"),
    [
        ("ppo continuous normalized", "head.bias", 2e-4, "differ by"),
        ("ppo continuous normalized", "normalizer.mean", 0.1, "differ by"),
        ("ppo continuous normalized", "log_sigma", 0.8, "distributed like"),
        ("sac hybrid memory", "body.core.memories.0.cell.bias_hh_l0", 1e-3, "differ by"),
        ("sac two cameras memory", "body.encoder.images.1.trunk.0.bias", 1e-3, "differ by"),
        ("sac sets only", "body.encoder.entities.sets.1.weight", 1e-3, "differ by"),
    ],
)
def test_a_graph_of_other_weights_is_noticed(tmp_path: Path, name: str, part: str, amount: float, reason: str) -> None:
    kind = KINDS[name]
    weights = kind.weights()
    graph = OnnxGraph(exported(tmp_path, kind, changed(weights, part, amount)))
    with pytest.raises(ExportError, match=reason):
        check_graph(graph, weights, policy_of(kind, weights), reference_of(kind, weights))


@pytest.mark.parametrize("name", ["ppo continuous normalized", "sac continuous normalized"])
@pytest.mark.parametrize("log_sigma", [-60.0, -12.0, 20.0])
def test_a_policy_without_spread_or_with_too_much_of_it_is_exported(
    tmp_path: Path, name: str, log_sigma: float
) -> None:
    weights = KINDS[name].weights()
    if KINDS[name].is_squashed:
        weights.arrays["head.bias"][3:] = log_sigma
    else:
        weights.arrays["log_sigma"][:] = log_sigma
    assert exported(tmp_path, KINDS[name], weights)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda arrays: {**arrays, "head.bias": arrays["head.bias"] * np.nan}, "head.bias must be finite"),
        (lambda arrays: {**arrays, "head.weight": arrays["head.weight"][:, 1:]}, "torch cannot export"),
        (lambda arrays: {name: array * np.float32(1e25) for name, array in arrays.items()}, "when every input is zero"),
        (lambda arrays: {**arrays, FIRST: arrays[FIRST] * np.float32(1e37)}, "must be finite for large"),
    ],
)
def test_a_refused_export_leaves_the_previous_files(
    tmp_path: Path, broken: Callable[[dict[str, Float32]], dict[str, Float32]], reason: str
) -> None:
    kind = Kind(HOPPER)
    files = place(tmp_path, kind)
    paths = [*files.exports(STEP), files.final_export]
    files.policy(STEP, "raw").parent.mkdir(parents=True)
    for path in paths:
        path.write_bytes(b"previous")
    with pytest.raises(ExportError, match=f"^Hopper: .*{reason}"):
        exporter(kind, "stochastic", "greedy", "raw").export(Weights(2, broken(kind.weights().arrays)), STEP, files)
    assert {path.read_bytes() for path in paths} == {b"previous"}
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    kind = Kind(HOPPER)
    files = place(tmp_path, kind)
    files.path.mkdir()
    files.policy(STEP, "raw").parent.write_text("in the way")
    with pytest.raises(ExportError, match=f"{files.policy(STEP, 'raw')}: cannot be written: File exists"):
        exporter(kind, "raw").export(kind.weights(), STEP, files)


def test_exporting_in_a_thread_changes_nothing_for_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    network = torch.nn.Linear(3, 3)
    state = torch.random.get_rng_state()
    kind = KINDS["sac two cameras memory"]
    exporting = threading.Thread(target=exported, args=(tmp_path, kind))
    exporting.start()
    num_updates = 0
    while exporting.is_alive() or num_updates == 0:
        network.zero_grad()
        network(torch.ones(2, 3)).sum().backward()
        assert network.bias.grad is not None
        assert network.bias.grad.tolist() == [2.0, 2.0, 2.0]
        num_updates += 1
    exporting.join(DEADLINE_SECONDS)
    assert place(tmp_path, kind).final_export.exists()
    assert num_updates > 1, "nothing happened during the export"
    assert torch.equal(state, torch.random.get_rng_state())
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow  # tests/test_imports.py has a run that exports
def test_exporting_imports_late_says_nothing_and_leaves_nothing_at_home(tmp_path: Path) -> None:
    """With onnxruntime's reports on, it would keep a number for this machine and a database there."""
    script = f"""
import sys
from pathlib import Path
from tests.export.exporters import actor_exporter
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.weights import KINDS
assert not {{"onnx", "onnxruntime"}} & sys.modules.keys(), "imported before the first export"
for name in "sac hybrid memory", "ppo set memory", "ppo resnet float":
    kind = KINDS[name]
    folder = BehaviorFolder(kind.spec.name, Path({str(tmp_path)!r}) / kind.spec.name)
    actor_exporter(kind.spec, kind.network, kind.is_squashed).export(kind.weights(), 1, folder)
"""
    home = tmp_path / "home"
    home.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=False,
        cwd=ROOT,
        env={"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "Mixed.onnx").exists()
    assert list(home.rglob("*")) == []
