"""What a worker is to collect in one round, before it waits for the next one."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rl_tui.engine.specs import Json

NO_END = 1 << 60  # rows
OVER = -1


@dataclass(frozen=True, slots=True)
class Share:
    """One behavior's part of a round. Implements `Demand` of the worker's own collector.

    num_rows: after which the worker waits. num_left: after which training ends; OVER: it has ended already. longest:
    rows of the longest block.
    """

    num_rows: int
    num_left: int
    longest: int

    @property
    def rows_per_update(self) -> int:
        """Those of the round."""
        return self.num_rows

    def rows_left(self, num_rows: int) -> int:
        """Rows until training ends, after the first `num_rows` of this round."""
        return self.num_left - num_rows

    def is_complete(self, num_given: int) -> bool:
        """Whether so many rows are all."""
        return num_given >= self.num_rows or num_given >= self.num_left > OVER

    def to_json(self) -> Json:
        """What `Share(**...)` reads."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


NEWCOMERS_SHARE = Share(NO_END, NO_END, longest=2048)  # of a behavior that appears in the middle of a round
