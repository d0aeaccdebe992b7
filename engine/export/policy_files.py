"""Exported policies that act by what is in their files alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import safetensors
from pydantic import ValidationError

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ConfigError, ExportError
from rl_tui.engine.export.graph_names import GraphKind
from rl_tui.engine.export.onnx_policy import OnnxPolicy, read_graph
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.process.files import require_regular
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, Float32, ObservationSpec, Policy, Weights

RAW = ".safetensors"
FileKind: TypeAlias = GraphKind | Literal["raw"]


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy read from a file. is_greedy: it takes the mean and the likeliest choices, and else samples."""

    policy: Policy
    spec: BehaviorSpec
    step: int
    kind: FileKind
    is_greedy: bool


def read_policy_file(path: Path, is_greedy: bool | None, seed: int) -> PolicyFile:
    """The policy in a file. is_greedy: None for what the file does, greedy where it can do both. seed: of raw policies;
    graphs draw from a generator of onnxruntime.

    Raises ExportError for a file that is damaged or has too little in it to act, ConfigError where it cannot act so.
    """
    return _read_raw(path, is_greedy, seed) if path.suffix == RAW else _read_graph(path, is_greedy)


def _read_graph(path: Path, is_greedy: bool | None) -> PolicyFile:
    graph = read_graph(path)
    spec, step = _described(path, graph.metadata, graph.metadata.get("program", "another program"))
    kind = cast(GraphKind, graph.metadata.get("kind"))
    is_fixed = kind in ("stochastic", "greedy")  # the only actions it has are called like sampled ones
    if is_fixed and is_greedy not in (None, kind == "greedy"):
        raise ConfigError(f"{path}: a {kind} policy {'samples' if is_greedy else 'never samples'} its actions")
    acts_greedily = kind == "greedy" if is_fixed else is_greedy is not False
    policy = OnnxPolicy(path, spec, acts_greedily and not is_fixed, graph)
    return PolicyFile(policy, spec, step, kind, acts_greedily)


def read_weights(path: Path) -> Weights:
    """Those in a raw policy, after so many steps as its version says. Raises ExportError."""
    arrays, about = _arrays_of(path)
    return Weights(int(step) if (step := about.get("step", "")).isdecimal() else 0, arrays)


def _arrays_of(path: Path) -> tuple[dict[str, Float32], dict[str, str]]:
    try:
        require_regular(path, follows_links=True)
        with safetensors.safe_open(path, "numpy") as file:
            return {name: file.get_tensor(name) for name in sorted(file.keys())}, file.metadata() or {}
    except (OSError, safetensors.SafetensorError) as error:
        raise ExportError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _read_raw(path: Path, is_greedy: bool | None, seed: int) -> PolicyFile:
    arrays, about = _arrays_of(path)
    spec, step = _described(path, about, f"rl-tui {about.get('program_version', '')}".strip())
    if "network_settings" not in about:
        raise ExportError(f"{path}: has a network that only its trainer can make: use a graph, or the checkpoint")
    try:
        network = NetworkSettings.model_validate_json(about["network_settings"])
        acts_greedily = is_greedy is not False
        policy = make_policy(spec, network, json.loads(about["is_squashed"]), seed, acts_greedily)
        policy.load(Weights(step, arrays))
        _try_out(policy, spec)
    except (KeyError, ValueError, RuntimeError, ValidationError) as error:
        raise ExportError(f"{path}: its arrays and settings do not make a policy: {_in_one_line(error)}") from error
    return PolicyFile(policy, spec, step, "raw", acts_greedily)


def _described(path: Path, about: dict[str, str], program: str) -> tuple[BehaviorSpec, int]:
    """The spec and the step that a file was exported with."""
    fields: Any = _json(about.get("spec"))
    if not isinstance(fields, dict) or "spaces" not in fields or not about.get("step", "").isdecimal():
        text = f"was written by {program} without the spaces of its environment, which acting needs: export it again"
        raise ExportError(f"{path}: {text}")
    try:
        observations = [ObservationSpec(**{**one, "shape": tuple(one["shape"])}) for one in fields["observations"]]
        actions = ActionSpec(fields["actions"]["continuous"], tuple(fields["actions"]["branches"]))
        spec = BehaviorSpec(fields["name"], tuple(observations), actions, fields["spaces"])
    except (KeyError, TypeError) as error:
        raise ExportError(f"{path}: its spec is incomplete: {_in_one_line(error)}") from error
    return spec, int(about["step"])


def _try_out(policy: Policy, spec: BehaviorSpec) -> None:
    """Let it act once, so that what does not fit is found here."""
    zeros = tuple(np.zeros((1, *own.shape), own.dtype) for own in spec.observations)
    before = policy.state()
    policy.act(DecisionSteps(np.zeros(1, np.int64), zeros, np.zeros(1, np.float32)))
    policy.load_state(before)


def _json(text: str | None) -> object:
    try:
        found: object = json.loads(text or "null")
    except ValueError:
        return None
    return found


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())
