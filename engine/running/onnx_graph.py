"""An ONNX graph that computes: onnx and onnxruntime are imported when the first one is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import ExportError
from engine.specs import Float32

Outputs: TypeAlias = Mapping[str, NDArray[np.generic]]

# Since its release 1.29 onnxruntime reports every session to its makers, unless this stands here when it is imported.
# Set while there is one thread only: changing the environment beside a thread that reads it is not safe.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_FATAL = 4  # onnxruntime's own log goes to file descriptor 2, which may be a screen; errors are raised as well


class OnnxGraph:
    """A verified graph in onnxruntime, on one thread of the CPU. The first one takes 0.3 s of imports."""

    def __init__(self, content: bytes):
        """Raises ExportError when the graph is not valid ONNX, or not for onnxruntime."""
        import onnx
        from onnxruntime import InferenceSession, SessionOptions
        from onnxruntime.capi import onnxruntime_pybind11_state as ort

        self._errors = (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException)
        try:
            onnx.checker.check_model(content, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise ExportError(f"the exported graph is not valid: {error}") from error
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _FATAL
        try:
            self._session = InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except self._errors as error:
            raise ExportError(f"onnxruntime refuses the exported graph: {error}") from error
        self._output_names = [output.name for output in self._session.get_outputs()]

    def __call__(self, inputs: Mapping[str, Float32]) -> Outputs:
        """Every output by name, in the graph's order. Raises ExportError when the graph does not take these inputs."""
        try:
            return dict(zip(self._output_names, self._session.run(None, dict(inputs)), strict=True))
        except self._errors as error:
            raise ExportError(f"onnxruntime cannot run the exported graph: {error}") from error
