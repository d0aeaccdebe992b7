"""Behaviors that appear while the environment runs, and those that are teams of another."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.pools.teams import Teams, split_name
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Json,
    ObservationSpec,
    Steps,
    TerminalSteps,
)
from tests.sampling.driving import history, receive_all

WORLDS = "tests.sampling.worlds"


def make_pool(where: str, env: str = "Latecomers", **kwargs: Json) -> EnvironmentPool:
    """Three instances, which are in two workers or here."""
    source = EnvironmentSource(f"{WORLDS}:{env}", "B", kwargs)
    return SerialPool(source.env, source.make, 3) if where == "serial" else ProcessPool(source, 3, 2, 10.0)


@pytest.mark.parametrize("where", ["serial", "process"])
def test_behavior_appears_with_its_teams_as_one_and_every_team_gets_its_own_actions(where: str) -> None:
    pool = make_pool(where)
    try:
        pool.start()
        assert list(pool.specs) == ["Early"]
        assert pool.num_agents == {"Early": 3}
        pool.reset(1)
        for step in range(6):
            answers = receive_all(pool)
            assert list(pool.specs) == (["Early"] if step < 3 else ["Early", "Late"])
            for instance, answer in answers.items():
                assert list(answer) == list(pool.specs)
                for name, steps in answer.items():
                    assert pool.specs[name].name == name
                    ids = steps.decisions.agent_ids
                    own = {"Early": [0], "Late": [10, 11] if step == 3 else [10, 11, 20, 21, 22]}[name]
                    assert ids.tolist() == [agent * 3 + instance for agent in own]
                    newcomers = np.isin(ids // 3, [20, 21, 22] if step == 4 else [10, 11] if step == 3 else [])
                    paid = np.where(newcomers | (step == 0), 0, ids)
                    np.testing.assert_array_equal(steps.decisions.rewards, paid)
                    teams = None if name == "Early" else np.where(ids // 3 < 20, 0, 3).tolist()
                    found = steps.decisions.team_ids
                    assert (found if found is None else found.tolist()) == teams
                    seen = np.where(ids // 3 < 10, 0, np.where(ids // 3 < 20, 0.5, 1.5))
                    np.testing.assert_array_equal(steps.decisions.observations[0][:, 0], seen)
                done = {name: steps.decisions.agent_ids[:, None].astype(np.float32) for name, steps in answer.items()}
                none = {name: np.zeros((len(values), 0), np.int64) for name, values in done.items()}
                pool.send(instance, {name: Actions(values, none[name]) for name, values in done.items()})
        assert pool.num_agents == {"Early": 3, "Late": 15}
    finally:
        pool.close()


@pytest.mark.parametrize("where", ["serial", "process"])
@pytest.mark.parametrize(
    ("env", "kwargs", "words"),
    [
        ("LateInTurn", {}, r"instance \d.* behavior Late must have the observations and actions it has in instance \d"),
        (
            "Latecomers",
            {"names": ["Late?team=-1", "Late"]},
            r"instance \d.*a behavior must be named NAME or NAME.team=N, N a whole number from 0, got 'Late.team=-1'",
        ),
        (
            "Latecomers",
            {"ids": [[10, 11], [4, 11]]},
            r"instance \d.*agent_ids must be unique over the teams of a behavior, got 11 in Late.team=0 and in ",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_instance(
    where: str, env: str, kwargs: dict[str, Json], words: str
) -> None:
    pool = make_pool(where, env, **kwargs)
    try:
        pool.start()
        with pytest.raises(InstanceFailure, match=words):
            history(pool, 6)
    finally:
        pool.close()


def test_decisions_and_terminal_steps_have_the_team_of_their_name() -> None:
    """Team 3 has two agents of which one ends, team 0 has one that ends."""
    spec = BehaviorSpec("Late", (ObservationSpec("place", (1,)),), ActionSpec(1))
    teams = Teams()
    teams.add({"Late?team=0": spec, "Late?team=3": spec})

    def steps(waiting: list[int], ended: list[int]) -> Steps:
        seen, final = (np.array(ids) for ids in (waiting, ended))
        rewards = [np.zeros(len(ids), np.float32) for ids in (seen, final)]
        observed = [(of[:, None],) for of in rewards]
        terminals = TerminalSteps(final, observed[1], rewards[1], np.zeros(len(final), np.bool_))
        return Steps(DecisionSteps(seen, observed[0], rewards[0]), terminals)

    joined = teams.join({"Late?team=3": steps([7, 8], [8]), "Late?team=0": steps([], [1])})["Late"]
    assert joined.decisions.team_ids is not None
    assert joined.decisions.team_ids.tolist() == [3, 3]
    assert joined.terminals is not None
    assert joined.terminals.team_ids is not None
    assert joined.terminals.agent_ids.tolist() == [8, 1]
    assert joined.terminals.team_ids.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Soldier", ("Soldier", None)), ("My Soldier?team=0", ("My Soldier", 0)), ("a/b?team=12", ("a/b", 12))],
)
def test_name_is_a_behavior_and_a_team(name: str, expected: object) -> None:
    assert split_name(name) == expected


@pytest.mark.parametrize(
    "name",
    ["", "?team=1", "A?", "A?team=", "A?team=+1", "A?team=1.5", "A?team=²", "A?x=1", "A?team=1?team=2", "A?team=1&b=2"],
)
def test_name_with_anything_else_after_a_question_mark_is_refused(name: str) -> None:
    with pytest.raises(EnvironmentFailure, match="must be named NAME or NAME"):
        split_name(name)
