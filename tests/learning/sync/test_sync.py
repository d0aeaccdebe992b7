"""What ranks agree on, call by call."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.sync import ONE_RANK, OneRank
from rl_tui.engine.learning.trainer import make_trainer
from tests.learning.rollouts import SPEC
from tests.learning.sync import calls
from tests.learning.sync.ranks import Ranks
from tests.learning.sync.training import CONTINUOUS, CPU, Case

pytestmark = pytest.mark.usefixtures("transport")

ROWS = np.concatenate([calls.rows_of(rank) for rank in range(3)])


def same(found: list[object]) -> None:
    """Bit for bit."""
    for one in found[1:]:
        np.testing.assert_equal(one, found[0])


def test_sums_of_few_and_of_many_numbers_are_over_all_ranks(three: Ranks) -> None:
    found = three.results(calls.sums)
    same(found)
    number, few, many, gathered = found[0]
    assert (number, few.tolist(), many.tolist()) == (6.0, [4.5] * 2, [4.5] * 100)
    assert gathered.tolist() == [[0.5], [1.5], [2.5]]


def test_means_are_over_the_rows_of_all_ranks_of_which_one_has_none(three: Ranks) -> None:
    found = three.results(calls.means)
    same(found)
    of_columns, *firsts, of_columns_too, of_one_row, terms = found[0]
    for columns in (of_columns, of_columns_too):
        np.testing.assert_allclose(columns, ROWS.mean(0), rtol=1e-12)
    np.testing.assert_allclose(of_one_row, ROWS[0], rtol=1e-12)
    assert firsts == pytest.approx([ROWS[:, 0].mean()] * 6, rel=1e-6)
    assert terms == [[pytest.approx((0 * 1 + 1 * 2 + 2 * 3) / 6), pytest.approx(1)], [pytest.approx(2), 0]]


def test_a_vote_needs_all(three: Ranks) -> None:
    assert three.results(calls.votes) == [[True, False, False]] * 3


def test_every_row_is_of_one_rank_and_of_one_that_collects_more_are_more(three: Ranks) -> None:
    unequal, equal = zip(*three.results(calls.shares), strict=True)
    assert unequal == (([0], Fraction(1, 7)), ([1, 2, 3, 4, 5, 6], Fraction(4, 7)), ([7, 8, 9], Fraction(2, 7)))
    assert equal == tuple((rows, Fraction(1, 3)) for rows in ([0, 1, 2], [3, 4, 5], [6, 7, 8, 9]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_are_averaged_by_rows_and_that_of_no_rows_does_not_count(three: Ranks, dtype: str) -> None:
    found = three.results(calls.averages, dtype)
    same(found)
    gradients, may_continue = found[0]
    assert may_continue == [True, False, False]
    expected = [1, 2 * 2 / 7, 2 * 2 / 7]
    for own, values in zip(gradients, [expected, expected, [10 * 4 / 7] * 2], strict=True):
        assert own.dtype == dtype
        np.testing.assert_allclose(own, values, rtol=1e-6)


def test_statistics_are_those_of_one_process_and_a_copy_is_alone(three: Ranks) -> None:
    found = three.results(calls.statistics)
    alone = Normalizer(calls.COLUMNS)
    for update in range(50):
        alone.update(np.concatenate([calls.rows_of(rank, update) for rank in range(3)]).astype(np.float32))
    for state, size_of_copy in found:
        assert state.values == alone.state().values
        same([state.tensors, found[0][0].tensors])
        for name, array in alone.state().tensors.items():
            np.testing.assert_allclose(state.tensors[name], array, rtol=1e-12)
        assert size_of_copy == 1


def test_ranks_that_make_different_calls_are_reported_as_such(two: Ranks) -> None:
    found = two.results(calls.out_of_step)
    for rank, text in enumerate(found):
        expected = "the ranks are out of step (rank 0: STATISTICS[2], rank 1: VOTE[1]); nothing was kept"
        assert text == f"SyncError: this is rank {rank} of 2, and {expected}"


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_ranks_begin_with_the_same_weights_and_draw_differently(two: Ranks, name: str) -> None:
    """Also after both have loaded one state. `loss`, which only one of them calls, waits for no other rank."""
    case = Case(name, CONTINUOUS, (2, 2))
    first, second = two.results(calls.made, case)
    same([first["weights"], second["weights"]])
    assert first["rows_per_update"] == second["rows_per_update"] == {"ppo": 5120, "sac": 15}[name]
    assert first["random"] != second["random"]
    assert first["loaded"] != second["loaded"]
    assert not np.array_equal(first["acts"], second["acts"])
    assert "Losses/Policy Loss" in first["losses"]
    assert first["samples"] == second["samples"] == {}


def test_one_rank_changes_nothing() -> None:
    rows = np.ones((3, 2), np.float32)
    assert ONE_RANK.sum(rows) is rows
    assert (ONE_RANK.sum(3), ONE_RANK.all(False), ONE_RANK.seed(5), ONE_RANK.size) == (3, False, 5, 1)
    gradient, terms = torch.full((3,), 2.0), [[1.0]]
    assert [ONE_RANK.average_gradients([gradient], 0, may_continue) for may_continue in (True, False)] == [True, False]
    assert gradient.tolist() == [2, 2, 2]
    assert ONE_RANK.means(terms, [0]) is terms


class Two(OneRank):
    """As if there were another."""

    size = 2

    def __init__(self) -> None:
        self.rank = 0


class Alone(PPOTrainer):
    """An installed trainer that knows no ranks."""

    def __init__(self, spec: object, config: object, seed: int, device: torch.device):
        super().__init__(spec, config, seed, device)  # type: ignore[arg-type]  # passed on


def test_a_trainer_that_takes_no_sync_learns_on_one_rank_and_is_refused_by_name_on_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registered = registry.implementation
    monkeypatch.setattr(registry, "implementation", lambda *of: Alone if of[0] == "trainers" else registered(*of))
    settings = Case("ppo", CONTINUOUS, (1,)).settings
    assert isinstance(make_trainer(SPEC, settings, 0, CPU), Alone)
    with pytest.raises(NotSupportedError, match=r"trainers\.ppo: cannot learn on several ranks, Alone takes no sync"):
        make_trainer(SPEC, settings, 0, CPU, Two())
