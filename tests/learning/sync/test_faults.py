"""What happens to one rank ends the update on all of them, and hangs none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.errors import NonFiniteError, SyncError
from tests.deadline import DEADLINE_SECONDS
from tests.learning.sync.faults import Outcome, learn_with_a_fault
from tests.learning.sync.ranks import Dead, Ranks, start_ranks
from tests.learning.sync.training import CONTINUOUS, Case

PPO = Case("ppo", CONTINUOUS, (2, 1, 1))
SAC = Case("sac", CONTINUOUS, (3, 2, 2), 4, hyperparameters={"steps_per_update": 5, "batch_size": 8})
CASES = {"ppo": PPO, "sac": SAC}
SECONDS = DEADLINE_SECONDS / 2


def of_fault(ranks: Ranks, name: str, fault: str, of_rank: int, deadline: float = SECONDS) -> list[Outcome]:
    found = ranks.run(learn_with_a_fault, CASES[name], of_rank, fault, deadline=deadline)
    for one in found:
        assert isinstance(one, Outcome | Dead), one.__notes__
    return found


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("ppo", "exits", marks=pytest.mark.slow),
        ("ppo", "is killed"),
        pytest.param("sac", "is killed", marks=pytest.mark.slow),
    ],
)
def test_a_rank_that_left_ends_the_update_of_the_others(name: str, fault: str, tmp_path: Path) -> None:
    with start_ranks(3, tmp_path) as ranks:
        *others, gone = of_fault(ranks, name, fault, of_rank=2)
    assert isinstance(gone, Dead)
    for rank, one in enumerate(others):
        assert isinstance(one.error, SyncError)
        assert one.seconds < SECONDS
        assert str(one.error).startswith(f"this is rank {rank} of 3, and another rank has left, or did not send ")
        assert one.num_updates == 2
        if name == "ppo":
            assert one.after == one.before
            assert str(one.error).endswith("; the state before this update was kept")
        assert isinstance(one.next_error, SyncError)
        assert one.in_the_end == one.after


@pytest.mark.parametrize("name", ["ppo", pytest.param("sac", marks=pytest.mark.slow)])
def test_no_rank_waits_longer_than_the_deadline_for_one_that_does_not_come(name: str, three: Ranks) -> None:
    found = of_fault(three, name, "is silent", of_rank=1, deadline=2)
    for one in found:
        assert isinstance(one.error, SyncError)
        assert isinstance(one.next_error, SyncError)
        assert one.after == one.before
        assert one.num_updates == 2
    assert "did not send the statistics of its rows within 2 s (Timed out waiting" in str(found[0].error)
    assert max(found[rank].seconds for rank in (0, 2)) < 4


@pytest.mark.parametrize("name", CASES)
def test_a_rank_that_raises_ends_the_update_of_the_others_at_once(name: str, three: Ranks) -> None:
    found = of_fault(three, name, "raises", of_rank=1)
    assert isinstance(found[1].error, ZeroDivisionError)
    for rank in (0, 2):
        assert isinstance(found[rank].error, SyncError)
        assert str(found[rank].error).startswith("rank 1 of 3 ended the update with an error, see its own message; ")
        assert found[rank].seconds < SECONDS
    assert {one.num_steps for one in found} == {0 if name == "ppo" else 1}
    assert found[0].after == found[2].after
    assert (found[0].after == found[0].before) == (name == "ppo")
    assert isinstance(found[1].next_error, ZeroDivisionError)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("fault", "text"), [("pays NaN", "agent 100"), ("pays infinity", "a reward must be")])
def test_a_reward_that_is_not_finite_ends_the_update_of_all_and_training_goes_on(
    name: str, fault: str, text: str, two: Ranks
) -> None:
    found = of_fault(two, name, fault, of_rank=1)
    assert all(isinstance(one.error, NonFiniteError) for one in found)
    assert str(found[1].error).startswith(text)
    assert str(found[0].error).startswith("rank 1 of 2 ended the update: a number there is not finite")
    for one in found:
        assert one.after == one.before
        assert one.next_error is None
    assert found[0].in_the_end == found[1].in_the_end != found[0].before


@pytest.mark.parametrize("name", CASES)
def test_one_rank_that_diverges_ends_the_update_of_all_with_the_same_message(name: str, two: Ranks) -> None:
    found = of_fault(two, name, f"{name} diverges", of_rank=0)
    assert all(isinstance(one.error, NonFiniteError) for one in found)
    assert len({str(one.error) for one in found}) == 1
    assert "is not finite at step 2" in str(found[0].error)
    assert found[0].after == found[1].after
    if name == "ppo":
        assert found[0].after == found[0].before


@pytest.mark.parametrize("name", CASES)
def test_one_rank_that_votes_to_stop_ends_the_update_of_all_after_the_same_minibatch(name: str, two: Ranks) -> None:
    found = of_fault(two, name, "stops", of_rank=1)
    for one in found:
        assert one.error is None
        assert one.num_steps == 2
        assert one.num_updates == 3
        assert one.next_error is None
    assert found[0].after == found[1].after
    assert found[0].in_the_end == found[1].in_the_end
