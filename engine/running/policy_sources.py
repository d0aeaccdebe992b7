"""Saved policies that act for a behavior and do not learn: of an exported file, or of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.export.graph_names import DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE
from rl_tui.engine.export.onnx_graph import OnnxGraph, graph_inputs
from rl_tui.engine.export.onnx_policy import OnnxPolicy, read_graph
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.running.evaluation.saved_policy import Way
from rl_tui.engine.running.misfit import spec_differences
from rl_tui.engine.running.policy_paths import ONNX
from rl_tui.engine.sampling.environments.unity.wire.packages import misread_before
from rl_tui.engine.specs import BehaviorSpec, Policy
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.checkpoints import initial_checkpoint
from rl_tui.engine.storage.file_names import CONFIGURATION


class PolicyMisfitError(ConfigError):
    """A saved policy acts for a behavior with other observations or actions."""


@dataclass(frozen=True, slots=True)
class PolicySource:
    """What was read: all of it, so that the file may go.

    make: a policy that acts in that way, where it can, with a seed for what it samples. only: the way in which it acts
    in any case; None where it can do both. step: of its training, None where the file does not say. warnings: what is
    probably wrong with it.
    """

    path: Path
    make: Callable[[Way, int], Policy]
    step: int | None = None
    only: Way | None = None
    warnings: tuple[str, ...] = ()


def read_policy(path: Path, spec: BehaviorSpec) -> PolicySource:
    """The policy in an ONNX file, or of a checkpoint; of a run's folder, its newest one.

    Raises CheckpointError or ExportError where it cannot be read, and PolicyMisfitError.
    """
    return (
        read_exported(path, spec) if path.suffix == ONNX else read_checkpoint(initial_checkpoint(path, spec.name), spec)
    )


def read_exported(path: Path, spec: BehaviorSpec) -> PolicySource:
    """The policy in an ONNX file, of this program or another one."""
    graph = read_graph(path)
    _require_inputs(path, graph, spec)
    has_likeliest = not {DETERMINISTIC_CONTINUOUS, DETERMINISTIC_DISCRETE}.isdisjoint(graph.outputs)
    only: Way | None = None
    if not has_likeliest:  # all that it has is called like sampled actions
        only = "greedy" if graph.metadata.get("kind") == "greedy" else "sampled"

    def make(way: Way, _seed: int) -> Policy:
        return OnnxPolicy(path, spec, has_likeliest and way == "greedy", graph)

    make("greedy", 0)
    step = graph.metadata.get("step", "")
    return PolicySource(path, make, int(step) if step.isdecimal() else None, only)


def read_checkpoint(path: Path, spec: BehaviorSpec) -> PolicySource:
    """The policy of a checkpoint that is in the folder of its run."""
    state, checkpoint = read(path)
    differences = [] if checkpoint.spec is None else list(spec_differences(checkpoint.spec, spec))
    if differences:
        raise PolicyMisfitError(f"{path}: was trained with {', '.join(differences)}")
    configuration = path.absolute().parents[2] / CONFIGURATION
    if not configuration.exists():
        text = f"{path}: its settings are not where its run had them ({configuration}): name a checkpoint in its run"
        raise ConfigError(text)

    def make(way: Way, seed: int) -> Policy:
        return policy_of_checkpoint(configuration, spec, state, checkpoint, seed, way == "greedy")

    misread = "" if checkpoint.spec is None else misread_before(checkpoint.spec, spec)
    return PolicySource(path, make, checkpoint.step, warnings=(misread,) if misread else ())


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
        raise PolicyMisfitError("{}: acts by other observations: {} (here {})".format(path, *words))
