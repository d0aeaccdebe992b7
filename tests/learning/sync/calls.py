"""Calls of a Sync, made by every rank."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.rewards.scaling import RewardScaler
from rl_tui.engine.learning.sync import ProcessGroup, Sync
from rl_tui.engine.learning.trainer import make_trainer
from tests.learning.sync.training import CPU, SEED, Case

COLUMNS = 4


def rows_of(rank: int, seed: int = 0) -> np.ndarray:
    """f64[B, 4]: 5 rows of rank 0, none of rank 1, 2 of rank 2."""
    random = np.random.default_rng([seed, rank])
    return random.standard_normal(((5, 0, 2)[rank], COLUMNS)) * (rank + 1) + rank


def sums(sync: Sync) -> list[Any]:
    """Of a number, of a few, of many."""
    own = sync.rank + 0.5
    return [
        sync.sum(sync.rank + 1),
        sync.sum(np.full(2, own)),
        sync.sum(np.full(100, own)),
        sync.gather(np.array([own])),
    ]


def means(sync: Sync) -> list[Any]:
    """Over rows of numpy and torch; terms of mini-batches."""
    rows = rows_of(sync.rank)
    terms = [[float(sync.rank), np.float32(1)], [torch.tensor(np.nan if sync.rank == 1 else 2.0), 0.0]]
    averaged = sync.means(terms, [sync.rank + 1, len(rows)])
    return [
        sync.mean(rows),
        sync.mean(rows[:, 0]),
        sync.mean(rows[::-1].astype(np.float32)[:, 0]),
        sync.mean(torch.from_numpy(rows)[:, 0]),
        *sync.mean_of_each([rows[:, 0], rows[:, 0]]),
        *sync.mean_of_each([torch.from_numpy(rows)[:, 0]]),
        *sync.mean_of_each([rows, rows[:0] if sync.rank else rows[:1]]),
        [[float(number) for number in row] for row in averaged],
    ]


def votes(sync: Sync) -> list[bool]:
    """All for it; all but the last one."""
    return [sync.all(True), sync.all(sync.rank < sync.size - 1), sync.all(False)]


def shares(sync: Sync) -> list[Any]:
    """Of ranks that collect 1 : 4 : 2, and of equal ones: what of ten rows is a rank's, and its share."""
    unequal = ProcessGroup(60.0, parts=[1, 4, 2])
    return [(list(each.own_part(10)), each.share) for each in (unequal, sync)]


def averages(sync: Sync, dtype: str) -> tuple[list[np.ndarray], list[bool]]:
    """Of one gradient in numpy; of two in torch. That of rank 1, without rows, counts nothing. Then whether all ranks
    may continue: all, all but the last one, all but the first one."""
    rows, own = (5, 0, 2)[sync.rank], np.full(3, sync.rank, dtype)
    own[0] = np.nan if sync.rank == 1 else 1
    first, second = torch.from_numpy(own.copy()), torch.from_numpy(own[1:] * 10)
    may_continue = [
        sync.average_gradients([own], rows),
        sync.average_gradients([first, second], rows, sync.rank < sync.size - 1),
        sync.average_gradients([np.ones(1)], rows, sync.rank > 0),
    ]
    return [own, first.numpy(), second.numpy()], may_continue


def statistics(sync: Sync) -> list[Any]:
    """A normalizer's, after 50 updates of unequal rows, and of a copy that a rank made alone."""
    normalizer = Normalizer(COLUMNS, sync)
    for update in range(50):
        normalizer.update(rows_of(sync.rank, update).astype(np.float32))
    alone = copy.deepcopy(normalizer)
    if sync.rank == 0:
        alone.update(rows_of(0))
    copied = copy.deepcopy(RewardScaler(0.9, sync))
    return [normalizer.state(), copied._sync.size]


def out_of_step(sync: Sync) -> str:
    """One rank makes another call than the others."""
    try:
        with sync.together("nothing was kept"):
            if sync.rank == 1:
                sync.all(True)
            else:
                sync.sum(np.zeros(2))
    except RlTuiError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def made(sync: Sync, case: Case) -> dict[str, Any]:
    """What a rank begins with, and continues with from the state of rank 0."""
    trainer = make_trainer(case.spec, case.settings, SEED, CPU, sync)
    block = next(case.blocks(sync.rank))[0]
    losses = trainer.loss(block) if sync.rank == 0 else {}
    found = {
        "weights": trainer.weights().arrays,
        "random": trainer._random.random(),  # type: ignore[attr-defined]  # of ActorTrainer
        "acts": trainer.make_policy(3).act(_decisions(block)).actions.continuous,
        "rows_per_update": trainer.rows_per_update,
        "losses": losses,
        "samples": trainer.add(block),
    }
    loaded = make_trainer(case.spec, case.settings, SEED, CPU)
    trainer.load(loaded.state())
    return {**found, "loaded": trainer._random.random()}  # type: ignore[attr-defined]  # of ActorTrainer


def _decisions(block: Any) -> Any:
    from rl_tui.engine.specs import DecisionSteps

    rows = block.num_rows
    return DecisionSteps(
        np.arange(rows), tuple(np.ones_like(o) for o in block.observations), np.zeros(rows, np.float32)
    )
