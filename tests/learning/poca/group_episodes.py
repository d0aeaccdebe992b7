"""Episodes of groups whose agents join late, end early and act at different intervals, and the experience of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rl_tui.engine.experience import join_by_agent
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Choice,
    DecisionSteps,
    ObservationSpec,
    Steps,
    TerminalSteps,
    Trajectories,
)

SPEC = BehaviorSpec("Team", (ObservationSpec("seen", (3,)),), ActionSpec(1, (3,)))
HORIZON = 7
LARGEST = 4


@dataclass
class Act:
    """What an agent saw and did in a step, and what it and its group earned until it was observed again, at `until`."""

    step: int
    seen: np.ndarray
    continuous: np.ndarray
    chosen: np.ndarray
    own: float = 0.0
    shared: float = 0.0
    until: int = -1


@dataclass
class Life:
    """An agent's episode. truncated: how it ended, at `end`, where it saw `final`."""

    agent: int
    group: int
    period: int
    born: int
    acts: list[Act] = field(default_factory=list)
    end: int = 10**9
    final: np.ndarray | None = None
    truncated: bool = False


class Groups:
    """A world of groups. lives: of every agent that ever was, by group."""

    def __init__(self, seed: int, num_groups: int, spec: BehaviorSpec = SPEC) -> None:
        """spec: its agents see what those of SPEC see."""
        self._spec = spec
        self._random = np.random.default_rng(seed)
        self._step = self._num_agents = 0
        self.lives: dict[int, list[Life]] = {}
        for _ in range(num_groups):
            self._begin_group()

    def experience(self, num_steps: int) -> Trajectories:
        """Of so many steps, after which every episode is truncated; segments are cut at HORIZON."""
        assembly, blocks = Assembly(self._spec, HORIZON), []
        for step in range(num_steps):
            decisions, terminals = self._advance(is_last=step == num_steps - 1)
            assembly.receive(Steps(decisions, terminals))
            if len(decisions.agent_ids):
                assembly.act(decisions, self._act(decisions))
            if assembly.is_full or step == num_steps - 1:
                blocks.append(assembly.drain())
        return join_by_agent(blocks)

    def _advance(self, is_last: bool) -> tuple[DecisionSteps, TerminalSteps]:
        self._step += 1
        random, ended = self._random, self._end_some(is_last)
        waiting = [
            life
            for lives in self.lives.values()
            for life in lives
            if life.end > self._step and (self._step - life.born) % life.period == 0
        ]
        for life in (*ended, *waiting):
            if life.acts:
                life.acts[-1].own, life.acts[-1].until = random.normal(), self._step
        over = self._columns(ended, [life.final for life in ended])
        truncated_ones = np.array([life.truncated for life in ended], np.bool_)
        seen = [random.standard_normal(3).astype(np.float32) for _ in waiting]
        decisions = DecisionSteps(**self._columns(waiting, seen))
        self._waiting = waiting
        return decisions, TerminalSteps(**over, truncated=truncated_ones)

    def _end_some(self, is_last: bool) -> list[Life]:
        """Agents and whole groups whose episodes end; new groups begin, and agents join others."""
        random, ended = self._random, list[Life]()
        for group, lives in list(self.lives.items()):
            alive = [life for life in lives if life.end > self._step]
            if not alive:
                continue
            shared, is_over, truncated = random.normal(), is_last or random.random() < 0.06, random.random() < 0.3
            for life in alive:
                if life.acts:
                    life.acts[-1].shared += shared
                if is_over or random.random() < 0.06:
                    life.end, life.final = self._step, random.standard_normal(3).astype(np.float32)
                    life.truncated = is_last or (truncated if is_over else random.random() < 0.2)
                    ended.append(life)
            alive = [life for life in alive if life.end > self._step]
            if not alive and not is_last:
                self._begin_group()
            elif alive and len(alive) < LARGEST and random.random() < 0.1:
                self._join(group)
        return ended

    def _act(self, decisions: DecisionSteps) -> Choice:
        count, actions = len(self._waiting), self._spec.actions
        continuous = self._random.standard_normal((count, actions.continuous)).astype(np.float32)
        discrete = self._random.integers(0, actions.branches or 1, (count, len(actions.branches)))
        for row, life in enumerate(self._waiting):
            seen = decisions.observations[0][row]
            life.acts.append(Act(self._step, seen, continuous[row], discrete[row]))
        return Choice(Actions(continuous, discrete), continuous, np.full((count, actions.num_columns), -1, np.float32))

    def _columns(self, lives: list[Life], seen: list[Any]) -> dict[str, Any]:
        paid = [life.acts[-1] if life.acts else Act(0, *[np.zeros(3)] * 3) for life in lives]
        return {
            "agent_ids": np.array([life.agent for life in lives], np.int64),
            "observations": (np.array(seen, np.float32).reshape(-1, 3),),
            "rewards": np.array([act.own for act in paid], np.float32),
            "group_ids": np.array([life.group for life in lives], np.int64),
            "group_rewards": np.array([act.shared for act in paid], np.float32),
        }

    def _begin_group(self) -> None:
        group = len(self.lives)
        self.lives[group] = []
        for _ in range(self._random.integers(1, LARGEST + 1)):
            self._join(group)

    def _join(self, group: int) -> None:
        """An agent that is there from this step on."""
        period = int(self._random.choice([1, 1, 1, 2, 3]))
        self.lives[group].append(Life(self._num_agents, group, period, max(self._step, 1)))
        self._num_agents += 1
