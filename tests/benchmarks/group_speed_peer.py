"""mlagents 1.1.0's MA-POCA in simple_spread, run by its own Python: steps and seed as arguments, the result as JSON on
stdout. Models are not saved."""

import logging
import tempfile
import warnings

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float

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

from tests.benchmarks import spread_groups as groups
from tests.benchmarks import spread_world as world


class Spreads(BaseEnv):
    """Copies of the world, each with agents of one group, which earns the mean of what they earn."""

    def __init__(self, behavior, seed):
        self.copies = [world.make() for _ in range(world.COPIES)]
        self.behavior, self.seed = behavior, seed
        self.count = world.COPIES * world.AGENTS
        copy, agent = self.copies[0], self.copies[0].possible_agents[0]
        seen = copy.observation_space(agent).shape
        branches = (int(copy.action_space(agent).n),)
        self.spec = BehaviorSpec(
            [ObservationSpec(seen, (DimensionProperty.NONE,), ObservationType.DEFAULT, "seen")],
            ActionSpec(0, branches),
        )
        self.groups = np.arange(world.COPIES).repeat(world.AGENTS) + 1
        self.unmasked, self.no_rewards = [np.zeros((self.count, *branches), bool)], np.zeros(self.count, np.float32)
        self.episode, self.chosen = 0, None
        self.reset()

    @property
    def behavior_specs(self):
        return {self.behavior: self.spec}

    def reset(self):
        self.ended = None
        self.begin([copy.reset(seed=self.seed + index)[0] for index, copy in enumerate(self.copies)])

    def begin(self, seen):
        """A new episode of all copies, which have equally long ones."""
        self.ids = np.arange(self.count) + self.episode * self.count
        self.episode += 1
        self.waiting = self.columns(seen), self.no_rewards

    def step(self):
        self.ended = None
        seen, earned, is_over = [], [], False
        for copy, chosen in zip(self.copies, self.chosen.reshape(world.COPIES, world.AGENTS), strict=True):
            observed, rewards, _, is_over, _ = copy.step(dict(zip(copy.agents, chosen.tolist(), strict=True)))
            seen.append(observed)
            earned += [sum(rewards.values()) / world.AGENTS] * world.AGENTS
            is_over = all(is_over.values())
        earned = np.array(earned, np.float32)
        if is_over:
            self.ended = self.columns(seen), earned, self.ids
            self.begin([copy.reset()[0] for copy in self.copies])
        else:
            self.waiting = self.columns(seen), earned

    def columns(self, seen):
        return np.stack([observed[agent] for observed in seen for agent in sorted(observed)]).astype(np.float32)

    def get_steps(self, behavior_name):
        (seen, earned), ended = self.waiting, TerminalSteps.empty(self.spec)
        if self.ended is not None:
            last, final, ids = self.ended
            ended = TerminalSteps(
                [last], self.no_rewards, np.ones(self.count, bool), ids.astype(np.int32), self.groups, final
            )
        ids = self.ids.astype(np.int32)
        return DecisionSteps([seen], self.no_rewards, ids, self.unmasked, self.groups, earned), ended

    def set_actions(self, behavior_name, action):
        self.chosen = action.discrete[:, 0]

    def set_action_for_agent(self, behavior_name, agent_id, action):
        raise NotImplementedError

    def close(self):
        for copy in self.copies:
            copy.close()


def train(num_steps, seed):
    options = RunOptions.from_dict({"behaviors": groups.behaviors(num_steps)})
    parameters = EnvironmentParameterManager()
    world.forget()
    manager = SimpleEnvManager(Spreads(groups.BEHAVIOR, seed), EnvironmentParametersChannel())
    with tempfile.TemporaryDirectory() as folder:
        factory = TrainerFactory(options.behaviors, folder, True, False, seed, parameters, False)
        TrainerController(factory, folder, "bench", parameters, True, seed).start_learning(manager)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    RLTrainer.save_model = lambda self: None
    register_trainer_plugins()
    world.run(train)
