"""What the ranks of a distributed training agree on. A rank is a process that learns from its own experience.

All ranks make the same calls in the same order, and get the same results, bit for bit. On one rank every call returns
what it was given.

Shapes: R ranks, B rows of this rank, K numbers, M mini-batches, T terms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from enum import IntEnum
from fractions import Fraction
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from rl_tui.engine.errors import NonFiniteError, RlTuiError, SyncError
from rl_tui.engine.learning.networks.flat import on_host

Array: TypeAlias = Any  # numpy array or torch tensor
Float64: TypeAlias = NDArray[np.float64]


class Sync(Protocol):
    """Agreement between ranks. Used by one thread; the calls that exchange anything belong into `together`."""

    rank: int  # from 0
    size: int  # the number of ranks
    share: Fraction  # of the steps that all ranks collect: as many as this one does

    def together(self, kept: str) -> AbstractContextManager[None]:
        """The calls of one update. What a rank raises in here ends it on all ranks, which raise, too, at their next
        call: NonFiniteError if it was one, otherwise SyncError.

        kept: what the message says about what was learned.
        """

    def gather(self, values: Float64) -> Float64:
        """f64[R, K]: the f64[K] of all ranks."""

    def sum(self, values: Array) -> Array:
        """A number, or f64[K], summed over ranks."""

    def mean(self, values: Array) -> Array:
        """The mean over the rows [B, ...] of all ranks; a rank may have none. Several ranks get it in float64, on the
        host."""

    def mean_of_each(self, values: Sequence[Array]) -> Sequence[Array]:
        """`mean` of M arrays, whose rows have the same shape, in one exchange."""

    def average_gradients(self, gradients: Sequence[Array], rows: int, may_continue: bool = True) -> bool:
        """Replace flat gradients, means over this many rows, by the means over the rows of all ranks.

        On a rank without rows their values do not count. Returns whether `may_continue` is true on all ranks, which so
        decide without another exchange whether this mini-batch is the last.
        """

    def means(self, terms: Sequence[Sequence[Array]], rows: Sequence[int]) -> Sequence[Sequence[Array]]:
        """Terms of M mini-batches, means over this rank's rows of each, as means over the rows of all ranks.

        rows: M numbers, 0 where the terms do not count.
        """

    def all(self, flag: bool) -> bool:
        """Whether it is true on all ranks."""

    def own_part(self, number: int) -> range:
        """Which of so many rows are this rank's: those of all ranks are all of them."""

    def seed(self, seed: int) -> int:
        """The seed for what has to differ between ranks, from one that they share."""


class OneRank:
    """Training in one process: nothing is exchanged, and nothing changes."""

    def __init__(self) -> None:
        self.rank, self.size, self.share = 0, 1, Fraction(1)

    def together(self, kept: str) -> AbstractContextManager[None]:
        """See Sync."""
        return nullcontext()

    def gather(self, values: Float64) -> Float64:
        """See Sync."""
        return values[None]

    def sum(self, values: Array) -> Array:
        """See Sync."""
        return values

    def mean(self, values: Array) -> Array:
        """See Sync."""
        return values.mean(0)

    def mean_of_each(self, values: Sequence[Array]) -> Sequence[Array]:
        """See Sync."""
        return [each.mean(0) for each in values]

    def average_gradients(self, gradients: Sequence[Array], rows: int, may_continue: bool = True) -> bool:
        """See Sync."""
        return may_continue

    def means(self, terms: Sequence[Sequence[Array]], rows: Sequence[int]) -> Sequence[Sequence[Array]]:
        """See Sync."""
        return terms

    def all(self, flag: bool) -> bool:
        """See Sync."""
        return flag

    def own_part(self, number: int) -> range:
        """See Sync."""
        return range(number)

    def seed(self, seed: int) -> int:
        """See Sync."""
        return seed


ONE_RANK: Final[Sync] = OneRank()


class _Kind(IntEnum):
    """What ranks exchange, so that one that is out of step is found."""

    STATISTICS = 1
    GRADIENTS = 2
    VOTE = 3
    END = 4


class _Status(IntEnum):
    WELL = 0
    NOT_FINITE = 1
    FAILED = 2


_WAITS_FOR = {
    _Kind.STATISTICS: "the statistics of its rows",
    _Kind.GRADIENTS: "the gradient of a mini-batch",
    _Kind.VOTE: "its vote whether to continue",
    _Kind.END: "the end of the update",
}
_HEADER = 3  # status, kind, K
ROOM = 16  # numbers of a message; more follow in another one


Weigh: TypeAlias = Callable[[Float64], Float64]


class Transport(Protocol):
    """How what ranks have to say reaches the others. Used by one thread. Both methods raise RuntimeError once a rank is
    lost.

    waited: seconds in them.
    """

    waited: float

    def gather(self, values: Float64) -> Float64:
        """f64[R, K]: the f64[K] of all ranks."""

    def reduce(self, message: Float64, vector: Array, weigh: Weigh) -> Float64:
        """Replace a vector by the weighted sum of those of all ranks, and gather a message of at most ROOM numbers.

        weigh: makes the weights f64[R] of all from their messages, or raises, and then nothing is replaced.
        """


class Gloo:
    """Implements Transport by torch.distributed. All ranks make theirs in the same order: each has connections of its
    own."""

    def __init__(self, deadline: float, clock: Callable[[], float], *, over_nccl: bool) -> None:
        """See ProcessGroup."""
        from torch import distributed

        self.waited = 0.0
        self._distributed, self._clock = distributed, clock
        self._group = self._of_gpus = distributed.new_group(timeout=timedelta(seconds=deadline), backend="gloo")
        if over_nccl:
            os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # else a lost rank would end this process
            self._of_gpus = distributed.new_group(timeout=timedelta(seconds=deadline), backend="nccl")
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def gather(self, values: Float64) -> Float64:
        """See Transport."""
        received = torch.empty(self.size, len(values), dtype=torch.float64)
        with self._counting():
            self._distributed.all_gather(list(received.unbind()), torch.from_numpy(values), group=self._group)
        gathered: Float64 = received.numpy()
        return gathered

    def reduce(self, message: Float64, vector: Array, weigh: Weigh) -> Float64:
        """See Transport."""
        messages = self.gather(message)
        flat, weight = torch.as_tensor(vector), weigh(messages)[self.rank]  # the same memory
        if weight:
            flat *= weight
        else:
            flat.zero_()
        with self._counting():
            self._distributed.all_reduce(flat, group=self._of_gpus if flat.is_cuda else self._group)
        return messages

    @contextmanager
    def _counting(self) -> Iterator[None]:
        start = self._clock()
        try:
            yield
        finally:
            self.waited += self._clock() - start


class ProcessGroup:
    """Ranks that are the processes of torch.distributed, which the caller has initialized.

    Every exchange begins with a short message of each rank, by which all know that the others are well and make the
    same call: a rank that failed says so instead of being waited for. Once a rank was lost, every call raises.
    """

    def __init__(
        self,
        deadline: float,
        clock: Callable[[], float] = lambda: 0.0,
        *,
        over_nccl: bool = False,
        parts: Sequence[int] = (),
    ):
        """deadline: in seconds, how long a rank waits for the others, who may still be collecting experience. clock: in
        seconds, for `waited`. over_nccl: gradients on GPUs, of which each rank has its own; everything else is over
        gloo. (Not run on GPUs yet.) parts: how much each rank collects beside the others; alike without.

        All ranks make their groups in the same order.
        """
        gloo = Gloo(deadline, clock, over_nccl=over_nccl)
        self.rank, self.size = gloo.rank, gloo.size
        self._parts = parts or [1] * gloo.size
        self.share = Fraction(self._parts[gloo.rank], sum(self._parts))
        self.transport: Transport = gloo
        self._deadline = deadline
        self._kept = "nothing was exchanged"
        self._lost = ""  # why no exchange is possible any more
        self._caused_by_another: RlTuiError | None = None  # what this rank raised last because of another rank

    @property
    def waited(self) -> float:
        """Seconds in exchanges."""
        return self.transport.waited

    def __deepcopy__(self, memo: object) -> Sync:
        """A copy, as `Trainer.loss` makes of reward signals, computes alone."""
        return ONE_RANK

    @contextmanager
    def together(self, kept: str) -> Iterator[None]:
        """See Sync."""
        self._kept = kept
        try:
            yield
        except Exception as error:
            if error is not self._caused_by_another:
                status = _Status.NOT_FINITE if isinstance(error, NonFiniteError) else _Status.FAILED
                with suppress(SyncError):
                    self._exchange_message(_Kind.END, np.empty(0), status)
            raise
        self._exchange(_Kind.END, np.empty(0))

    def gather(self, values: Float64) -> Float64:
        """See Sync."""
        return self._exchange(_Kind.STATISTICS, values)

    def sum(self, values: Array) -> Array:
        """See Sync."""
        summed = self._exchange(_Kind.STATISTICS, np.ravel(values).astype(np.float64)).sum(0)
        return summed if np.ndim(values) else float(summed[0])

    def mean(self, values: Array) -> Array:
        """See Sync."""
        return self.mean_of_each([values])[0]

    def mean_of_each(self, values: Sequence[Array]) -> Sequence[Array]:
        """See Sync."""
        sums = _sums(values)
        own = np.column_stack([[len(each) for each in values], sums.reshape(len(values), -1)])
        summed = self.sum(own.ravel()).reshape(own.shape)
        means = (summed[:, 1:] / np.maximum(summed[:, :1], 1)).reshape(sums.shape)
        return list(means) if means.ndim > 1 else means.tolist()  # numbers, so that float32 minus a mean is float32

    def average_gradients(self, gradients: Sequence[Array], rows: int, may_continue: bool = True) -> bool:
        """See Sync."""
        tensors = [torch.as_tensor(gradient) for gradient in gradients] if len(gradients) > 1 else []  # the same memory
        vector = torch.cat(tensors) if tensors else gradients[0]
        own = np.array([rows, may_continue], np.float64)
        with self._waiting(_Kind.GRADIENTS):
            messages = self.transport.reduce(self._message(_Kind.GRADIENTS, own, _Status.WELL), vector, self._shares)
        if tensors:
            for tensor, averaged in zip(tensors, torch.split(vector, list(map(len, tensors))), strict=True):
                tensor.copy_(averaged)
        return bool(messages[:, _HEADER + 1].all())

    def _shares(self, messages: Float64) -> Float64:
        """f64[R]: of each rank's rows. Raises as `_exchange`."""
        self._require_same(messages)
        rows: Float64 = messages[:, _HEADER]
        return rows / max(1.0, float(rows.sum()))

    def means(self, terms: Sequence[Sequence[Array]], rows: Sequence[int]) -> Sequence[Sequence[Array]]:
        """See Sync."""
        weights = np.array(rows, np.float64)[:, None]
        fewest = min(map(len, terms))  # a custom loss may have come or gone meanwhile
        own = np.array(on_host([term for row in terms for term in row[:fewest]])).reshape(len(terms), fewest)
        own = np.where(weights, own, 0) * weights
        summed = self.sum(np.concatenate([weights, own], axis=1).ravel()).reshape(len(terms), -1)
        averaged: list[list[float]] = (summed[:, 1:] / np.maximum(summed[:, :1], 1)).tolist()
        return averaged

    def all(self, flag: bool) -> bool:
        """See Sync."""
        return bool(self._exchange(_Kind.VOTE, np.array([flag], np.float64)).all())

    def own_part(self, number: int) -> range:
        """See Sync."""
        begin, end, total = (sum(self._parts[:rank]) for rank in (self.rank, self.rank + 1, self.size))
        return range(number * begin // total, number * end // total)

    def seed(self, seed: int) -> int:
        """See Sync."""
        return int(np.random.SeedSequence([seed, self.rank]).generate_state(1, np.uint64)[0])

    def _exchange(self, kind: _Kind, values: Float64) -> Float64:
        """f64[R, K]: the f64[K] of all ranks. Raises SyncError, or NonFiniteError for what another rank found."""
        messages = self._exchange_message(kind, values, _Status.WELL)
        self._require_same(messages)
        if len(values) <= ROOM - _HEADER:
            return messages[:, _HEADER : _HEADER + len(values)]
        with self._waiting(kind):
            return self.transport.gather(values)

    def _exchange_message(self, kind: _Kind, values: Float64, status: _Status) -> Float64:
        with self._waiting(kind):
            return self.transport.gather(self._message(kind, values, status))

    @staticmethod
    def _message(kind: _Kind, values: Float64, status: _Status) -> Float64:
        message = np.zeros(ROOM)
        message[:_HEADER] = status, kind, len(values)
        if len(values) <= ROOM - _HEADER:
            message[_HEADER : _HEADER + len(values)] = values
        return message

    def _require_same(self, messages: Float64) -> None:
        """All ranks are well, and make the same call."""
        first, *others = messages[:, :_HEADER].tolist()
        if first[0] == _Status.WELL and all(other == first for other in others):
            return
        self._require_well(messages)
        calls = [f"rank {rank}: {_Kind(int(row[1])).name}[{int(row[2])}]" for rank, row in enumerate(messages)]
        raise self._loses(f"the ranks are out of step ({', '.join(calls)})")

    def _require_well(self, messages: Float64) -> None:
        """Raise if another rank has ended the update."""
        status = messages[:, 0]
        if not status.any():
            return
        failed = int(status.argmax() if _Status.NOT_FINITE not in status else (status == _Status.NOT_FINITE).argmax())
        who = f"rank {failed} of {self.size} ended the update"
        self._caused_by_another = (
            NonFiniteError(f"{who}: a number there is not finite, its own message says which; {self._kept}")
            if status[failed] == _Status.NOT_FINITE
            else SyncError(f"{who} with an error, see its own message; {self._kept}")
        )
        raise self._caused_by_another

    @contextmanager
    def _waiting(self, kind: _Kind) -> Iterator[None]:
        """An exchange that fails is a SyncError."""
        if self._lost:
            raise self._loses(self._lost)
        try:
            yield
        except RuntimeError as error:  # of a transport: a deadline, a closed connection
            reason = re.sub(r"^\[\S*\] ", "", str(error)).partition(". This is")[0]
            text = f"another rank has left, or did not send {_WAITS_FOR[kind]} within {self._deadline:g} s ({reason})"
            raise self._loses(text) from error

    def _loses(self, reason: str) -> SyncError:
        self._lost = reason
        self._caused_by_another = SyncError(f"this is rank {self.rank} of {self.size}, and {reason}; {self._kept}")
        return self._caused_by_another


def _sums(values: Sequence[Array]) -> Float64:
    """f64[M, ...]: over the rows of each."""
    if isinstance(values[0], np.ndarray):
        return np.stack([each.sum(0, dtype=np.float64) for each in values])
    summed: Float64 = torch.stack([each.sum(0, dtype=torch.float64) for each in values]).cpu().numpy()
    return summed
