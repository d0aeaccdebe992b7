"""The policy that a behavior learns from, read when its run starts."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, NotSupportedError, RlTuiError
from rl_tui.engine.export.graph_names import DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE
from rl_tui.engine.export.onnx_policy import OnnxPolicy, read_graph
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.running.imitated import TEACHER
from rl_tui.engine.running.misfit import spec_differences
from rl_tui.engine.specs import BehaviorSpec, Policy
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.checkpoints import initial_checkpoint
from rl_tui.engine.storage.file_names import CONFIGURATION

ONNX = ".onnx"


def read_teacher(spec: BehaviorSpec, config: BehaviorConfig, seed: int) -> tuple[Policy, str] | None:
    """What it learns from, taking its likeliest actions, and which one that is; None where it has no teacher.

    Raises RlTuiError, naming the key, where it cannot be read, or acts for another behavior.
    """
    if config.hyperparameters.teacher_path is None:
        return None
    path = Path(config.hyperparameters.teacher_path)
    try:
        policy, source = _read(path, spec, seed)
    except RlTuiError as error:
        raise type(error)(f"behaviors.{spec.name}.{TEACHER}: {error}") from error
    if policy.memory_size:
        text = f"behaviors.{spec.name}.{TEACHER}: {source} has a memory; a teacher with memory is not supported yet"
        raise NotSupportedError(text)
    return policy, str(source)


def _read(path: Path, spec: BehaviorSpec, seed: int) -> tuple[Policy, Path]:
    """Of a run its newest checkpoint. A file that only has sampled actions gives these."""
    if path.suffix == ONNX:
        graph = read_graph(path)
        has_likeliest = not {DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE}.isdisjoint(graph.outputs)
        return OnnxPolicy(path, spec, has_likeliest, graph), path
    path = initial_checkpoint(path, spec.name)
    state, checkpoint = read(path)
    differences = [] if checkpoint.spec is None else list(spec_differences(checkpoint.spec, spec))
    if differences:
        raise CheckpointError(f"{path}: was trained with {', '.join(differences)}")
    configuration = path.absolute().parents[2] / CONFIGURATION
    if not configuration.exists():
        text = f"{path}: its settings are not where its run had them ({configuration}): name a checkpoint in its run"
        raise CheckpointError(text)
    return policy_of_checkpoint(configuration, spec, state, checkpoint, seed, is_greedy=True), path
