"""Demonstrations of any source, once they are open."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rl_tui.engine.demonstrations.step_columns import StepColumns
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.specs import BehaviorSpec, Int64


@dataclass(frozen=True, slots=True)
class Origin:
    """Where they come from. names: of the recordings, each once. num_records: which were stored, also those that are no
    steps."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]
    num_records: int


class OpenedDemonstrations(Demonstrations, Protocol):
    """To derive from. spec: what the agent observes and does. steps: all but observations."""

    spec: BehaviorSpec
    steps: StepColumns

    @property
    def num_steps(self) -> int:
        """See Demonstrations."""
        return self.steps.num_steps

    @property
    def episodes(self) -> Int64:
        """See Demonstrations."""
        return self.steps.episodes

    @property
    @abstractmethod
    def origin(self) -> Origin:
        """Where they come from."""
