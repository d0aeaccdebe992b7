"""ONNX graphs in onnxruntime. onnx and onnxruntime are imported with the first graph.

Shapes: N agents, S mask columns, M memory columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ExportError
from rl_tui.engine.export.graph_names import input_names
from rl_tui.engine.specs import BehaviorSpec, Bool, Float32, Observation, Observations, ObservationSpec

Outputs: TypeAlias = dict[str, NDArray[Any]]  # float32 or int64

# From release 1.29 on, onnxruntime reports every session to its vendor unless this is set when it is imported. It is
# set while there is only one thread, because changing the environment while another thread reads it is not safe.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_FATAL = 4  # onnxruntime logs to file descriptor 2, which may be a screen; its errors are raised as well


class OnnxGraph:
    """A verified graph in onnxruntime, on one thread of the CPU. The first one takes 0.3 s of imports."""

    def __init__(self, content: bytes):
        """Raises ExportError when the graph is not valid ONNX or onnxruntime cannot load it."""
        import onnx
        from onnxruntime import InferenceSession, SessionOptions
        from onnxruntime.capi import onnxruntime_pybind11_state as ort

        self._errors = (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException)
        try:
            onnx.checker.check_model(content, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
            raise ExportError(f"the graph must be valid ONNX: {_in_one_line(error)}") from error
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _FATAL
        try:
            self._session = InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except self._errors as error:
            raise ExportError(f"onnxruntime cannot load the graph: {_in_one_line(error)}") from error
        # the shape of every input by name; a dimension of any size has a name instead of a number
        self.inputs: dict[str, list[int | str]] = {value.name: value.shape for value in self._session.get_inputs()}
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.outputs = [value.name for value in self._session.get_outputs()]

    def __call__(self, inputs: Mapping[str, Float32]) -> Outputs:
        """Every output by name, in the graph's order; inputs that the graph does not use are ignored.

        Raises ExportError when the graph does not accept these inputs.
        """
        used = {name: array for name, array in inputs.items() if name in self.inputs}
        try:
            return dict(zip(self.outputs, self._session.run(None, used), strict=True))
        except (*self._errors, ValueError) as error:  # the latter where an input is missing
            raise ExportError(f"onnxruntime cannot run the graph: {_in_one_line(error)}") from error


def graph_inputs(
    spec: BehaviorSpec, observations: Observations, allowed: Bool | None, memories: Float32
) -> dict[str, Float32]:
    """The inputs of a policy's graph by name. allowed: bool[N, S], None for everything. memories: f32[N, M]."""
    arrays = [_as_input(array, own) for array, own in zip(observations, spec.observations, strict=True)]
    if spec.actions.branches:
        everything = np.ones((len(memories), spec.actions.mask_size), np.float32)
        arrays.append(everything if allowed is None else allowed.astype(np.float32))
    if memories.shape[1]:
        arrays.append(memories[:, None])
    return dict(zip(input_names(spec, memories.shape[1]), arrays, strict=True))


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _as_input(observation: Observation, spec: ObservationSpec) -> Float32:
    """The observation as Unity sends it: channels first, bytes scaled to 0 to 1."""
    array = observation
    if spec.kind == "image":
        array = np.ascontiguousarray(array.transpose(0, 3, 1, 2))
    return array.astype(np.float32) / np.float32(255) if spec.dtype == "uint8" else array
