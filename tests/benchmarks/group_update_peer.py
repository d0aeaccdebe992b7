"""mlagents 1.1.0's MA-POCA on the cases of group_update.py: run by its own Python, a case on each line of stdin.

The loss and its gradients are those of its optimizer, in float64; weights and rows are given.
"""

import json
import sys
import warnings

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float

import torch
from mlagents.trainers.buffer import AgentBuffer, BufferKey, RewardSignalUtil
from mlagents.trainers.poca.optimizer_torch import POCASettings, TorchPOCAOptimizer
from mlagents.trainers.policy.torch_policy import TorchPolicy
from mlagents.trainers.settings import NetworkSettings, TrainerSettings
from mlagents.trainers.torch_entities.networks import SimpleActor
from mlagents.trainers.torch_entities.utils import ModelUtils
from mlagents.trainers.trajectory import GroupObsUtil, ObsUtil
from mlagents_envs.base_env import ActionSpec, BehaviorSpec, DimensionProperty, ObservationSpec, ObservationType

STREAM = "extrinsic"


def update(case):
    """What an update reports, and its gradients by name; the weights stay."""
    optimizer = optimizer_of(case)
    parameters = {f"actor.{name}": one for name, one in optimizer.policy.actor.named_parameters()}
    parameters |= {f"critic.{name}": one for name, one in optimizer.critic.named_parameters()}
    for name, array in case["weights"].items():
        parameters[name].data.copy_(torch.tensor(array).reshape(parameters[name].shape))
    optimizer.critic.network_body._current_max_agents = torch.nn.Parameter(
        torch.as_tensor(case["largest"]), requires_grad=False
    )
    optimizer.optimizer.step = lambda: None
    rows = minibatch(case)
    reported = optimizer.update(rows, rows.num_experiences)
    gradients = {name: parameters[name].grad.tolist() for name in case["weights"]}
    return {"reported": {tag: float(number) for tag, number in reported.items()}, "gradients": gradients}


def optimizer_of(case):
    """With the case's coefficients, which do not change."""
    seen = ObservationSpec((case["columns"],), (DimensionProperty.NONE,), ObservationType.DEFAULT, "seen")
    spec = BehaviorSpec([seen], ActionSpec(case["continuous"], tuple(case["branches"])))
    network = NetworkSettings(hidden_units=case["hidden_units"], num_layers=case["num_layers"])
    hyper = POCASettings(beta=case["beta"], epsilon=case["epsilon"])
    settings = TrainerSettings(hyperparameters=hyper, network_settings=network, max_steps=10**9)
    policy = TorchPolicy(0, spec, network, SimpleActor, {"conditional_sigma": False, "tanh_squash": False})
    return TorchPOCAOptimizer(policy, settings)


def minibatch(case):
    """As its trainer has them."""
    buffer = AgentBuffer()
    for row in case["rows"]:
        buffer[ObsUtil.get_name_at(0)].append(np.array(row["seen"]))
        buffer[GroupObsUtil.get_name_at(0)].append([np.array(mate["seen"]) for mate in row["mates"]])
        buffer[BufferKey.CONTINUOUS_ACTION].append(np.array(row["continuous"]))
        buffer[BufferKey.DISCRETE_ACTION].append(np.array(row["discrete"]))
        buffer[BufferKey.GROUP_CONTINUOUS_ACTION].append([np.array(mate["continuous"]) for mate in row["mates"]])
        buffer[BufferKey.GROUP_DISCRETE_ACTION].append([np.array(mate["discrete"]) for mate in row["mates"]])
        buffer[BufferKey.CONTINUOUS_LOG_PROBS].append(np.array(row["log_probs"][: case["continuous"]]))
        buffer[BufferKey.DISCRETE_LOG_PROBS].append(np.array(row["log_probs"][case["continuous"] :]))
        buffer[BufferKey.ACTION_MASK].append(np.ones(sum(case["branches"])))
        buffer[BufferKey.MASKS].append(1.0)
        buffer[BufferKey.ADVANTAGES].append(row["advantage"])
        buffer[RewardSignalUtil.baseline_estimates_key(STREAM)].append(row["baseline"])
        buffer[RewardSignalUtil.returns_key(STREAM)].append(row["return"])  # in its version also the old values
    return buffer


def in_double(arrays, dtype=torch.float64):
    """Its own makes float32 of everything that it is given."""
    return torch.tensor(np.asarray(arrays), dtype=torch.float64 if dtype == torch.float32 else dtype)


def main():
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.float = torch.float64
    ModelUtils.list_to_tensor = staticmethod(in_double)
    for line in sys.stdin:
        print(json.dumps(update(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
