"""One update of MA-POCA beside mlagents 1.1.0, with the same weights and rows, in float64.

Groups have one to four agents at a time; some end early, some join late, some act less often. What is compared is the
gradient of a mini-batch and what is reported, with `baseline_clip: epsilon`, ML-Agents' way. The mates of a row are
those that rl-tui finds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.networks.flat import views
from rl_tui.engine.learning.on_policy.group_networks import GroupActorCritic
from rl_tui.engine.learning.on_policy.minibatches import Part
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.poca.trainer import POCATrainer
from rl_tui.engine.learning.sync import ONE_RANK
from rl_tui.engine.specs import ActionSpec
from tests.benchmarks.peer_python import ask, fault_of, gradient_difference
from tests.benchmarks.tables import table, verdict
from tests.learning.poca.group_episodes import SPEC, Groups

HIDDEN, LAYERS, GROUPS, STEPS = 16, 2, 6, 12
BETA, EPSILON = 0.01, 0.2
LARGEST = 1e-5  # of a gradient, as a share of the largest number of its array
ACTIONS = {"continuous": ActionSpec(3), "discrete": ActionSpec(0, (4, 2)), "hybrid": ActionSpec(2, (3, 2))}
EVERY = slice(None)


class InDouble(POCATrainer):
    """In float64, with other weights than it begins with."""

    def _make_network(self, device: torch.device) -> GroupActorCritic:
        network = GroupActorCritic(super()._make_network(device).networks.double(), device)
        network.parameters += 0.1 * torch.from_numpy(self._random.standard_normal(len(network.parameters)))
        return network


@dataclass(frozen=True)
class Update:
    """A mini-batch as rl-tui learns it, and what ML-Agents is asked. names: its own by rl-tui's, with their rows.
    sizes: of the groups."""

    reported: Mapping[str, float]
    gradients: Mapping[str, np.ndarray[Any, Any]]
    asked: dict[str, Any]
    names: Mapping[str, list[tuple[str, slice]]]
    sizes: set[int]


def update(of_actions: str, seed: int) -> Update:
    """One mini-batch by rl-tui."""
    spec = replace(SPEC, actions=ACTIONS[of_actions])
    settings = {
        "trainer_type": "poca",
        "hyperparameters": {"beta": BETA, "epsilon": EPSILON, "baseline_clip": "epsilon"},
        "network_settings": {"hidden_units": HIDDEN, "num_layers": LAYERS},
        "max_steps": 10**9,
    }
    trainer = InDouble(spec, BehaviorConfig.model_validate(settings), seed, torch.device("cpu"))
    block = Groups(seed, GROUPS, spec).experience(STEPS)
    rollout = Rollout(block, trainer._evaluate(block))
    trainer._begin_update(rollout)
    prepared, random = trainer._prepare(rollout, ONE_RANK), np.random.default_rng(seed)
    for name in ("values", "baselines", "log_probs"):  # so that some are clipped
        column = prepared.columns[name]
        column += 0.3 * torch.from_numpy(random.standard_normal(column.shape))
    minibatch = prepared.minibatch(Part(np.arange(block.num_rows), None))
    loss = trainer._loss(trainer._outputs(minibatch), minibatch, trainer._coefficients(0))
    trainer._network.backward(loss.gradients)  # type: ignore[arg-type]  # of a group's outputs
    arrays = views(trainer._network.parameters.numpy(), trainer._network.shapes)
    names = dict(_peer_names(spec.actions))
    asked = {
        "columns": 3,
        "continuous": spec.actions.continuous,
        "branches": spec.actions.branches,
        "hidden_units": HIDDEN,
        "num_layers": LAYERS,
        "beta": BETA,
        "epsilon": EPSILON,
        "largest": trainer._largest,
        "weights": {theirs: arrays[own][of].tolist() for own, parts in names.items() for theirs, of in parts},
        "rows": list(_rows(rollout, {name: column.numpy() for name, column in prepared.columns.items()})),
    }
    reported = {tag: abs(float(value)) for tag, value in loss.terms.items() if tag.startswith("Losses/")}
    gradients = views(trainer._network.gradient.numpy(), trainer._network.shapes)
    return Update(reported, gradients, asked, names, set(rollout.joint_steps.sizes.tolist()))


def _rows(rollout: Rollout, columns: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Each row as ML-Agents' buffer has it. columns: of the mini-batch."""
    block = rollout.experience
    acts = [
        {"seen": seen.tolist(), "continuous": continuous.tolist(), "discrete": discrete.tolist()}
        for seen, continuous, discrete in zip(
            block.observations[0], block.continuous_actions, block.discrete_actions, strict=True
        )
    ]
    for row, act in enumerate(acts):
        yield {
            **act,
            "mates": [acts[mate] for mate in rollout.joint_steps.mates(row)],
            "log_probs": columns["log_probs"][row].tolist(),
            "advantage": float(columns["advantage"][row]),
            "baseline": float(columns["baselines"][row, 0]),
            "return": float(columns["returns"][row, 0]),
        }


def _peer_names(actions: ActionSpec) -> Iterator[tuple[str, list[tuple[str, slice]]]]:
    """ML-Agents' names of every array of the networks, and their rows of it."""
    body, action_model = "critic.network_body.", "actor.action_model."
    for own, kind in (("weights", "weight"), ("biases", "bias")):
        for layer in range(LAYERS):
            place = f"seq_layers.{2 * layer}.{kind}"
            yield f"actor.body.core.layers.{own}.{layer}", [(f"actor.network_body._body_endoder.{place}", EVERY)]
            yield f"critic.layers.{own}.{layer}", [(f"{body}linear_encoder.{place}", EVERY)]
        yield f"critic.observed.{kind}", [(f"{body}obs_encoder.self_ent_encoder.seq_layers.0.{kind}", EVERY)]
        yield f"critic.acted.{kind}", [(f"{body}obs_action_encoder.self_ent_encoder.seq_layers.0.{kind}", EVERY)]
        thirds = [slice(begin, begin + HIDDEN) for begin in range(0, 3 * HIDDEN, HIDDEN)]
        yield (
            f"critic.attention.projections.{kind}",
            [(f"{body}self_attn.fc_{name}.{kind}", of) for name, of in zip("qkv", thirds, strict=True)],
        )
        yield f"critic.attention.result.{kind}", [(f"{body}self_attn.fc_out.{kind}", EVERY)]
        yield f"critic.values.{kind}", [(f"critic.value_heads.value_heads.extrinsic.{kind}", EVERY)]
        head, begin = [], actions.continuous
        if actions.continuous:
            head.append((f"{action_model}_continuous_distribution.mu.{kind}", slice(0, begin)))
        for branch, size in enumerate(actions.branches):
            head.append((f"{action_model}_discrete_distribution.branches.{branch}.{kind}", slice(begin, begin + size)))
            begin += size
        yield f"actor.head.{kind}", head
    if actions.continuous:
        yield "actor.log_sigma", [(f"{action_model}_continuous_distribution.log_sigma", EVERY)]


def main() -> int:
    """1 if any gradient differs by more than LARGEST."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents"):
        parser.error(f"--peer: {fault}")
    updates = [update(actions, chosen.seed) for actions in ACTIONS]
    peers = ask(python, Path(__file__).with_name("group_update_peer.py"), [own.asked for own in updates])
    rows, worst = [], 0.0
    for actions, own, peer in zip(ACTIONS, updates, peers, strict=True):
        reported = max(abs(number / peer["reported"][tag] - 1) for tag, number in own.reported.items())
        gradient = gradient_difference(own.gradients, own.names, peer["gradients"])
        rows.append((actions, f"{len(own.asked['rows'])}", f"{reported:.1e}", f"{gradient:.1e}"))
        assert own.sizes >= {1, 2, 3, 4}, own.sizes
        worst = max(worst, reported, gradient)
    print(table(("actions", "rows", "reported", "gradient"), rows))
    print(f"largest relative difference: {worst:.1e}: {verdict(worst <= LARGEST)}")
    return 0 if worst <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
