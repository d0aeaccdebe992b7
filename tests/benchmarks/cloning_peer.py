"""mlagents 1.1.0's behavioral cloning on the cases of cloning.py: run by its own Python, a case on each line of stdin.

The update is that of its BCModule, in float64; only what it draws is given.
"""

import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float

import torch
from mlagents.trainers.buffer import AgentBuffer, BufferKey
from mlagents.trainers.settings import NetworkSettings
from mlagents.trainers.torch_entities.components.bc.module import BCModule
from mlagents.trainers.torch_entities.networks import SimpleActor
from mlagents.trainers.torch_entities.utils import ModelUtils
from mlagents.trainers.trajectory import ObsUtil
from mlagents_envs.base_env import ActionSpec, BehaviorSpec, DimensionProperty, ObservationSpec, ObservationType


def update(case):
    """The loss of one mini-batch and its gradients by name, averaged over what is drawn."""
    module = module_of(case)
    own = dict(module.policy.actor.named_parameters())
    for name, array in case["weights"].items():
        own[name].data.copy_(torch.tensor(array).reshape(own[name].shape))
    rows, count = minibatch(case), module.n_sequences
    losses, sums = [], {name: torch.zeros_like(own[name]) for name in case["weights"]}
    for noise in case["draws"]:
        torch.randn_like = lambda like, drawn=noise: torch.tensor(drawn).expand_as(like)
        losses.append(module._update_batch(rows, count)["loss"])
        for name in sums:
            sums[name] += own[name].grad
    number = len(case["draws"])
    gradients = {name: (total / number).tolist() for name, total in sums.items()}
    return {"loss": sum(losses) / number, "gradients": gradients}


def module_of(case):
    """A BCModule without a file of demonstrations."""
    seen = ObservationSpec((case["columns"],), (DimensionProperty.NONE,), ObservationType.DEFAULT, "seen")
    spec = BehaviorSpec([seen], ActionSpec(case["continuous"], tuple(case["branches"])))
    length, memory = case["sequence_length"], case["memory_size"]
    settings = NetworkSettings(hidden_units=case["hidden_units"], num_layers=case["num_layers"])
    if memory:
        settings.memory = NetworkSettings.MemorySettings(sequence_length=length, memory_size=memory)
    actor = SimpleActor([seen], settings, spec.action_spec, case["is_squashed"], case["is_squashed"])
    module = BCModule.__new__(BCModule)
    module.policy = SimpleNamespace(
        actor=actor, use_recurrent=bool(memory), m_size=memory, sequence_length=length, behavior_spec=spec
    )
    module.use_recurrent, module.n_sequences = bool(memory), len(case["observations"]) // length
    module.optimizer = torch.optim.SGD(actor.parameters(), lr=0.0)
    return module


def minibatch(case):
    """As its loader of demonstrations has them."""
    buffer = AgentBuffer()
    rows = zip(case["observations"], case["actions"], case["choices"], strict=True)
    for observation, action, choice in rows:
        buffer[ObsUtil.get_name_at(0)].append(np.array(observation))
        buffer[BufferKey.CONTINUOUS_ACTION].append(np.array(action))
        buffer[BufferKey.DISCRETE_ACTION].append(np.array(choice))
    return buffer


def in_double(arrays, dtype=torch.float64):
    """Its own makes float32 of everything that it is given."""
    return torch.tensor(np.asarray(arrays), dtype=torch.float64 if dtype == torch.float32 else dtype)


def main():
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    ModelUtils.list_to_tensor = staticmethod(in_double)
    for line in sys.stdin:
        print(json.dumps(update(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
