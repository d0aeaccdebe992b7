"""One update of behavioral cloning beside mlagents 1.1.0, with the same weights and demonstrations, in float64.

What is compared is the loss of a mini-batch and its gradient, with what ML-Agents draws made equal: of PPO's actions
one standard deviation to either side, whose mean error is the one that rl-tui computes. PPO's demonstrated actions are
given to ML-Agents in the unit of its policy, three times those of the environment (docs/mlagents-differences.md).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.acting.distributions import before_bounds
from rl_tui.engine.learning.cloning.imitation import ClonedActor, ClonedSteps, Imitation
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatParameters, FlatPart, views
from rl_tui.engine.learning.optimization import GradientStep
from rl_tui.engine.learning.sync import ONE_RANK
from rl_tui.engine.specs import ActionSpec, Float32, ObservationSpec
from tests.benchmarks.peer_python import ask, fault_of, gradient_difference
from tests.benchmarks.tables import table, verdict

COLUMNS, HIDDEN, LENGTH, MEMORY, SEQUENCES = 7, 32, 8, 16, 16
LARGEST = 1e-5  # of a gradient, as a share of the largest number of its array
ACTIONS = {"continuous": ActionSpec(3), "discrete": ActionSpec(0, (4, 2)), "hybrid": ActionSpec(2, (3, 2))}
LAYER = "network_body._body_endoder.seq_layers"  # ML-Agents' spelling
MEAN, SPREAD = "action_model._continuous_distribution.mu", "action_model._continuous_distribution.log_sigma"
BRANCH = "action_model._discrete_distribution.branches"


@dataclass(frozen=True)
class Case:
    """A policy and demonstrations, drawn by a seed."""

    kind: str
    is_squashed: bool
    has_memory: bool
    num_layers: int
    seed: int

    @property
    def name(self) -> str:
        """In the table."""
        memory = ", memory" if self.has_memory else ""
        return f"{self.kind}, {'squashed (SAC)' if self.is_squashed else 'normal (PPO)'}{memory}"

    @property
    def actions(self) -> ActionSpec:
        """Of the behavior."""
        return ACTIONS[self.kind]

    @property
    def network(self) -> NetworkSettings:
        """Of the actor."""
        memory = {"sequence_length": LENGTH, "memory_size": MEMORY} if self.has_memory else None
        return NetworkSettings.model_validate({"hidden_units": HIDDEN, "num_layers": self.num_layers, "memory": memory})


@dataclass(frozen=True)
class Update:
    """A case as both learn it: the loss and the gradients of rl-tui by its names, and what ML-Agents is asked."""

    loss: float
    gradients: Mapping[str, np.ndarray[Any, Any]]
    asked: dict[str, Any]
    names: Mapping[str, list[tuple[str, slice]]]


def update(case: Case) -> Update:
    """One mini-batch by rl-tui."""
    random, actions = np.random.default_rng(case.seed), case.actions
    layout = FeatureLayout.of((ObservationSpec("seen", (COLUMNS,)),), case.network)
    actor = Actor(random, layout, actions, case.network, case.is_squashed).double()
    if actor.log_sigma is not None:
        actor.log_sigma.data.copy_(torch.from_numpy(random.uniform(-1, 0.5, actions.continuous)))
    flat = FlatParameters(actor, torch.device("cpu"))
    flat.parameters += 0.1 * torch.from_numpy(random.standard_normal(len(flat.parameters)))
    part = FlatPart.of(flat.parameters, flat.gradient, flat.shapes)
    rows = SEQUENCES * LENGTH
    observations = random.standard_normal((rows, COLUMNS)).astype(np.float32)
    bounded = random.uniform(-1, 1, (rows, actions.continuous)).astype(np.float32)
    choices = np.array([random.integers(0, size, rows) for size in actions.branches], np.int64).reshape(-1, rows).T
    noise: Float32 = random.standard_normal((rows, actions.continuous), np.float32)
    continuous = before_bounds(bounded, case.is_squashed)
    imitation = Imitation(
        ClonedActor(actor, part, layout.split), GradientStep(part, 1e-8, None), np.random.SeedSequence(0), ONE_RANK
    )
    drawn = noise if case.is_squashed and actions.continuous else None
    lengths = np.full(SEQUENCES, LENGTH) if case.has_memory else np.ones(rows, np.int64)
    loss = imitation.loss(ClonedSteps((observations,), continuous, choices, lengths, noise=drawn)).total
    loss.backward()  # type: ignore[no-untyped-call]  # torch's signature
    names = _peer_names(case, flat.shapes)
    asked = {
        "columns": COLUMNS,
        "continuous": actions.continuous,
        "branches": actions.branches,
        "hidden_units": HIDDEN,
        "num_layers": case.num_layers,
        "memory_size": MEMORY if case.has_memory else 0,
        "sequence_length": LENGTH if case.has_memory else 1,
        "is_squashed": case.is_squashed,
        "weights": {theirs: flat.arrays()[own][of].tolist() for own, parts in names.items() for theirs, of in parts},
        "observations": observations.tolist(),
        "actions": continuous.tolist(),
        "choices": choices.tolist(),
        "draws": [1.0, -1.0] if drawn is None else [drawn.tolist()],
    }
    return Update(loss.item(), views(flat.gradient.numpy(), flat.shapes), asked, names)


def _peer_names(case: Case, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, list[tuple[str, slice]]]:
    """By rl-tui's name of an array: ML-Agents' names of its parts, and their rows."""
    found: dict[str, list[tuple[str, slice]]] = {}
    for own in shapes:
        kind, every = ("bias" if "bias" in own else "weight"), slice(None)
        if own == "log_sigma":
            found[own] = [(SPREAD, every)]
        elif own.startswith("body.core.layers."):
            found[own] = [(f"{LAYER}.{2 * int(own.rpartition('.')[2])}.{kind}", every)]
        elif own.startswith("body.core.memories."):
            found[own] = [(f"network_body.lstm.lstm.{own.rpartition('.')[2]}", every)]
        else:
            found[own] = list(_heads(case, kind))
    return found


def _heads(case: Case, kind: str) -> Iterator[tuple[str, slice]]:
    """The parts of the head: means, the spread where it depends on observations, and branches."""
    sizes = [(f"{MEAN}.{kind}", case.actions.continuous)]
    sizes += [(f"{SPREAD}.{kind}", case.actions.continuous)] if case.is_squashed else []
    sizes += [(f"{BRANCH}.{number}.{kind}", size) for number, size in enumerate(case.actions.branches)]
    begin = 0
    for name, size in sizes:
        if size:
            yield name, slice(begin, begin + size)
        begin += size


def differences(own: Update, peer: Mapping[str, Any]) -> tuple[float, float]:
    """Of the loss, relative, and the largest one of a gradient, relative to the largest number of its array."""
    return abs(own.loss / peer["loss"] - 1), gradient_difference(own.gradients, own.names, peer["gradients"])


def main() -> int:
    """1 if any gradient differs by more than LARGEST."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents_envs"):
        parser.error(f"--peer: {fault}")
    choices = itertools.product(ACTIONS, (False, True), (False, True))
    cases = [Case(*choice, num_layers=2, seed=chosen.seed + number) for number, choice in enumerate(choices)]
    updates = [update(case) for case in cases]
    peers = ask(python, Path(__file__).with_name("cloning_peer.py"), [own.asked for own in updates])
    found = [differences(own, peer) for own, peer in zip(updates, peers, strict=True)]
    rows = [(case.name, f"{loss:.1e}", f"{worst:.1e}") for case, (loss, worst) in zip(cases, found, strict=True)]
    print(table(("actor", "loss", "gradient"), rows))
    worst = max(gradient for _, gradient in found)
    print(f"largest relative difference of a gradient: {worst:.1e}: {verdict(worst <= LARGEST)}")
    return 0 if worst <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
