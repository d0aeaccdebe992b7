"""Policies of a trainer for the evaluation, the viewer and the exports, which have threads of their own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import TypeAlias

from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.specs import Policy

MakePolicy: TypeAlias = Callable[[bool], Policy]  # the bool: whether it takes the likeliest actions. Any thread


class PolicyCopies:
    """Implements MakePolicy: copies policies that never act. Holds no trainer, so that none outlives its run."""

    def __init__(self, make_policy: Callable[..., Policy], seed: int):
        """make_policy: of a trainer; without the argument `is_greedy`, there are no greedy ones."""
        self._maker = f"{make_policy.__module__}.{make_policy.__qualname__}"
        self._policies = {False: make_policy(seed)}
        if "is_greedy" in inspect.signature(make_policy).parameters:
            self._policies[True] = make_policy(seed, is_greedy=True)
        copy.deepcopy(self._policies)  # what cannot be copied is found now

    def __call__(self, is_greedy: bool) -> Policy:
        """Raises NotSupportedError."""
        if is_greedy not in self._policies:
            raise NotSupportedError(f"{self._maker} must take is_greedy, to make policies of the likeliest actions")
        return copy.deepcopy(self._policies[is_greedy])
