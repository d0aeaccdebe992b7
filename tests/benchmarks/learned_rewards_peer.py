"""mlagents 1.1.0's curiosity, RND and GAIL on the cases of learned_rewards.py: run by its own Python, a case a line.

Rewards, losses and gradients are those of its reward providers, in float64; only what they draw is given.
"""

import json
import sys
import warnings

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float

import torch
from mlagents.trainers.buffer import AgentBuffer, BufferKey
from mlagents.trainers.settings import CuriositySettings, GAILSettings, NetworkSettings, RNDSettings
from mlagents.trainers.torch_entities.components.reward_providers import gail_reward_provider
from mlagents.trainers.torch_entities.components.reward_providers.curiosity_reward_provider import (
    CuriosityRewardProvider,
)
from mlagents.trainers.torch_entities.components.reward_providers.gail_reward_provider import GAILRewardProvider
from mlagents.trainers.torch_entities.components.reward_providers.rnd_reward_provider import RNDRewardProvider
from mlagents.trainers.torch_entities.utils import ModelUtils
from mlagents.trainers.trajectory import ObsUtil
from mlagents_envs.base_env import ActionSpec, BehaviorSpec, DimensionProperty, ObservationSpec, ObservationType


def update(case):
    """Rewards after an update that changes nothing, what it reports, and gradients by name."""
    provider, modules = provider_of(case)
    provider.optimizer = torch.optim.SGD([next(iter(modules[0].parameters()))], lr=0.0)
    own = {name: one for module in modules for name, one in prefixed(module, modules)}
    for name, array in case["weights"].items():
        own[name].data.copy_(torch.tensor(array).reshape(own[name].shape))
    draws = iter(case["draws"])
    torch.rand = torch.randn_like = lambda *_: torch.tensor(next(draws, 0.0))  # for rewards it counts nothing
    rows = minibatch(case["played"])
    if "shown" in case:
        shown = minibatch(case["shown"])
        provider._demo_buffer.sample_mini_batch = lambda *_: shown
    reported = {tag: float(value) for tag, value in provider.update(rows).items()}
    gradients = {name: own[name].grad.tolist() for name in case["weights"] if own[name].grad is not None}
    return {"reported": reported, "gradients": gradients, "rewards": np.asarray(provider.evaluate(rows)).tolist()}


def provider_of(case):
    """A provider, and the networks that it trains or compares with."""
    seen = ObservationSpec((case["columns"],), (DimensionProperty.NONE,), ObservationType.DEFAULT, "seen")
    spec = BehaviorSpec([seen], ActionSpec(case["continuous"], tuple(case["branches"])))
    network = NetworkSettings(hidden_units=case["hidden_units"], num_layers=case["num_layers"])
    if case["signal"] == "curiosity":
        provider = CuriosityRewardProvider(spec, CuriositySettings(strength=case["strength"], network_settings=network))
        return provider, [provider._network]
    if case["signal"] == "rnd":
        provider = RNDRewardProvider(spec, RNDSettings(network_settings=network))
        return provider, [provider._training_network, provider._random_network]
    gail_reward_provider.demo_to_buffer = lambda *_: (None, AgentBuffer())
    flags = {"use_actions": case["use_actions"], "use_vail": case["use_vail"]}
    provider = GAILRewardProvider(spec, GAILSettings(demo_path="", network_settings=network, **flags))
    return provider, [provider._discriminator_network]


def prefixed(module, modules):
    """Of several modules, their numbers stand before the names."""
    prefix = f"{modules.index(module)}." if len(modules) > 1 else ""
    return [(prefix + name, one) for name, one in module.named_parameters()]


def minibatch(case):
    """As its trainers have them."""
    buffer = AgentBuffer()
    columns = ("observations", "next_observations", "actions", "choices", "dones")
    for observation, following, action, choice, done in zip(*(case[name] for name in columns), strict=True):
        buffer[ObsUtil.get_name_at(0)].append(np.array(observation))
        buffer[ObsUtil.get_name_at_next(0)].append(np.array(following))
        buffer[BufferKey.CONTINUOUS_ACTION].append(np.array(action))
        buffer[BufferKey.DISCRETE_ACTION].append(np.array(choice))
        buffer[BufferKey.DONE].append(float(done))
        buffer[BufferKey.MASKS].append(1.0)
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
