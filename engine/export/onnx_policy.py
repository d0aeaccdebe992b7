"""A policy that acts with nothing but an exported file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ExportError, NotSupportedError
from rl_tui.engine.export import graph_names as names
from rl_tui.engine.export.onnx_graph import OnnxGraph, Outputs, graph_inputs
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.specs import Actions, BehaviorSpec, Choice, DecisionSteps, Float32, State, Weights

Number = TypeVar("Number", bound=np.generic)


def read_graph(path: Path) -> OnnxGraph:
    """The graph in a file. Raises ExportError, naming the file, when it cannot be read."""
    try:
        with open(path, "rb", opener=partial(open_regular, follows_links=True)) as file:
            return OnnxGraph(file.read())
    except OSError as error:
        raise ExportError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ExportError as error:
        raise ExportError(f"{path}: {error}") from error


class OnnxPolicy:
    """Acts by a graph in onnxruntime, which samples with a random generator of its own.

    Log-probabilities are unknown (NaN), and its weights cannot be replaced.
    """

    def __init__(self, path: Path, spec: BehaviorSpec, is_deterministic: bool, graph: OnnxGraph | None = None):
        """is_deterministic: use the most likely actions, which a graph for Unity has in addition to sampled ones.

        graph: the file's, where it was read before. Raises ExportError, naming the file, when it cannot be read or does
        not fit the spec.
        """
        self.version = 0
        self._path = path
        self._spec = spec
        self._continuous = names.DETERMINISTIC_CONTINUOUS if is_deterministic else names.CONTINUOUS
        self._discrete = names.DETERMINISTIC_DISCRETE if is_deterministic else names.DISCRETE
        self._graph = graph or read_graph(path)
        sizes = self._graph.inputs.get(names.MEMORY_INPUT, (0,))
        self.memory_size = sizes[-1] if isinstance(sizes[-1], int) else 0
        self._try_out()

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every waiting agent. Raises ExportError, naming the file, when the graph cannot be run."""
        rows, actions = len(decisions.agent_ids), self._spec.actions
        if memories is None:
            memories = np.zeros((rows, self.memory_size), np.float32)
        inputs = graph_inputs(self._spec, decisions.observations, decisions.action_mask, memories)
        try:
            outputs = self._graph(inputs)
        except ExportError as error:
            raise ExportError(f"{self._path}: {error}") from error
        continuous = self._output(outputs, self._continuous, (rows, actions.continuous), np.float32)
        discrete = self._output(outputs, self._discrete, (rows, len(actions.branches)), np.int64)
        after = self._output(outputs, names.MEMORY, (rows, 1, self.memory_size), np.float32)
        unknown = np.full((rows, actions.num_columns), np.nan, np.float32)
        return Choice(Actions(continuous, discrete), continuous, unknown, after[:, 0] if self.memory_size else None)

    def load(self, weights: Weights) -> None:
        """Raise NotSupportedError: the file has its own weights."""
        raise NotSupportedError(f"{self._path}: an exported policy cannot load other weights")

    def state(self) -> State:
        """Nothing: onnxruntime does not expose its random generator."""
        return State()

    def load_state(self, state: State) -> None:
        """Nothing is read."""

    def _try_out(self) -> None:
        """Raise ExportError unless it acts for one agent whose observations are zero."""
        zeros = tuple(np.zeros((1, *own.shape), own.dtype) for own in self._spec.observations)
        self.act(DecisionSteps(np.zeros(1, np.int64), zeros, np.zeros(1, np.float32)))

    def _output(self, outputs: Outputs, name: str, shape: tuple[int, ...], dtype: type[Number]) -> NDArray[Number]:
        """The output of that name, checked; an empty array when the shape is empty."""
        if 0 in shape[1:]:
            return np.empty(shape, dtype)
        if name not in outputs:
            raise ExportError(f"{self._path}: must have the output {name}, got {', '.join(outputs)}")
        output = outputs[name]
        if output.shape != shape or output.dtype != dtype:
            found, expected = f"{output.dtype}{list(output.shape)}", f"{np.dtype(dtype)}{list(shape)}"
            raise ExportError(f"{self._path}: {name} must be {expected} for {self._spec.name}, got {found}")
        return output.astype(dtype, copy=False)
