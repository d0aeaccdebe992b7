"""A policy's weights become an ONNX file, after it was seen to act as the policy does."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.errors import ExportError
from engine.learning.networks.exported import CONSTANT_OUTPUTS, ExportedPolicy, input_names, output_names
from engine.learning.networks.mlp import Activation
from engine.running.disk import write_atomically
from engine.running.export_check import check
from engine.running.onnx_graph import OnnxGraph
from engine.specs import BehaviorSpec, Weights

OPSET = 15  # every runtime of the last years reads it, Unity's included
DYNAMO_OPSET = 18  # the oldest that torch's newer exporter writes without converting
TRACED_ROWS = 2  # torch.export takes a dimension of 1 for a constant

_KNOWN_WARNINGS: tuple[tuple[str, type[Warning]], ...] = (
    ("You are using the legacy TorchScript-based ONNX export", DeprecationWarning),
    ("The feature will be removed. Please remove usage of this function", DeprecationWarning),  # torch calls its own
)
_KNOWN_DYNAMO_WARNINGS: tuple[tuple[str, type[Warning]], ...] = (
    ("`isinstance\\(treespec, LeafSpec\\)` is deprecated", FutureWarning),  # torch uses its own old name
    ("# The axis name: batch will not be used", UserWarning),  # several inputs share the batch
)
_DYNAMO_LOGGERS = ("torch.onnx", "onnx_ir", "onnxscript")


class PolicyExporter:
    """Lives in the saver thread; torch exports one policy at a time. Keeps nothing between two exports."""

    def __init__(self, spec: BehaviorSpec, activation: Activation, dynamo: bool = False):
        """dynamo: torch's newer exporter. It needs onnxscript and some seconds, and patches torch while it works: not
        beside a thread that trains."""
        self._spec = spec
        self._activation: Activation = activation
        self._dynamo = dynamo

    def export(self, weights: Weights, paths: Sequence[Path]) -> float:
        """Replace every path by a graph that acts with these weights; return its largest difference from them.

        The difference is in units of the largest number in the network, or of 1. Takes 0.03 s for a small network and
        0.15 s for three layers of 512, the first time 0.3 s more for imports. Raises ExportError when the graph cannot
        be made, differs, or cannot be written; until it has passed every check, no path is touched.
        """
        for name, array in weights.arrays.items():
            if not np.isfinite(array).all():
                raise ExportError(f"{self._spec.name}: {name} holds a number that is not finite")
        policy = ExportedPolicy(self._spec, self._activation, weights.arrays)
        try:
            content = _dynamo_graph(policy) if self._dynamo else _torchscript_graph(policy)
        except RuntimeError as error:
            raise ExportError(f"{self._spec.name}: torch cannot export this policy: {_first_line(error)}") from error
        try:
            difference = check(OnnxGraph(content), weights, policy)
        except ExportError as error:
            raise ExportError(f"{self._spec.name}: {error}") from error
        for path in paths:
            try:
                write_atomically(path, content)
            except OSError as error:
                raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error
        return difference


def _torchscript_graph(policy: ExportedPolicy) -> bytes:
    inputs, outputs = input_names(policy.spec), output_names(policy.spec.actions)
    per_agent = [*inputs, *(name for name in outputs if name not in CONSTANT_OUTPUTS)]
    content = io.BytesIO()
    _silence(_KNOWN_WARNINGS)
    with torch.no_grad():
        torch.onnx.export(
            policy,
            _examples(policy.spec),
            content,  # type: ignore[arg-type]  # this exporter writes to any file, its signature names paths only
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: {0: "batch"} for name in per_agent},
            opset_version=OPSET,
            dynamo=False,
        )
    return content.getvalue()


def _dynamo_graph(policy: ExportedPolicy) -> bytes:
    inputs = _examples(policy.spec)
    _silence(_KNOWN_DYNAMO_WARNINGS)
    with torch.no_grad(), _quiet(_DYNAMO_LOGGERS):
        program = torch.onnx.export(
            policy,
            inputs,
            input_names=input_names(policy.spec),
            output_names=output_names(policy.spec.actions),
            dynamic_shapes=(tuple({0: torch.export.Dim("batch")} for _ in inputs),),
            opset_version=DYNAMO_OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None, "torch returns the program it was not told to write"
    content: bytes = program.model_proto.SerializeToString()
    return content


def _first_line(error: RuntimeError) -> str:
    """torch appends whole graphs."""
    return str(error).partition("\n")[0]


def _examples(spec: BehaviorSpec) -> tuple[Tensor, ...]:
    """What the graph is traced with: only the shapes matter."""
    observations = [torch.zeros(TRACED_ROWS, *observation.shape) for observation in spec.observations]
    masks = [torch.ones(TRACED_ROWS, spec.actions.mask_size)] if spec.actions.branches else []
    return (*observations, *masks)


def _silence(known: tuple[tuple[str, type[Warning]], ...]) -> None:
    """Ignore these warnings from now on, and no other.

    Not `catch_warnings`: leaving it puts back the filters of its beginning, also over those that another thread has
    set meanwhile. And only once, since each change of the filters lets Python repeat the warnings it has shown.
    """
    for message, category in known:
        if ("ignore", re.compile(message, re.IGNORECASE), category, None, 0) not in warnings.filters:
            warnings.filterwarnings("ignore", message, category)


@contextmanager
def _quiet(loggers: Sequence[str]) -> Iterator[None]:
    """Loggers that say nothing below an error."""
    levels = [(logger, logger.level) for logger in map(logging.getLogger, loggers)]
    try:
        for logger, _ in levels:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in levels:
            logger.setLevel(level)
