"""The replay buffer of a behavior between rank 0, which has its file, and the others, each of which has a part."""

from __future__ import annotations

from collections.abc import Iterable

from rl_tui.engine.learning.replay.redistribution import dealt_out, joined, slices
from rl_tui.engine.running.ranks.messages import ReplayRows
from rl_tui.engine.running.ranks.role import Role
from rl_tui.engine.specs import State


class ReplayParts:
    """What has arrived of the others' parts.

    missing: the ranks of which something has not.
    """

    def __init__(self, behavior: str, ranks: Iterable[int]) -> None:
        self.behavior = behavior
        self.missing = set(ranks)
        self._slices: dict[int, list[State]] = {rank: [] for rank in self.missing}

    def add(self, rank: int, rows: ReplayRows) -> None:
        """The next one of that rank."""
        if rows.behavior != self.behavior or rank not in self.missing:
            return  # of a save that was given up
        if rows.state is not None:
            self._slices[rank].append(rows.state)
        if rows.is_last:
            self.missing.remove(rank)

    @property
    def complete(self) -> list[State]:
        """Of every rank that has sent all of its part, in their order."""
        return [rows for rank, own in self._slices.items() if rank not in self.missing for rows in own]


def messages_of(behavior: str, replay: State | None) -> Iterable[ReplayRows]:
    """What carries a part: slices, so that the others are heard between them."""
    if replay is not None:
        for rows in slices(replay):
            yield ReplayRows(behavior, rows)
    yield ReplayRows(behavior, None, is_last=True)


def shared_out(role: Role, behavior: str, replay: State | None) -> State | None:
    """This rank's part of what rank 0 has loaded; None where that is nothing. Raises SyncError.

    replay: on rank 0.
    """
    if not role.leads:
        return _received(role)
    parts = iter([None] * role.size) if replay is None else dealt_out(replay, role.parts)
    own = next(parts)
    for link, part in zip(role.links, parts, strict=True):
        for message in messages_of(behavior, part):
            link.send(message)
    return own


def _received(role: Role) -> State | None:
    found = list[State]()
    while not (message := role.receive(ReplayRows)).is_last:
        assert message.state is not None
        found.append(message.state)
    return joined(found) if found else None
