"""Two teams fence, and every reward says who earned it, and when. The policy that learns plays for one at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.sampling.team_policies import TeamPolicies
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    Float32,
    ObservationSpec,
    Policy,
    State,
    Steps,
    TerminalSteps,
    Weights,
)

FENCER = BehaviorSpec("Fencer", (ObservationSpec("who and when", (3,)),), ActionSpec(1))
TEAMS = (0, 1)
AGENTS = 3  # of each team
OPPONENT = 0.625  # its action, which no policy that learns takes
SWAP = 500  # learned and other actions, after which the teams are swapped
EPISODE = 23  # steps of the longest episode of agent 0; those of others are longer by their ids


class Fencing:
    """Agents 0, 1, 2 are of team 0, agents 10, 11, 12 of team 1. They observe their id, the step and the episode."""

    def __init__(self) -> None:
        self.specs: Mapping[str, BehaviorSpec] = {f"Fencer?team={team}": FENCER for team in TEAMS}
        self.num_agents: Mapping[str, int] = dict.fromkeys(self.specs, AGENTS)
        self._ids = {
            name: np.arange(AGENTS, dtype=np.int64) + 10 * team for name, team in zip(self.specs, TEAMS, strict=True)
        }
        self._step = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """All agents begin."""
        return {name: Steps(self._decisions(name, np.zeros(AGENTS, np.float32))) for name in self.specs}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Each action earns what says whose it is and when."""
        answer = {}
        for name, ids in self._ids.items():
            rewards = earned(ids, np.full(AGENTS, self._step), actions[name].continuous[:, 0])
            ended = (self._step + 1) % (EPISODE + ids) == 0
            seen = self._seen(ids, self._step + 1)
            final = TerminalSteps(ids[ended], (seen[ended],), rewards[ended], ids[ended] % 2 == 0)
            waiting = DecisionSteps(ids, (seen,), np.where(ended, np.float32(0), rewards))
            answer[name] = Steps(waiting, final if ended.any() else None)
        self._step += 1
        return answer

    def _decisions(self, name: str, rewards: Float32) -> DecisionSteps:
        return DecisionSteps(self._ids[name], (self._seen(self._ids[name], self._step),), rewards)

    @staticmethod
    def _seen(ids: np.ndarray, step: int) -> Float32:
        return np.stack([ids, np.full(len(ids), step), step // (EPISODE + ids)], axis=1).astype(np.float32)

    def close(self) -> None:
        """Nothing to free."""


def earned(agents: np.ndarray, steps: np.ndarray, actions: np.ndarray) -> Float32:
    """f32[N]: what an agent's action of a step earns; a quarter more where the opponent's policy chose it."""
    rewards: Float32 = (agents * 4096 + steps % 4096 + 0.25 * (actions == OPPONENT)).astype(np.float32)
    return rewards


class Opponent:
    """Always takes the same action."""

    version = 0
    memory_size = 0

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """The same for everyone."""
        chosen = np.full((len(decisions.agent_ids), 1), OPPONENT, np.float32)
        none = np.zeros((len(chosen), 0), np.int64)
        return Choice(Actions(chosen, none), chosen, np.zeros_like(chosen))

    def load(self, weights: Weights) -> None:
        """It has none."""

    def state(self) -> State:
        """It draws nothing."""
        return State()

    def load_state(self, state: State) -> None:
        """It draws nothing."""


class SwappingTeams(TeamPolicies):
    """The opponent plays for team 1, after SWAP actions for team 0, and so on."""

    def __init__(self, learning: Policy) -> None:
        super().__init__(learning)
        self._num_acted = 0
        self.assign([1], Opponent())

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """Swap the teams when it is time."""
        before = self._num_acted // SWAP
        self._num_acted += len(decisions.agent_ids)
        if self._num_acted // SWAP != before:
            plays = self._num_acted // SWAP % 2
            self.assign([plays], None)
            self.assign([1 - plays], Opponent())
        return super().act(decisions, memories)
