"""mlagents 1.1.0 on the cases of lesson_decisions.py: run by its own Python, a case on each line of stdin.

The decisions are those of its TrainerController and EnvironmentParameterManager; trainers and environment are replaced
by what these read and call.
"""

import json
import logging
import sys
import warnings
from collections import deque
from types import SimpleNamespace

from mlagents.trainers.environment_parameter_manager import EnvironmentParameterManager
from mlagents.trainers.settings import ConstantSettings, EnvironmentParameterSettings
from mlagents.trainers.trainer_controller import TrainerController


class Decider:
    """One case."""

    def __init__(self, case):
        self.settings = EnvironmentParameterSettings.structure(case["parameters"], dict)
        self.manager = EnvironmentParameterManager(self.settings, run_seed=case["seed"], restore=False)
        self.controller = TrainerController.__new__(TrainerController)
        self.controller.param_manager = self.manager
        self.controller.trainers = {}
        self.controller.ghost_controller = SimpleNamespace(should_reset=lambda: False)
        self.controller.end_trainer_episodes = lambda: None
        self.controller._reset_env = self.note_reset
        self.environment = SimpleNamespace(set_env_parameters=lambda samplers: None)
        self.max_steps = case["max_steps"]
        self.has_reset = False

    def note_reset(self, environment):
        self.has_reset = True

    def decide(self, behaviors):
        """The lessons after a round, and whether it ended with a full reset."""
        for name, (step, returns) in behaviors.items():
            trainer = self.controller.trainers.setdefault(name, self.new_trainer(name))
            trainer.get_step = step
            for each in returns:
                trainer.reward_buffer.appendleft(each)
        self.has_reset = False
        self.controller.reset_env_if_ready(self.environment)
        numbers = self.manager.get_current_lesson_number()
        return [[numbers[name] for name in sorted(numbers)], self.has_reset]

    def new_trainer(self, name):
        size = self.manager.get_minimum_reward_buffer_size(name)
        return SimpleNamespace(reward_buffer=deque(maxlen=size), get_step=0, get_max_steps=self.max_steps[name])

    def seeds(self):
        """Of samplers, by parameter; None for a constant."""
        return {name: [seed_of(lesson.value) for lesson in one.curriculum] for name, one in self.settings.items()}


def seed_of(sampler):
    return None if isinstance(sampler, ConstantSettings) else sampler.seed


warnings.simplefilter("ignore")  # means of NaN, and criteria of last lessons
logging.disable(logging.CRITICAL)
for line in sys.stdin:
    case = json.loads(line)
    decider = Decider(case)
    rounds = [decider.decide(behaviors) for behaviors in case["rounds"]]
    print(json.dumps({"seeds": decider.seeds(), "rounds": rounds}))
