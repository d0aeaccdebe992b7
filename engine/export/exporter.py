"""A policy's weights become files for other programs, after each was seen to act as the policy does."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import warnings
from collections.abc import Sequence

import numpy as np
import safetensors.numpy
import torch
from torch import Tensor

from rl_tui.engine.config.behavior import ExportedKind, NetworkSettings
from rl_tui.engine.errors import ExportError
from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.graph_check import check
from rl_tui.engine.export.graph_names import CONSTANTS, GraphKind
from rl_tui.engine.export.onnx_graph import OnnxGraph, graph_inputs
from rl_tui.engine.specs import BehaviorSpec, Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.disk import make_folders, write_atomically
from rl_tui.engine.version import VERSION

OPSET = 15  # every runtime of the last years reads it, Unity's included
TRACED_ROWS = 2  # not 1, which an operation may take for a dimension to broadcast

_KNOWN_WARNINGS: tuple[tuple[str, type[Warning], str], ...] = (  # what is said, its kind, and of which module
    ("You are using the legacy TorchScript-based ONNX export", DeprecationWarning, ""),
    ("The feature will be removed. Please remove usage of this", DeprecationWarning, ""),  # torch calls its own
    ("Converting a tensor to a Python boolean", Warning, r"torch\.nn\.modules\.rnn"),  # checks of sizes
    ("Exporting a model to ONNX with a batch_size other than 1", UserWarning, ""),  # a memory's beginning is an input
)


class PolicyExporter:
    """Lives in the saver thread; torch exports one policy at a time. Keeps nothing between two exports."""

    def __init__(
        self,
        spec: BehaviorSpec,
        network: NetworkSettings,
        is_squashed: bool,
        policies: Sequence[ExportedKind] = (),
    ):
        """is_squashed: as `Actor` has it. policies: what is written beside the graph for Unity."""
        self._spec = spec
        self._network = network
        self._is_squashed = is_squashed
        self._policies = tuple(policies)

    def export(self, weights: Weights, step: int, folder: BehaviorFolder) -> float:
        """Replace the files of that step and the newest for Unity; return their largest difference from the policy.

        `check` tells in which units. A graph takes 0.04 s for a small network, 0.3 s with a memory, 2 s for many
        convolutions, the first one 0.3 s more for imports. Raises ExportError when a graph cannot be made or differs,
        or a file cannot be written; until all have passed every check, no file is touched.
        """
        for name, array in weights.arrays.items():
            if not np.isfinite(array).all():
                raise ExportError(f"{self._spec.name}: {name} holds a number that is not finite")
        graph, difference = self._checked(weights, step, "unity")
        files = {folder.export(step): graph, folder.final_export: graph}
        for kind in self._policies:
            if kind == "raw":
                content = self._raw(weights, step)
            else:
                content, other = self._checked(weights, step, kind)
                difference = max(difference, other)
            files[folder.policy(step, kind)] = content
        for path, content in files.items():
            try:
                make_folders(path.parent)
                write_atomically(path, content)
            except OSError as error:
                raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error
        return difference

    def _checked(self, weights: Weights, step: int, kind: GraphKind) -> tuple[bytes, float]:
        """A graph that says what it is of, and its largest difference."""
        try:
            policy = ExportedPolicy(self._spec, self._network, self._is_squashed, weights, kind)
            content = _graph(policy) + self._metadata(step)
        except RuntimeError as error:
            raise ExportError(f"{self._spec.name}: torch cannot export this policy: {_first_line(error)}") from error
        try:
            return content, check(OnnxGraph(content), weights, policy)
        except ExportError as error:
            raise ExportError(f"{self._spec.name}: {error}") from error

    def _metadata(self, step: int) -> bytes:
        """What follows a graph's bytes so that its metadata names every observation: such messages merge when read."""
        import onnx  # not needed before the first export

        about = {"program": f"rl-tui {VERSION}", "behavior": self._spec.name, "step": str(step)}
        about |= {f"obs_{index}": own.name for index, own in enumerate(self._spec.observations)}
        model = onnx.ModelProto()
        for key, value in about.items():
            model.metadata_props.add(key=key, value=value)
        return bytes(model.SerializeToString())

    def _raw(self, weights: Weights, step: int) -> bytes:
        """The weights by name, and in the file's metadata all that tells what to do with them."""
        about = {
            "program_version": VERSION,
            "behavior": self._spec.name,
            "step": str(step),
            "spec": json.dumps(dataclasses.asdict(self._spec)),
            "network_settings": self._network.model_dump_json(),
            "is_squashed": json.dumps(self._is_squashed),
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in weights.arrays.items()}
        return safetensors.numpy.save(arrays, about)


def _graph(policy: ExportedPolicy) -> bytes:
    per_agent = [name for name, source in policy.output_names.items() if source not in CONSTANTS]
    content = io.BytesIO()
    _silence()
    with torch.no_grad():
        torch.onnx.export(
            policy,
            _examples(policy),
            content,  # type: ignore[arg-type]  # this exporter writes to any file, its signature names paths only
            input_names=policy.input_names,
            output_names=list(policy.output_names),
            dynamic_axes={name: {0: "batch"} for name in (*policy.input_names, *per_agent)},
            opset_version=OPSET,
            dynamo=False,
        )
    return content.getvalue()


def _first_line(error: RuntimeError) -> str:
    """torch appends whole graphs."""
    return str(error).partition("\n")[0]


def _examples(policy: ExportedPolicy) -> tuple[Tensor, ...]:
    """What the graph is traced with: only the shapes matter."""
    observations = tuple(np.zeros((TRACED_ROWS, *own.shape), own.dtype) for own in policy.spec.observations)
    memories = np.zeros((TRACED_ROWS, policy.memory_size), np.float32)
    return tuple(map(torch.from_numpy, graph_inputs(policy.spec, observations, None, memories).values()))


def _silence() -> None:
    """Ignore these warnings from now on, and no other.

    Not `catch_warnings`: leaving it puts back the filters of its beginning, also over those that another thread has
    set meanwhile. And only once, since each change of the filters lets Python repeat the warnings it has shown.
    """
    for message, category, module in _KNOWN_WARNINGS:
        patterns = re.compile(message, re.IGNORECASE), re.compile(module) if module else None
        if ("ignore", patterns[0], category, patterns[1], 0) not in warnings.filters:
            warnings.filterwarnings("ignore", message, category, module)
