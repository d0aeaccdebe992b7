"""The layers of a module's flat parameters, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.learning.acting.layers import Activation, layer_names
from rl_tui.engine.learning.networks.flat import FlatParameters, views
from rl_tui.engine.learning.networks.numpy.lstm import LSTM, Cell
from rl_tui.engine.learning.networks.numpy.mlp import MLP
from rl_tui.engine.specs import Float32

CELL = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")  # torch's names of a recurrent layer's parameters


class NamedLayers:
    """Finds the layers of a torch module over vectors by name; all arrays are views of its flat ones."""

    def __init__(self, flat: FlatParameters, activation: Activation):
        """flat: on the CPU."""
        self.parameters: dict[str, Float32] = views(flat.parameters.numpy(), flat.shapes)
        self.gradients: dict[str, Float32] = views(flat.gradient.numpy(), flat.shapes)
        self._activation: Activation = activation

    def body(self, name: str) -> MLP:
        """The hidden layers of a body."""
        return self._layers(layer_names(self.parameters, f"{name}.core.layers."), activate_last=True)

    def single(self, name: str) -> MLP:
        """A linear layer."""
        return self._layers([(f"{name}.weight", f"{name}.bias")], activate_last=False)

    def network(self, prefix: str = "", twin: int | None = None) -> MLP:
        """The hidden layers and the head of an actor, a state critic (prefix "body.") or one of twin critics."""
        names = layer_names(self.parameters, f"{prefix}core.layers.")
        names.append(("head.weight", "head.bias") if twin is None else ("head.weights.0", "head.biases.0"))
        return self._layers(names, activate_last=False, twin=twin)

    def memory(self, bodies: Sequence[str]) -> LSTM:
        """The memories of bodies side by side."""
        own, gradients = (
            [self._cell(named, f"{name}.core.memories.0.cell") for name in bodies]
            for named in (self.parameters, self.gradients)
        )
        return LSTM(own, gradients)

    def _layers(self, names: Sequence[tuple[str, str]], activate_last: bool, twin: int | None = None) -> MLP:
        part = slice(None) if twin is None else twin
        own, gradients = (
            [(named[weight][part], named[bias][part]) for weight, bias in names]
            for named in (self.parameters, self.gradients)
        )
        return MLP(own, gradients, self._activation, activate_last)

    def _cell(self, named: dict[str, Float32], cell: str) -> Cell:
        inputs, units, bias, other_bias = (named[f"{cell}.{part}"] for part in CELL)
        return inputs, units, bias, other_bias
