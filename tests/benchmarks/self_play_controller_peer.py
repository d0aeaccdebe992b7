"""mlagents 1.1.0 on the cases of self_play_controller.py: run by its own Python, a case on each line of stdin.

The decisions are those of its GhostTrainer and GhostController, whose queues are its own, too; the wrapped trainer
counts steps and hands out policies that are the number of their version. numpy's global functions draw from a generator
of each trainer.
"""

import json
import logging
import sys
from types import SimpleNamespace

import numpy as np
from mlagents.trainers.agent_processor import AgentManagerQueue
from mlagents.trainers.behavior_id_utils import BehaviorIdentifiers, create_name_behavior_id
from mlagents.trainers.settings import SelfPlaySettings
from mlagents.trainers.stats import StatsReporter
from mlagents.trainers.trainer.trainer_factory import GhostController, GhostTrainer  # alone they import in a circle

GOES_ON, ENDS, INTERRUPTED = range(3)


class NumberPolicy:
    """The weights are a number."""

    weights = 0

    def load_weights(self, weights):
        self.weights = weights

    def get_weights(self):
        return self.weights


class CountingTrainer:
    """What a GhostTrainer needs of the trainer that it wraps. is_updated: whether it makes one in this round."""

    def __init__(self, name):
        self.stats_reporter = StatsReporter(name)
        self.get_step = 0
        self.reward_buffer = []
        self._next_summary_step = 0
        self.policy = NumberPolicy()
        self.trajectories = self.policies = None
        self.is_updated = False

    def create_policy(self, identifiers, spec):
        return NumberPolicy()

    def add_policy(self, identifiers, policy):
        self.policy = policy

    def get_policy(self, identifiers):
        return self.policy

    def publish_policy_queue(self, queue):
        self.policies = queue

    def subscribe_trajectory_queue(self, queue):
        self.trajectories = queue

    def advance(self):
        count = sum(len(self.trajectories.get_nowait().steps) for _ in range(self.trajectories.qsize()))
        self.get_step += count
        if self.is_updated and count:
            self.policy.load_weights(self.policy.get_weights() + 1)
            self.policies.put(self.policy)


class OneOpponentController(GhostController):
    """Rates against the last other team once; a trainer of two of them would count a game twice for its opponent."""

    num_games = 0

    def compute_elo_rating_changes(self, rating, result):
        self.num_games += 1
        everyone = self._ghost_trainers
        last = [team for team in everyone if team != self._learning_team][-1]
        self._ghost_trainers = {last: everyone[last]}
        change = super().compute_elo_rating_changes(rating, result)
        self._ghost_trainers = everyone
        return change


class NotingTrainer(GhostTrainer):
    """Notes what it does. An opponent whose slot is taken keeps its rating, in a slot behind the window."""

    def __init__(self, name, controller, settings, seed):
        self.random = np.random.Generator(np.random.PCG64(seed))
        trainer_settings = SimpleNamespace(
            self_play=SelfPlaySettings(**settings), threaded=False, summary_freq=1, max_steps=10**9
        )
        super().__init__(CountingTrainer(name), name, controller, 1, trainer_settings, True, "")
        self.saved = self.swapped = None

    def _save_snapshot(self):
        slot = self.snapshot_counter
        if self.policy_snapshots and slot == self.current_opponent:
            self.policy_elos.insert(-1, self.policy_elos[slot])
            self.current_opponent = len(self.policy_elos) - 2
        super()._save_snapshot()
        self.saved = [slot, self.policy_snapshots[slot][self.brain_name]]

    def _swap_snapshots(self):
        Draws.slots = []
        super()._swap_snapshots()
        teams = [team for team in self._team_to_name_to_policy_queue if team != self._learning_team]
        self.swapped = {str(team): [slot, self.version_of(team)] for team, slot in zip(teams, Draws.slots, strict=True)}

    def version_of(self, team):
        return self.get_policy(create_name_behavior_id(self.brain_name, team)).get_weights()

    def happened(self):
        """What an answer has of it after a round."""
        found = {
            "step": self.get_step,
            "acting": {str(team): self.version_of(team) for team in self._team_to_name_to_policy_queue},
            "saved": self.saved,
            "swapped": self.swapped,
            "ratings": [self.current_elo, *self.policy_elos[: len(self.policy_snapshots)]],
        }
        self.saved = self.swapped = None
        return found


class Draws:
    """numpy's global functions. slots: what was drawn by the swap that goes on; None: the newest policy."""

    random = None
    slots = []

    @staticmethod
    def uniform():
        Draws.slots.append(None)
        return Draws.random.random()

    @staticmethod
    def randint(high):
        Draws.slots[-1] = int(Draws.random.integers(high))
        return Draws.slots[-1]


class Match:
    """One case."""

    def __init__(self, case):
        self.controller = OneOpponentController()
        self.trainers, self.queues = {}, {}
        for name, teams in case["teams"].items():
            self.trainers[name] = NotingTrainer(name, self.controller, case["settings"][name], case["seeds"][name])
            for team in teams:
                self.register(self.trainers[name], create_name_behavior_id(name, team))

    def register(self, trainer, behavior_id):
        """As TrainerController._create_trainer_and_manager does."""
        identifiers = BehaviorIdentifiers.from_name_behavior_id(behavior_id)
        policy = trainer.create_policy(identifiers, None)
        trainer.add_policy(identifiers, policy)
        trainer.publish_policy_queue(AgentManagerQueue(behavior_id))
        self.queues[behavior_id] = AgentManagerQueue(behavior_id)
        trainer.subscribe_trajectory_queue(self.queues[behavior_id])

    def play(self, name, is_updated, trajectories):
        """One round: trajectories arrive, and every trainer advances."""
        for team, steps, reward, ending in trajectories:
            self.queues[create_name_behavior_id(name, team)].put(trajectory(steps, reward, ending))
        for trainer in self.trainers.values():
            trainer.trainer.is_updated = is_updated
            Draws.random = trainer.random
            trainer.advance()
        return self.now()

    def now(self):
        behaviors = {name: trainer.happened() for name, trainer in self.trainers.items()}
        return {
            "learning": self.controller.get_learning_team,
            "games": self.controller.num_games,
            "behaviors": behaviors,
        }


def trajectory(steps, reward, ending):
    """What a GhostTrainer reads of one."""
    last = SimpleNamespace(reward=reward, group_reward=0.0)
    return SimpleNamespace(
        steps=[last] * steps,
        done_reached=ending != GOES_ON,
        all_group_dones_reached=True,
        interrupted=ending == INTERRUPTED,
    )


logging.disable(logging.CRITICAL)
np.random.uniform, np.random.randint = Draws.uniform, Draws.randint
for line in sys.stdin:
    case = json.loads(line)
    match = Match(case)
    print(json.dumps([match.now(), *(match.play(*one) for one in case["rounds"])]))
