"""The policy that a behavior learns from, read when its run starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import CheckpointError, ConfigError, ExportError, NotSupportedError
from rl_tui.engine.export.graph_names import DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE
from rl_tui.engine.export.onnx_graph import OnnxGraph, graph_inputs
from rl_tui.engine.export.onnx_policy import OnnxPolicy, read_graph
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.running.imitated import ONNX, TEACHER, require_teacher
from rl_tui.engine.running.misfit import spec_differences
from rl_tui.engine.specs import BehaviorSpec, Policy
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.checkpoints import initial_checkpoint
from rl_tui.engine.storage.file_names import CONFIGURATION


def read_teacher(spec: BehaviorSpec, config: BehaviorConfig, seed: int) -> tuple[Policy, str] | None:
    """What it learns from, taking its likeliest actions, and which one that is; None where it has no teacher.

    Raises ConfigError, naming the key, where it cannot be read, or acts for another behavior; NotSupportedError.
    """
    if config.hyperparameters.teacher_path is None:
        return None
    key, path = f"behaviors.{spec.name}.{TEACHER}", Path(config.hyperparameters.teacher_path)
    try:
        require_teacher(path)
        policy, source = _exported(path, spec) if path.suffix == ONNX else _saved(path, spec, seed)
    except (CheckpointError, ConfigError, ExportError) as error:
        raise ConfigError(f"{key}: {error}") from error
    if policy.memory_size:
        raise NotSupportedError(f"{key}: {source} has a memory; a teacher with memory is not supported yet")
    return policy, str(source)


def _exported(path: Path, spec: BehaviorSpec) -> tuple[Policy, Path]:
    """A file that has sampled actions alone gives these."""
    graph = read_graph(path)
    _require_inputs(path, graph, spec)
    has_likeliest = not {DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE}.isdisjoint(graph.outputs)
    return OnnxPolicy(path, spec, has_likeliest, graph), path


def _require_inputs(path: Path, graph: OnnxGraph, spec: BehaviorSpec) -> None:
    """The graph takes what the behavior observes. Raises ConfigError with what differs."""
    zeros = tuple(np.zeros((1, *own.shape), own.dtype) for own in spec.observations)
    here = {
        name: array.shape[1:] for name, array in graph_inputs(spec, zeros, None, np.zeros((1, 0), np.float32)).items()
    }
    found = {name: tuple(shape[1:]) for name, shape in graph.inputs.items() if name.startswith("obs_")}
    wanted = {name: shape for name, shape in here.items() if name.startswith("obs_")}
    if found != wanted:
        words = (" and ".join(f"{name} {list(shape)}" for name, shape in of.items()) for of in (found, wanted))
        raise ConfigError("{}: acts by other observations: {} (here {})".format(path, *words))


def _saved(path: Path, spec: BehaviorSpec, seed: int) -> tuple[Policy, Path]:
    """Of a run its newest checkpoint."""
    path = initial_checkpoint(path, spec.name)
    state, checkpoint = read(path)
    differences = [] if checkpoint.spec is None else list(spec_differences(checkpoint.spec, spec))
    if differences:
        raise ConfigError(f"{path}: was trained with {', '.join(differences)}")
    configuration = path.absolute().parents[2] / CONFIGURATION
    if not configuration.exists():
        text = f"{path}: its settings are not where its run had them ({configuration}): name a checkpoint in its run"
        raise ConfigError(text)
    return policy_of_checkpoint(configuration, spec, state, checkpoint, seed, is_greedy=True), path
