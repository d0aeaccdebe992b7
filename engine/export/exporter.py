"""Exports a policy's weights as files for other programs, after checking that each acts like the policy."""

from __future__ import annotations

import copy
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

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import ExportedKind
from rl_tui.engine.errors import ExportError, NotSupportedError, PluginError
from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.graph_check import check_graph
from rl_tui.engine.export.graph_names import CONSTANTS, GraphKind
from rl_tui.engine.export.onnx_graph import OnnxGraph, graph_inputs
from rl_tui.engine.learning.actor_module import ActorModule
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.learning.policy_module import PolicyModule
from rl_tui.engine.specs import Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.disk import make_folders, write_atomically
from rl_tui.engine.version import VERSION

OPSET = 15  # every runtime of recent years supports it, Unity's included
TRACED_ROWS = 2  # not 1, which an operation may take for a dimension to broadcast

_KNOWN_WARNINGS: tuple[tuple[str, type[Warning], str], ...] = (  # message, category, module
    ("You are using the legacy TorchScript-based ONNX export", DeprecationWarning, ""),
    ("The feature will be removed. Please remove usage of this", DeprecationWarning, ""),  # about torch's own code
    ("Converting a tensor to a Python boolean", Warning, r"torch\.nn\.modules\.rnn"),  # its checks of sizes
    ("Exporting a model to ONNX with a batch_size other than 1", UserWarning, ""),  # the initial memory is an input
)


class PolicyExporter:
    """Exports one policy at a time, as torch requires. Runs in the saver thread; keeps no state between exports."""

    def __init__(
        self,
        trainer_type: str,
        module: PolicyModule,
        make_policy: MakePolicy,
        policies: Sequence[ExportedKind] = (),
    ):
        """module: nothing is loaded, and it is used for nothing else. make_policy: of its trainer. policies: what to
        write in addition to the graph for Unity."""
        self._trainer_type = trainer_type
        self._module = module
        self._spec = module.spec
        self._make_policy = make_policy
        self._policies = tuple(policies)

    def export(self, weights: Weights, step: int, folder: BehaviorFolder) -> float:
        """Write the files of that step and the newest for Unity; return their largest difference from the policy.

        `check_graph` defines the unit. A graph takes 0.04 s for a small network, 0.3 s with a memory, 2 s for
        many convolutions; imports add 0.3 s to the first one. Raises ExportError when a graph cannot be created or
        differs, or a file cannot be written. No file is changed before all graphs have passed every check.
        """
        for name, array in weights.arrays.items():
            if not np.isfinite(array).all():
                raise ExportError(f"{self._spec.name}: {name} must be finite")
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
        """A graph with its metadata, and its largest difference from the policy."""
        try:
            with registry.blaming("trainers", self._trainer_type, "policy_module"):
                module, reference = copy.deepcopy(self._module), self._make_policy(True)
                module.load(weights)
                reference.load(weights)
                policy = ExportedPolicy(module, kind)
                content = _graph(policy) + self._metadata(step, kind)
                return content, check_graph(OnnxGraph(content), weights, policy, reference)
        except ExportError as error:
            raise ExportError(f"{self._spec.name}: {error}") from error
        except (RuntimeError, NotSupportedError, PluginError) as error:
            raise ExportError(f"{self._spec.name}: torch cannot export this policy: {_first_line(error)}") from error

    def _metadata(self, step: int, kind: GraphKind) -> bytes:
        """Bytes to append to a graph, which merge into it when it is read: metadata that names every observation."""
        import onnx  # not needed before the first export

        about = {"program": f"rl-tui {VERSION}", "behavior": self._spec.name, "step": str(step), "kind": kind}
        about["spec"] = json.dumps(dataclasses.asdict(self._spec))
        about |= {f"obs_{index}": own.name for index, own in enumerate(self._spec.observations)}
        model = onnx.ModelProto()
        for key, value in about.items():
            model.metadata_props.add(key=key, value=value)
        return bytes(model.SerializeToString())

    def _raw(self, weights: Weights, step: int) -> bytes:
        """The weights by name, and in the file's metadata everything that is needed to use them, but for a network that
        only its trainer can make."""
        about = {
            "program_version": VERSION,
            "behavior": self._spec.name,
            "step": str(step),
            "spec": json.dumps(dataclasses.asdict(self._spec)),
        }
        if isinstance(self._module, ActorModule):
            about["network_settings"] = self._module.network.model_dump_json()
            about["is_squashed"] = json.dumps(self._module.is_squashed)
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


def _first_line(error: Exception) -> str:
    """The message without the graph that torch appends."""
    return str(error).partition("\n")[0]


def _examples(policy: ExportedPolicy) -> tuple[Tensor, ...]:
    """Inputs for tracing the graph: only their shapes matter."""
    observations = tuple(np.zeros((TRACED_ROWS, *own.shape), own.dtype) for own in policy.spec.observations)
    memories = np.zeros((TRACED_ROWS, policy.memory_size), np.float32)
    return tuple(map(torch.from_numpy, graph_inputs(policy.spec, observations, None, memories).values()))


def _silence() -> None:
    """Ignore the known warnings from now on.

    Not with `catch_warnings`, which on leaving discards the filters that another thread has set meanwhile; and only
    once, since after each change of the filters Python repeats the warnings it has already shown.
    """
    for message, category, module in _KNOWN_WARNINGS:
        patterns = re.compile(message, re.IGNORECASE), re.compile(module) if module else None
        if ("ignore", patterns[0], category, patterns[1], 0) not in warnings.filters:
            warnings.filterwarnings("ignore", message, category, module)
