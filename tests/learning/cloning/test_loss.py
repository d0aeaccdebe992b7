"""The loss of cloning and its gradients, against the same written out by the names of the parameters, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.cloning.imitation import ClonedActor, Imitation, demonstrated_steps
from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatParameters, FlatPart
from rl_tui.engine.learning.optimization import GradientStep
from rl_tui.engine.learning.sync import ONE_RANK
from tests.learning.demonstrations import SPECS, Recorded, random_demonstrations

LENGTHS, LONGEST, MEMORY = [11, 7, 12], 4, 6


def imitation(kind: str, is_squashed: bool, has_memory: bool) -> tuple[Imitation, FlatParameters]:
    """One in float64, whose spread is not the same for all dimensions."""
    settings: dict[str, object] = {"hidden_units": 8, "num_layers": 1}
    if has_memory:
        settings["memory"] = {"memory_size": MEMORY, "sequence_length": LONGEST}
    network, spec = NetworkSettings.model_validate(settings), SPECS[kind]
    layout = FeatureLayout.of(spec.observations, network)
    actor = Actor(np.random.default_rng(1), layout, spec.actions, network, is_squashed).double()
    if actor.log_sigma is not None:
        actor.log_sigma.data.copy_(torch.tensor([-0.5, 0.25]))
    flat = FlatParameters(actor, torch.device("cpu"))
    part = FlatPart.of(flat.parameters, flat.gradient, flat.shapes)
    cloned = ClonedActor(actor, part, layout.split)
    return Imitation(cloned, GradientStep(part, 1e-8, None), np.random.SeedSequence(0), ONE_RANK), flat


def written_out(
    flat: FlatParameters,
    kind: str,
    is_squashed: bool,
    steps: Recorded,
    rows: np.ndarray,
    lengths: list[int],
    noise: Tensor,
) -> tuple[float, dict[str, Tensor]]:
    """ML-Agents' loss of these rows by plain operations, averaged over noise and its opposite; its gradients."""
    own = {name: torch.tensor(array, requires_grad=True) for name, array in flat.arrays().items()}
    seen = torch.cat([torch.from_numpy(column[rows]).double() for column in steps.observations], 1)
    hidden = functional.silu(seen @ own["body.core.layers.weights.0"].T + own["body.core.layers.biases.0"])
    if "body.core.memories.0.cell.weight_ih_l0" in own:
        hidden = torch.cat([_remembered(own, part) for part in hidden.split(lengths)])
    head = hidden @ own["head.weight"].T + own["head.bias"]
    size = SPECS[kind].actions.continuous
    losses = []
    for sign in (1, -1) if not is_squashed else (1,):
        loss, begin = torch.zeros((), dtype=torch.float64), size
        if size and is_squashed:
            begin, sigma = 2 * size, head[:, size : 2 * size].exp()
            drawn = torch.tanh(head[:, :size] + sigma * noise)
            loss = loss + ((drawn - torch.from_numpy(steps.continuous[rows]).double()) ** 2).mean()
        elif size:
            drawn = head[:, :size] + own["log_sigma"].exp() * sign
            loss = loss + ((drawn - 3 * torch.from_numpy(steps.continuous[rows]).double()) ** 2).mean()
        if SPECS[kind].actions.branches:
            first, second = head[:, begin : begin + 3], head[:, begin + 3 :]
            chosen = torch.from_numpy(steps.discrete[rows])
            picked = [of.log_softmax(1)[torch.arange(len(rows)), chosen[:, i]] for i, of in enumerate((first, second))]
            loss = loss - torch.cat(picked).mean()
        losses.append(loss)
    total = torch.stack(losses).mean()
    total.backward()
    return total.item(), {name: of.grad for name, of in own.items() if of.grad is not None}


def _remembered(own: dict[str, Tensor], rows: Tensor) -> Tensor:
    """A sequence read from zero, by the equations of an LSTM (torch.nn.LSTM)."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    inputs, units, bias, other = (own[f"body.core.memories.0.cell.{name}_l0"] for name in names)
    hidden = cell = torch.zeros(MEMORY // 2, dtype=torch.float64)
    read = []
    for row in rows:
        i, f, g, o = (inputs @ row + bias + units @ hidden + other).chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        read.append(hidden)
    return torch.stack(read)


@pytest.mark.parametrize("has_memory", [False, True], ids=["plain", "memory"])
@pytest.mark.parametrize("is_squashed", [False, True], ids=["normal", "squashed"])
@pytest.mark.parametrize("kind", SPECS)
def test_loss_and_gradients_are_those_written_out(kind: str, is_squashed: bool, has_memory: bool) -> None:
    ours, flat = imitation(kind, is_squashed, has_memory)
    steps = random_demonstrations(SPECS[kind], LENGTHS)
    sequences = DemonstratedSequences.of(steps.episodes, LONGEST if has_memory else 1)
    chosen = np.random.default_rng(2).permutation(len(sequences))[:6]
    rows, lengths = sequences.rows(chosen), sequences.lengths[chosen].tolist()
    noise = np.random.default_rng(4).standard_normal((len(rows), 2), np.float32)
    flat_before = flat.gradient.clone()
    drawn = noise if is_squashed and kind != "discrete" else None
    loss = ours.loss(demonstrated_steps(steps, sequences, chosen, is_squashed, drawn))
    loss.total.backward()
    expected, gradients = written_out(flat, kind, is_squashed, steps, rows, lengths, torch.from_numpy(noise).double())
    assert not flat_before.any()
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    own = dict(zip(flat.shapes, flat.gradient.split([int(np.prod(s)) for s in flat.shapes.values()]), strict=True))
    assert own.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(own[name].reshape(gradient.shape), gradient, rtol=1e-5, atol=1e-7, msg=name)


def test_the_mean_error_weighs_rows_alike_in_however_many_parts_they_are_read() -> None:
    ours, _ = imitation("hybrid", False, True)
    steps = random_demonstrations(SPECS["hybrid"], LENGTHS)
    sequences = DemonstratedSequences.of(steps.episodes, LONGEST)
    every = np.arange(len(sequences))
    whole = ours.loss(demonstrated_steps(steps, sequences, every, False)).error.item()
    assert ours.error(steps, sequences, every, 100) == pytest.approx(whole, rel=1e-6)
    steps.reads.clear()
    assert ours.error(steps, sequences, every, 8) == pytest.approx(whole, rel=1e-6)
    assert len(steps.reads) > 3
    assert sum(map(len, steps.reads)) == steps.num_steps


def test_learning_brings_the_policy_to_what_was_demonstrated() -> None:
    """The mean is three times the action, which the environment then gets, and the spread is gone."""
    ours, _ = imitation("continuous", False, False)
    steps = random_demonstrations(SPECS["continuous"], [40])
    steps.continuous[:] = [0.5, -0.9]
    sequences = DemonstratedSequences.of(steps.episodes, 1)
    error, spread = ours.learn(steps, sequences, Passes(batch_size=20, count=600, most_steps=0), 1e-2, lambda: True)
    assert error < 1
    assert spread < 0.2
    end = ours.loss(demonstrated_steps(steps, sequences, np.arange(40), False))
    assert end.error.item() < 1e-3
    assert end.spread.item() < 0.02
