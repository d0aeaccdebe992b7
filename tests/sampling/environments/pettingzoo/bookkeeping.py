"""Counts what every agent earns from the environment's own rewards, step by step."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

from rl_tui.engine.sampling.environments.pettingzoo.episodes import is_turn_based
from rl_tui.engine.specs import Ending

Key = tuple[int, Hashable]  # copy and agent


@dataclass
class Book:
    """By copy and agent, in the order of their first actions: a row for each action, [what followed it, its end]."""

    rows: dict[Key, list[list[float]]] = field(default_factory=dict)
    _open: set[Key] = field(default_factory=set)
    _early: dict[Key, float] = field(default_factory=dict)

    def begin_episode(self, copy: int) -> None:
        self._open = {key for key in self._open if key[0] != copy}
        self._early = {key: earned for key, earned in self._early.items() if key[0] != copy}

    def act(self, key: Key) -> None:
        self.rows.setdefault(key, []).append([self._early.pop(key, 0.0), Ending.CUT])
        self._open.add(key)

    def earn(self, key: Key, reward: float) -> None:
        if key in self._open:
            self.rows[key][-1][0] += reward
        else:
            self._early[key] = self._early.get(key, 0.0) + reward

    def end(self, key: Key, is_terminated: bool) -> None:
        if key in self._open:
            self.rows[key][-1][1] = Ending.TERMINATED if is_terminated else Ending.TRUNCATED
            self._open.remove(key)


def recorded(env: Any, copy: int, book: Book) -> Any:
    """The same environment, whose rewards are written into the book."""
    return Turns(env, copy, book) if is_turn_based(env) else AtOnce(env, copy, book)


class AtOnce(BaseParallelWrapper[Any, Any, Any]):
    def __init__(self, env: Any, copy: int, book: Book) -> None:
        super().__init__(env)
        self._copy, self._book = copy, book

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self._book.begin_episode(self._copy)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        for agent in actions:
            self._book.act((self._copy, agent))
        returned = self.env.step(actions)
        _, rewards, terminations, truncations, _ = returned
        for agent, reward in rewards.items():
            self._book.earn((self._copy, agent), reward)
        for agent in actions:
            if terminations[agent] or truncations[agent]:
                self._book.end((self._copy, agent), terminations[agent])
        return returned


class Turns(BaseWrapper[Any, Any, Any]):
    def __init__(self, env: Any, copy: int, book: Book) -> None:
        super().__init__(env)
        self._copy, self._book = copy, book

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self._book.begin_episode(self._copy)
        super().reset(seed=seed, options=options)

    def step(self, action: Any) -> None:
        agent = self.env.agent_selection
        if action is None:
            self._book.end((self._copy, agent), self.env.terminations[agent])
            super().step(None)
            return
        self._book.act((self._copy, agent))
        super().step(action)
        for each in self.env.agents:
            self._book.earn((self._copy, each), self.env.rewards[each])
