"""A recurrent layer over packed sequences.

Shapes: B rows in S sequences of at most L rows, H inputs, M memory columns (M / 2 hidden units, then as many of the
cell).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from rl_tui.engine.learning.networks.flat import placed
from rl_tui.engine.specs import Int64


@dataclass(frozen=True, slots=True)
class Sequences:
    """How B rows are divided into sequences: those of a sequence are adjacent and in time order.

    lengths: i64[S], all >= 1, summing to B. memories: f32[S, M], before the first row of each; a numpy array for
    networks in numpy.
    """

    lengths: Int64
    memories: Tensor


class Memory(nn.Module):
    """A long short-term memory (Hochreiter and Schmidhuber 1997) with ML-Agents' initial weights.

    Xavier-uniform by gate; both biases of the forget gate begin at 1.
    """

    def __init__(self, random: np.random.Generator, inputs: int, memory_size: int):
        super().__init__()
        # parameters are views of one flat array, not in cuDNN's layout: it copies them and warns
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous", UserWarning)
        units = memory_size // 2
        self.units = units
        self.cell = nn.LSTM(inputs, units, batch_first=True, device="meta")
        for name, columns in (("ih", inputs), ("hh", units)):
            bound = float(np.sqrt(6 / (columns + units)))
            weights = random.uniform(-bound, bound, (4 * units, columns)).astype(np.float32)
            setattr(self.cell, f"weight_{name}_l0", nn.Parameter(torch.from_numpy(weights)))
            bias = torch.zeros(4 * units)
            bias[units : 2 * units] = 1  # torch orders the gates input, forget, cell, output
            setattr(self.cell, f"bias_{name}_l0", nn.Parameter(bias))

    def forward(self, rows: Tensor, sequences: Sequences) -> Tensor:
        """f32[B, M / 2] of f32[B, H]. Sequences are padded only while they are read."""
        padded, places = self._spread(rows, sequences.lengths)
        read, _ = self.cell(padded, self._split(sequences.memories))
        flat: Tensor = read.reshape(-1, self.units)
        return flat if places is None else flat.index_select(0, places)

    def read(self, rows: Tensor, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """`forward`, and the memories f32[S, M] after the last row of each sequence.

        Only without gradients as fast as `forward`: torch's packed sequences have no padding, but slow gradients.
        """
        padded, places = self._spread(rows, sequences.lengths)
        if places is None:
            read, after = self.cell(padded, self._split(sequences.memories))
            return read.reshape(-1, self.units), self._joined(after)
        lengths = torch.from_numpy(sequences.lengths)
        packed = rnn.pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
        read, after = self.cell(packed, self._split(sequences.memories))
        padded, _ = rnn.pad_packed_sequence(read, batch_first=True)
        return padded.reshape(-1, self.units).index_select(0, places), self._joined(after)

    def step(self, rows: Tensor, memories: Tensor) -> tuple[Tensor, Tensor]:
        """f32[B, M / 2] and the memories f32[B, M] after one row each, of f32[B, H] and f32[B, M]."""
        read, after = self.cell(rows[:, None], self._split(memories))
        return read[:, 0], self._joined(after)

    def _spread(self, rows: Tensor, lengths: Int64) -> tuple[Tensor, Tensor | None]:
        """f32[S, L, H], and the index of each row in it with the first two axes joined; None if there is no padding."""
        count, longest = len(lengths), int(lengths.max())
        if count * longest == len(rows):
            return rows.reshape(count, longest, -1), None
        starts = np.cumsum(lengths) - lengths
        place = np.repeat(np.arange(count) * longest - starts, lengths) + np.arange(len(rows))
        places = placed(place, rows.device)
        padded = self._padding(rows, count * longest).index_copy_(0, places, rows)
        return padded.view(count, longest, -1), places

    def _padding(self, rows: Tensor, count: int) -> Tensor:
        """f32[count, H], of any finite numbers."""
        return rows.new_zeros(count, rows.shape[1])

    def _split(self, memories: Tensor) -> tuple[Tensor, Tensor]:
        return memories[None, :, : self.units].contiguous(), memories[None, :, self.units :].contiguous()

    def _joined(self, state: tuple[Tensor, Tensor]) -> Tensor:
        hidden, cell = state
        return torch.cat([hidden[0], cell[0]], 1)
