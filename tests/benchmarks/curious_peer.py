"""mlagents 1.1.0's PPO in eight copies of CartPole: run by its own Python, a training on each line of stdin.

Answers with the steps per second of the training, without imports and the saving of models.
"""

import json
import logging
import sys
import tempfile
import time
import warnings

import numpy as np

if not hasattr(np, "float"):  # a name that numpy had until 1.23
    np.float = float

import gymnasium
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


class CartPoles(BaseEnv):
    """Copies of the task as agents of one behavior."""

    def __init__(self, behavior, count, seed):
        self.copies = [gymnasium.make("CartPole-v1") for _ in range(count)]
        self.behavior, self.seed = behavior, seed
        seen = ObservationSpec((4,), (DimensionProperty.NONE,), ObservationType.DEFAULT, "seen")
        self.spec = BehaviorSpec([seen], ActionSpec(0, (2,)))
        self.ids = np.arange(count, dtype=np.int32)
        self.none, self.unmasked = np.zeros(count, np.int32), [np.zeros((count, 2), bool)]
        self.no_rewards, self.chosen = np.zeros(count, np.float32), None
        self.reset()

    @property
    def behavior_specs(self):
        return {self.behavior: self.spec}

    def reset(self):
        seen = [copy.reset(seed=self.seed + index)[0] for index, copy in enumerate(self.copies)]
        self.terminals = TerminalSteps.empty(self.spec)
        self.decisions = self.waiting(np.stack(seen), self.no_rewards)

    def step(self):
        seen, rewards, ended, final, truncated = [], self.no_rewards.copy(), [], [], []
        for index, (copy, choice) in enumerate(zip(self.copies, self.chosen, strict=True)):
            observed, reward, is_terminal, is_truncated, _ = copy.step(int(choice))
            if is_terminal or is_truncated:
                ended.append((index, reward))
                final.append(observed)
                truncated.append(is_truncated)
                observed, _ = copy.reset()
            else:
                rewards[index] = reward
            seen.append(observed)
        self.decisions = self.waiting(np.stack(seen), rewards)
        self.terminals = TerminalSteps.empty(self.spec)
        if ended:
            ids, earned = map(np.array, zip(*ended, strict=True))
            self.terminals = TerminalSteps(
                [np.stack(final).astype(np.float32)],
                earned.astype(np.float32),
                np.array(truncated),
                ids.astype(np.int32),
                self.none[ids],
                self.no_rewards[ids],
            )

    def waiting(self, seen, rewards):
        columns = [seen.astype(np.float32)]
        return DecisionSteps(columns, rewards, self.ids, self.unmasked, self.none, self.no_rewards)

    def get_steps(self, behavior_name):
        return self.decisions, self.terminals

    def set_actions(self, behavior_name, action):
        self.chosen = action.discrete[:, 0]

    def set_action_for_agent(self, behavior_name, agent_id, action):
        raise NotImplementedError

    def close(self):
        for copy in self.copies:
            copy.close()


def train(behaviors, copies, seed):
    ((behavior, settings),) = behaviors.items()
    options = RunOptions.from_dict({"behaviors": behaviors})
    parameters = EnvironmentParameterManager()
    manager = SimpleEnvManager(CartPoles(behavior, copies, seed), EnvironmentParametersChannel())
    with tempfile.TemporaryDirectory() as folder:
        factory = TrainerFactory(options.behaviors, folder, True, False, seed, parameters, False)
        controller = TrainerController(factory, folder, "bench", parameters, True, seed)
        start = time.perf_counter()
        controller.start_learning(manager)
        return settings["max_steps"] / (time.perf_counter() - start)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    RLTrainer.save_model = lambda self: None
    register_trainer_plugins()
    for line in sys.stdin:
        print(json.dumps({"steps_per_second": train(**json.loads(line))}), flush=True)
