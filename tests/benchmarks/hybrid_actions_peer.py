"""mlagents 1.1.0's SAC in the worlds of hybrid_scenes.py: run by its own Python, a training on each line of stdin.

Nothing of it is replaced but the saving of models, which takes packages that training does not need.
"""

import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float
sys.path.append(str(Path(__file__).resolve().parents[2]))

import torch
from mlagents.plugins.trainer_type import register_trainer_plugins
from mlagents.trainers.environment_parameter_manager import EnvironmentParameterManager
from mlagents.trainers.settings import RunOptions
from mlagents.trainers.simple_env_manager import SimpleEnvManager
from mlagents.trainers.trainer import TrainerFactory
from mlagents.trainers.trainer.rl_trainer import RLTrainer
from mlagents.trainers.trainer_controller import TrainerController
from mlagents_envs.base_env import (
    ActionSpec,
    BaseEnv,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
    TerminalSteps,
)
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel

from tests.benchmarks.hybrid_scenes import AGENTS, World

IDS = np.arange(AGENTS, dtype=np.int32)
NO_GROUP, NOTHING = np.zeros(AGENTS, np.int32), np.zeros(AGENTS, np.float32)
PLAIN, MOVING = DimensionProperty.NONE, DimensionProperty.TRANSLATIONAL_EQUIVARIANCE


class WorldAsBaseEnv(BaseEnv):
    """A world as ML-Agents' trainers play it."""

    def __init__(self, world, behavior):
        self.world, self.behavior = world, behavior
        seen = [spec_of(shape, number) for number, shape in enumerate(world.shapes)]
        self.spec = BehaviorSpec(seen, ActionSpec(world.num_continuous, world.branches))
        self.action = None
        self.reset()

    @property
    def behavior_specs(self):
        return {self.behavior: self.spec}

    def reset(self):
        self.terminals = TerminalSteps.empty(self.spec)
        self.decisions = self.waiting(NOTHING)

    def step(self):
        rewards, ended, truncated, final = self.world.step(self.action.continuous, self.action.discrete)
        self.terminals = TerminalSteps(
            channels_first([seen[ended] for seen in final]),
            rewards[ended],
            truncated[ended],
            IDS[ended],
            NO_GROUP[ended],
            NOTHING[ended],
        )
        self.decisions = self.waiting(np.where(ended, np.float32(0), rewards))

    def waiting(self, rewards):
        allowed, branches = self.world.allowed(), self.world.branches
        blocked = np.zeros((AGENTS, sum(branches)), bool) if allowed is None else ~allowed
        masks = np.split(blocked, np.cumsum(branches)[:-1], 1)
        return DecisionSteps(channels_first(self.world.observations()), rewards, IDS, masks, NO_GROUP, NOTHING)

    def get_steps(self, behavior_name):
        return self.decisions, self.terminals

    def set_actions(self, behavior_name, action):
        self.action = action

    def set_action_for_agent(self, behavior_name, agent_id, action):
        raise NotImplementedError

    def close(self):
        pass


def spec_of(shape, number):
    properties = (PLAIN,)
    if len(shape) == 3:
        shape, properties = (shape[2], *shape[:2]), (PLAIN, MOVING, MOVING)
    return ObservationSpec(shape, properties, ObservationType.DEFAULT, f"seen {number}")


def channels_first(observations):
    return [np.moveaxis(seen, 3, 1) if seen.ndim == 4 else seen for seen in observations]


def train(scene, kind, seed, behaviors):
    world = World(scene, kind, seed)
    (behavior,) = behaviors
    options = RunOptions.from_dict({"behaviors": behaviors})
    parameters = EnvironmentParameterManager()
    with tempfile.TemporaryDirectory() as folder:
        factory = TrainerFactory(options.behaviors, folder, True, False, seed, parameters, False)
        controller = TrainerController(factory, folder, "bench", parameters, True, seed)
        controller.start_learning(SimpleEnvManager(WorldAsBaseEnv(world, behavior), EnvironmentParametersChannel()))
    return world.episodes


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    RLTrainer.save_model = lambda self: None
    register_trainer_plugins()
    for line in sys.stdin:
        print(json.dumps(train(**json.loads(line))), flush=True)
