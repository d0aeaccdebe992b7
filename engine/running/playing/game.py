"""One game that a person plays: what the person's agent sees and earns, and how it ends."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.config.behavior import SelfPlaySettings
from rl_tui.engine.experience import take_decisions
from rl_tui.engine.running.games.rules import Rules
from rl_tui.engine.running.playing.boards import board_of, fields_of, is_by_column
from rl_tui.engine.running.playing.episodes import seen_of
from rl_tui.engine.session.games import Board, Result
from rl_tui.engine.session.watching import Scene, Seen
from rl_tui.engine.specs import BehaviorSpec, Bool, DecisionSteps, Int64, Observations, Steps

MOST_ANSWERS = 16  # more are of no use to the person


class Game:
    """Used by one thread. number: from 1.

    waiting: the person's agent, alone, where it must act. is_over: its episode has ended. reward: of its last step;
    total: of all. answers: what the others have chosen since the person's last action.
    """

    def __init__(self, number: int) -> None:
        self.waiting: DecisionSteps | None = None
        self.is_over = False
        self.reward = self.total = 0.0
        self.answers: list[int] = []
        self.choice: int | None = None  # the person's last one
        self.num_steps = 0
        self._number = number
        self._seen: tuple[Seen, ...] = ()
        self._board = SeenBoard()

    def see(self, steps: Steps | None, agent: int, spec: BehaviorSpec) -> None:
        """What followed the last actions, for the person's agent of this behavior."""
        self.waiting = None
        if steps is None:
            return
        decisions, ended = steps.decisions, steps.terminals
        if ended is not None and agent in ended.agent_ids and self.choice is not None:
            row = ended.agent_ids.tolist().index(agent)
            self.is_over = True
            self._look(spec, ended.observations, row, None, float(ended.total_rewards[row]))
        elif agent in decisions.agent_ids:
            row = decisions.agent_ids.tolist().index(agent)
            self.waiting = take_decisions(decisions, np.array([row]))  # a copy: the pool reuses its memory
            mask = self.waiting.action_mask
            self._look(spec, self.waiting.observations, 0, mask, float(decisions.total_rewards[row]))

    def act(self, choice: int) -> None:
        """The person's agent takes it."""
        self.choice = choice
        self.answers.clear()
        self._board.act()

    def note_answers(self, choices: Int64) -> None:
        """Others have chosen these, i64[N]."""
        self.answers = [*self.answers, *choices.tolist()][-MOST_ANSWERS:]

    def is_allowed(self, spec: BehaviorSpec) -> tuple[bool, ...]:
        """Of each choice."""
        if self.is_over:
            return (False,) * spec.actions.mask_size
        mask = None if self.waiting is None else self.waiting.action_mask
        return (True,) * spec.actions.mask_size if mask is None else tuple(mask[0].tolist())

    @property
    def board(self) -> Board | None:
        """Where the game is known to have one."""
        return self._board.board

    def result(self, settings: SelfPlaySettings | None) -> Result:
        """By the sign of the last reward, or as the run's self-play decides."""
        return Rules.of(settings).decide(self.reward, self.total)

    def scene(self, behavior: str) -> Scene:
        """The numbers of a scene."""
        return Scene(
            behavior=behavior,
            at=0.0,
            state="playing",
            episode=self._number,
            step=self.num_steps,
            total=self.total,
            reward=self.reward,
            discrete=() if self.choice is None else (self.choice,),
            seen=self._seen,
        )

    def _look(self, spec: BehaviorSpec, observations: Observations, row: int, mask: Bool | None, reward: float) -> None:
        if self.choice is not None:
            self.num_steps += 1
            self.reward = reward
            self.total += reward
        self._seen = seen_of(spec, observations, row)
        self._board.look(fields_of(spec, observations, row), None if mask is None else mask[0], is_over=self.is_over)


class SeenBoard:
    """The board as the person's agent has observed it in one game. board: None until one is recognized, and from when
    something else than that is observed."""

    def __init__(self) -> None:
        self.board: Board | None = None
        self._fields: Int64 | None = None
        self._before: Int64 | None = None  # when the person last acted
        self._has_looked = False

    def look(self, fields: Int64 | None, allowed: Bool | None, *, is_over: bool) -> None:
        """fields: see `fields_of`. allowed: bool[choices], which decides whether they are a board; None: all."""
        by_column = None
        if is_over and self.board is not None:
            by_column = self.board.by_column
        elif fields is not None and allowed is not None and (self.board is not None or not self._has_looked):
            by_column = is_by_column(fields, allowed)
        self._has_looked = True
        if fields is None or by_column is None:
            self.board = None
            return
        self.board, self._fields = board_of(fields, by_column, self._before), fields

    def act(self) -> None:
        """What changes from now on is new to the person."""
        self._before = self._fields
