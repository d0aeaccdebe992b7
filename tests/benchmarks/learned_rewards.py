"""One update of curiosity, RND and GAIL beside mlagents 1.1.0, with the same weights and steps, in float64.

What is compared is the gradient of a mini-batch, what is reported and what is paid, with what is drawn made equal. The
continuous actions that GAIL's discriminator sees are given to ML-Agents in the unit of the environment
(docs/mlagents-differences.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.networks.flat import FlatParameters, views
from rl_tui.engine.learning.rewards.base import RewardContext
from rl_tui.engine.learning.rewards.gail import GAILReward
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.rewards.streams import require_signal
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import CUT, ActionSpec, BehaviorSpec, ObservationSpec
from tests.benchmarks.peer_python import ask, fault_of, gradient_difference
from tests.benchmarks.tables import table, verdict
from tests.fakes import RandomPolicy
from tests.learning.demonstrations import recorded
from tests.learning.rollouts import acted

COLUMNS, HIDDEN, LAYERS, ROWS, STRENGTH = 7, 32, 2, 64, 0.7
LARGEST = 1e-5  # of a gradient, as a share of the largest number of its array
ACTIONS = {"continuous": ActionSpec(3), "discrete": ActionSpec(0, (4, 2)), "hybrid": ActionSpec(2, (3, 2))}
KINDS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "curiosity": ("curiosity", {}),
    "RND": ("rnd", {}),
    "GAIL": ("gail", {}),
    "GAIL, use_actions": ("gail", {"use_actions": True}),
    "GAIL, use_vail": ("gail", {"use_vail": True}),
    "GAIL, use_actions, use_vail": ("gail", {"use_actions": True, "use_vail": True}),
}
LAYER = "_body_endoder.seq_layers"  # ML-Agents' spelling


@dataclass
class Drawing:
    """A generator that keeps what it has drawn."""

    generator: np.random.Generator
    drawn: list[np.ndarray[Any, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def draw(*arguments: Any, **keywords: Any) -> Any:
            self.drawn.append(found := getattr(self.generator, name)(*arguments, **keywords))
            return found

        return draw


@dataclass(frozen=True)
class Update:
    """A mini-batch as rl-tui learns it, and what ML-Agents is asked. names: its own by rl-tui's, with their rows."""

    reported: Mapping[str, float]
    gradients: Mapping[str, np.ndarray[Any, Any]]
    rewards: np.ndarray[Any, Any]
    asked: dict[str, Any]
    names: Mapping[str, list[tuple[str, slice]]]


def update(kind: str, of_actions: str, seed: int) -> Update:
    """One mini-batch by rl-tui."""
    name, flags = KINDS[kind]
    spec = BehaviorSpec("Agent", (ObservationSpec("seen", (COLUMNS,)),), ACTIONS[of_actions])
    random = np.random.default_rng(seed)
    played = Transitions.of(acted(RandomPolicy(spec.actions, seed), random, [ROWS - 9, 9], spec))
    signal = make(name, flags, spec, seed)
    signal.random = drawing = Drawing(np.random.default_rng(seed))  # type: ignore[assignment]  # as a generator
    bounded = played
    if isinstance(signal, GAILReward):
        demonstrations = recorded(acted(RandomPolicy(spec.actions, seed + 1), random, [ROWS - 9, 9], spec))
        signal.use_demonstrations(demonstrations)
        bounded = signal._as_demonstrated(played)
    before = {name: tensor.clone() for name, tensor in signal.network.state_dict().items()}
    loss, numbers = signal.loss(played)
    loss.backward()  # type: ignore[no-untyped-call]  # torch's signature
    names = dict(_peer_names(name, spec.actions, signal))
    asked: dict[str, Any] = {
        "signal": name,
        "columns": COLUMNS,
        "continuous": spec.actions.continuous,
        "branches": spec.actions.branches,
        "hidden_units": HIDDEN,
        "num_layers": LAYERS,
        "strength": STRENGTH,
        "use_actions": False,
        "use_vail": False,
        **flags,
        "weights": {
            theirs: np.atleast_1d(before[own].numpy())[of].tolist()
            for own, parts in names.items()
            for theirs, of in parts
        },
        "played": _columns(bounded),
        "draws": [drawn.tolist() for drawn in _in_their_order(drawing.drawn[1:], flags)],
    }
    if isinstance(signal, GAILReward):
        asked["shown"] = _columns(demonstrations.transitions(demonstrations.reads[0], with_next=False))
    reported = {tag: float(torch.as_tensor(number).detach()) for tag, number in numbers.items()}
    gradients = views(signal._trained.gradient.numpy(), signal._trained.shapes)
    return Update(reported, gradients, signal.evaluate_transitions(played), asked, names)


def make(name: str, flags: Mapping[str, object], spec: BehaviorSpec, seed: int) -> LearnedSignal[Any, Any]:
    """The signal in float64, with other weights than it begins with."""
    settings = {"strength": STRENGTH, "network_settings": {"hidden_units": HIDDEN, "num_layers": LAYERS}, **flags}
    if name == "gail":
        settings["demo_path"] = "shown"
    config = BehaviorConfig.model_validate({"reward_signals": {name: settings}})
    context = RewardContext(spec, config, seed, torch.device("cpu"))
    signal = require_signal(name, config.reward_signals[name])(config.reward_signals[name], context)
    assert isinstance(signal, LearnedSignal)
    signal.network.double()
    signal._trained = FlatParameters(signal.network, torch.device("cpu"), only_trained=True)
    random = np.random.default_rng(seed)
    signal._trained.parameters += 0.1 * torch.from_numpy(random.standard_normal(len(signal._trained.parameters)))
    if "use_vail" in flags:
        signal.network.get_buffer("beta").fill_(0.3)
    return signal


def _columns(steps: Transitions) -> dict[str, Any]:
    return {
        "observations": steps.observations[0].tolist(),
        "next_observations": (steps.next_observations or steps.observations)[0].tolist(),  # of demonstrations unused
        "actions": steps.continuous_actions.tolist(),
        "choices": steps.discrete_actions.tolist(),
        "dones": (steps.endings != CUT).tolist(),
    }


def _in_their_order(
    drawn: Sequence[np.ndarray[Any, Any]], flags: Mapping[str, object]
) -> Iterator[np.ndarray[Any, Any]]:
    """ML-Agents draws noise for played steps and for demonstrated ones, and places for actions and for ends, apart."""
    left = list(drawn)
    if left and "use_vail" in flags:
        yield from np.split(left.pop(0), 2)
    if left:
        yield left.pop(0)
        places = left.pop(0)
        if "use_actions" in flags:
            yield from (places[:, :-1], places[:, -1:])
    yield from left


def _peer_names(
    name: str, actions: ActionSpec, signal: LearnedSignal[Any, Any]
) -> Iterator[tuple[str, list[tuple[str, slice]]]]:
    """ML-Agents' names of every array of the network, and their rows of it."""
    every = slice(None)
    bodies = {
        "curiosity": {"encoder.core": "_state_encoder."},
        "rnd": {"predictor.core": "0._encoder.", "target.core": "1._encoder."},
        "gail": {"core": "encoder."},
    }[name]
    single = {
        "inverse.{}s.0": "inverse_model_action_encoding.0.seq_layers.0.{}",
        "forward_model.{}s.0": "forward_model_next_state_prediction.0.seq_layers.0.{}",
        "next_encoding.{}": "forward_model_next_state_prediction.1.{}",
        "code.{}": "_z_mu_layer.{}",
        "judge.{}": "_estimator.0.{}",
    }
    known = signal.network.state_dict()
    for kind in ("weight", "bias"):
        for own, theirs in bodies.items():
            for layer in range(LAYERS):
                of = f"{own}.layers.{'weights' if kind == 'weight' else 'biases'}.{layer}"
                yield of, [(f"{theirs}{LAYER}.{2 * layer}.{kind}", every)]
        for own, theirs in single.items():
            of = own.format(kind).replace("biass", "biases")
            if of in known:
                yield of, [(theirs.format(kind), every)]
        if f"action.{kind}" in known:
            parts = [(f"continuous_action_prediction.{kind}", slice(actions.continuous))]
            parts += [(f"discrete_action_prediction.{kind}", slice(actions.continuous, None))]
            is_there = (actions.continuous > 0, bool(actions.branches))
            yield f"action.{kind}", [part for part, has in zip(parts, is_there, strict=True) if has]
    if "sigma" in known:
        yield "sigma", [("_z_sigma", every)]
        yield "beta", [("_beta", every)]


def differences(own: Update, peer: Mapping[str, Any]) -> tuple[float, float, float]:
    """The largest ones of what is reported and paid, relative, and of a gradient, relative to the largest number of its
    array."""
    assert own.reported.keys() == peer["reported"].keys(), peer["reported"]
    reported = max(abs(number / peer["reported"][tag] - 1) for tag, number in own.reported.items())
    paid = np.array(peer["rewards"])
    trained = {name: parts for name, parts in own.names.items() if name in own.gradients}
    worst = gradient_difference(own.gradients, trained, peer["gradients"])
    return reported, float(np.abs(own.rewards / paid - 1).max()), worst


def main() -> int:
    """1 if any gradient differs by more than LARGEST."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    chosen = parser.parse_args()
    python = chosen.peer / "bin/python"
    if fault := fault_of(python, "mlagents_envs"):
        parser.error(f"--peer: {fault}")
    cases = [(kind, actions) for kind in KINDS for actions in ACTIONS]
    updates = [update(kind, actions, chosen.seed + number) for number, (kind, actions) in enumerate(cases)]
    peers = ask(python, Path(__file__).with_name("learned_rewards_peer.py"), [own.asked for own in updates])
    found = [differences(own, peer) for own, peer in zip(updates, peers, strict=True)]
    rows = [(*case, *(f"{one:.1e}" for one in each)) for case, each in zip(cases, found, strict=True)]
    print(table(("signal", "actions", "reported", "paid", "gradient"), rows))
    worst = max(gradient for _, _, gradient in found)
    print(f"largest relative difference of a gradient: {worst:.1e}: {verdict(worst <= LARGEST)}")
    return 0 if worst <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
