"""What an environment may return or raise: taken as it is meant, or refused with one clear line."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rl_tui.engine.errors import EnvironmentFailure, NonFiniteError
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.sampling.driving import history
from tests.sampling.returning import ERRORS, FORMS, VALUES

OURS = "engine/sampling"
QUICK = ["None", "text", "an enormous number", "a ragged list", "an array of texts of numbers", "what raises"]
FINE = {  # what is no mistake
    *((form, part, "2") for form, part in (("Returning", "reward"), ("Parallel", "rewards"), ("InTurns", "reward"))),
    *((form, part, "a mapping") for form, part in (("Returning", "info"), ("Parallel", "infos"), ("InTurns", "info"))),
    *(("Parallel", part, "a mapping") for part in ("REWARDS", "TERMINATIONS", "TRUNCATIONS", "INFOS")),
    *((form, part, "None") for form, part in (("Parallel", "infos"), ("InTurns", "info"))),
    *(("Base", part, "a list") for part in ("reward", "agent_id", "group_id", "group_reward")),
    *(("Base", part, "None") for part in ("group_id", "group_reward", "action_mask")),
    *(("Base", "action_mask", value) for value in ("a mapping", "an empty array")),
}


def pool_of(form: str, part: str, value: str, num_workers: int = 0) -> EnvironmentPool:
    env = f"{'mlagents:' if form == 'Base' else ''}tests.sampling.returning:{form}"
    source = EnvironmentSource(env, "B", {"part": part, "value": value})
    return ProcessPool(source, 1, num_workers, 60.0) if num_workers else SerialPool(env, source.make, 1)


def refusal_of(form: str, part: str, value: str, num_workers: int = 0) -> EnvironmentFailure | NonFiniteError | None:
    """How the pool fails, in no other way than by a failure of the environment; None where it does not."""
    pool = pool_of(form, part, value, num_workers)
    try:
        pool.start()
        history(pool, 6)
    except (EnvironmentFailure, NonFiniteError) as failure:
        return failure
    finally:
        pool.close()
    return None


def require_refused(form: str, values: Iterable[str]) -> None:
    """Every part of that form, replaced by each of these values, is refused with one line that is about it."""
    parts = {*FORMS[form].parts, *(["get_steps"] if form == "Base" else ["step"])}
    parts |= {"reset", *map(str.upper, FORMS[form].parts)} if form == "Parallel" else set()
    for part in sorted(parts | ({"reset"} if form == "Returning" else set())):
        for value in values:
            where = form, part, value
            refusal = refusal_of(*where)
            assert (refusal is None) == (where in FINE), (where, refusal)
            if refusal is not None:
                assert refusal.exit_code == (5 if isinstance(refusal, NonFiniteError) else 3), where
                assert "\n" not in str(refusal), where
                is_theirs = value == "what raises" and "evil" in str(refusal)
                assert is_theirs or not refusal.detail, (where, "a traceback of our own code explains nothing")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_of_another_type_is_refused_with_one_line(form: str) -> None:
    require_refused(form, QUICK)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("form", FORMS)
def test_everything_of_another_type_is_refused_with_one_line(form: str) -> None:
    require_refused(form, VALUES)


@pytest.mark.parametrize("form", FORMS)
def test_every_exception_is_a_failure_that_names_its_class_and_its_line(form: str) -> None:
    for name, make in ERRORS.items():
        refusal = refusal_of(form, "raises", name)
        assert isinstance(refusal, EnvironmentFailure), name
        assert f"step raised {type(make()).__name__}" in str(refusal), name
        assert ", at tests/sampling/returning.py:" in str(refusal), name
        assert "\n" not in str(refusal), name
        assert OURS not in refusal.detail, name


@pytest.mark.parametrize(
    ("form", "part", "value", "said", "num_workers"),
    [
        ("Returning", "terminated", "text", "terminated must be True or False, got 'no'", 0),
        ("Parallel", "rewards", "None", "the reward of a must be a number, got None", 0),
        ("Base", "interrupted", "text", "B: interrupted must be an array of numbers, got <U2", 0),
        ("Returning", "terminated", "text", "terminated must be True or False, got 'no'", 1),
        ("Returning", "raises", "Mute", r"raised Mute: \(its message is unknown: __str__ raised RuntimeError\)", 1),
    ],
)
def test_refusal_says_what_is_wrong_and_is_the_same_in_a_worker_process(
    form: str, part: str, value: str, said: str, num_workers: int
) -> None:
    refusal = refusal_of(form, part, value, num_workers)
    assert refusal is not None
    with pytest.raises(EnvironmentFailure, match=said):
        raise refusal
