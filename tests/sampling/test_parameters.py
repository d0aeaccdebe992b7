"""Environment parameters: what samplers draw, and how values reach environments."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.parameters import Parameters, ParameterValues, values_from_json, values_to_json, with_seeds
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import discrete, history, receive_all
from tests.sampling.parameterized import Shown, wrapped

DRAWS = 100_000
FARTHEST = 1.95 / math.sqrt(DRAWS)  # Kolmogorov-Smirnov at a level of 0.001
OWN = "tests.sampling.parameterized:Own"
SIZES = "{sampler_type: uniform, sampler_parameters: {min_value: 1, max_value: 2, seed: 3}}"


def values_of(text: str, run_seed: int = 0) -> ParameterValues:
    """The parameters of a file, with seeds."""
    written = parse_config(f"environment_parameters:\n{text}".encode(), "c.yaml").environment_parameters
    assert written is not None
    return cast(ParameterValues, with_seeds(written, run_seed))


def drawn(text: str) -> np.ndarray:
    parameters = Parameters(values_of(f"  a: {text}"))
    return np.sort([parameters.draw("a") for _ in range(DRAWS)])


def farthest(sorted_draws: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance between the share of draws up to each draw, and what it should be there."""
    shares = np.arange(DRAWS + 1) / DRAWS
    return float(max(np.abs(expected - shares[1:]).max(), np.abs(expected - shares[:-1]).max()))


def test_uniform_draws_are_spread_evenly_between_their_bounds() -> None:
    found = drawn("{sampler_type: uniform, sampler_parameters: {min_value: -3, max_value: 5, seed: 1}}")
    assert farthest(found, (found + 3) / 8) < FARTHEST


def test_gaussian_draws_are_normally_distributed() -> None:
    found = drawn("{sampler_type: gaussian, sampler_parameters: {mean: 2, st_dev: 0.5, seed: 1}}")
    expected = np.array([0.5 * (1 + math.erf((x - 2) / 0.5 / math.sqrt(2))) for x in found.tolist()])
    assert farthest(found, expected) < FARTHEST


def test_an_interval_is_chosen_as_often_as_it_is_long() -> None:
    text = "{sampler_type: multirangeuniform, sampler_parameters: {intervals: [[7, 10], [-1, 0], [20, 20]], seed: 1}}"
    found = drawn(text)
    inside = np.where(found < 5, (found + 1) / 4, 1 / 4 + (found - 7) / 4)
    assert farthest(found, inside) < FARTHEST
    assert not ((found > 0) & (found < 7)).any()
    assert found.max() <= 10


def test_intervals_that_are_single_numbers_are_chosen_equally_often() -> None:
    found = drawn("{sampler_type: multirangeuniform, sampler_parameters: {intervals: [[2, 2], [4, 4]], seed: 1}}")
    assert set(found.tolist()) == {2.0, 4.0}
    assert abs((found == 2).mean() - 0.5) < 0.01


def test_a_constant_and_a_number_never_change() -> None:
    parameters = Parameters(values_of("  a: {sampler_type: constant, sampler_parameters: {value: 4}}\n  b: 7"))
    assert [parameters.draw_all() for _ in range(3)] == [{"a": 4.0, "b": 7.0}] * 3


def test_an_unknown_parameter_has_its_default_or_is_an_error_that_names_the_others() -> None:
    parameters = Parameters({"a": 1.0})
    assert parameters.draw("b", 5.0) == 5.0
    with pytest.raises(KeyError, match="'b': must be one of a"):
        parameters.draw("b")


def test_seeds_that_are_not_given_count_from_the_seed_of_the_run_in_the_order_of_the_file() -> None:
    uniform = "{sampler_type: uniform, sampler_parameters: {min_value: 0%s}}"
    text = f"""
  a: {uniform % ""}
  b: 3
  c:
    curriculum:
      - {{name: x, value: {uniform % ""}, completion_criteria: {{behavior: B}}}}
      - {{name: y, value: {uniform % ", seed: 99"}, completion_criteria: {{behavior: B}}}}
      - {{name: z, value: {uniform % ""}}}
  d: {uniform % ""}
"""
    found = [values_of(text, 100)[name] for name in "ad"]
    assert [one.sampler_parameters.seed for one in cast(list[Any], found)] == [100, 104]
    lessons = cast(Any, values_of(text, 100)["c"]).curriculum
    assert [lesson.value.sampler_parameters.seed for lesson in lessons] == [102, 99, 103]


def test_every_copy_draws_other_numbers_and_the_same_ones_again() -> None:
    values = values_of(f"  size: {SIZES}")

    def draws() -> list[list[float]]:
        first = Parameters(values, copy=4)
        return [[first.of_copy(index).draw("size") for _ in range(5)] for index in range(3)]

    again = draws()
    assert again == draws()
    assert len({number for numbers in again for number in numbers}) == 15
    assert Parameters(values, copy=6).draw("size") == again[2][0]


def test_a_sampler_that_stays_the_same_goes_on_drawing_when_others_change() -> None:
    values = dict(values_of(f"  size: {SIZES}\n  a: 1"))
    alone = Parameters(values)
    expected = [alone.draw("size") for _ in range(4)]
    before = Parameters(values)
    begun = [before.draw("size") for _ in range(2)]
    after = Parameters({**values, "a": 2.0}, earlier=before)
    assert begun + [after.draw("size") for _ in range(2)] == expected


def test_values_cross_a_pipe() -> None:
    values = values_of(f"  size: {SIZES}\n  a: 1\n  b: {{sampler_type: gaussian, sampler_parameters: {{st_dev: 2}}}}")
    assert values_from_json(values_to_json(values)) == values


def loop_of(copies: list[gymnasium.Env[Any, Any]], text: str, **attributes: str) -> GymnasiumLoop:
    loop = GymnasiumLoop("B", copies, attributes)
    loop.set_parameters(Parameters(values_of(text)))
    return loop


def seen(loop: GymnasiumLoop, num_steps: int) -> np.ndarray:
    """What each copy observes after a reset and as many steps."""
    steps = loop.reset(1)["B"]
    for _ in range(num_steps):
        steps = loop.step({"B": discrete(*[0] * len(steps.decisions.agent_ids))})["B"]
    return steps.decisions.observations[0]


def test_gymnasium_environments_get_parameters_in_the_options_of_a_reset_and_in_attributes() -> None:
    copies: list[gymnasium.Env[Any, Any]] = [Shown(), wrapped()]
    loop = loop_of(copies, "  size: 2.5\n  gravity: -3\n  count: 7", gravity="gravity", count="count")
    assert seen(loop, 0).tolist() == [[2.5, -3.0, 7.0]] * 2
    assert cast(Shown, copies[1].unwrapped).options == {"size": 2.5}


def test_every_episode_of_every_copy_draws_again() -> None:
    text = f"  size: {SIZES}"
    loop = loop_of([Shown(), Shown()], text)
    sizes = {float(size) for num_steps in (0, 2, 4) for size in seen(loop, num_steps)[:, 0]}
    assert len(sizes) == 6
    assert seen(loop_of([Shown()], text), 2)[0, 0] == seen(loop_of([Shown()], text), 2)[0, 0]


def test_within_an_episode_a_parameter_stays() -> None:
    loop = loop_of([Shown()], "  size: 1")
    loop.reset(1)
    loop.set_parameters(Parameters({"size": 2.0}))
    during = loop.step({"B": discrete(0)})["B"].decisions.observations[0][0, 0]
    after = loop.step({"B": discrete(0)})["B"].decisions.observations[0][0, 0]
    assert (during, after) == (1.0, 2.0)


def test_without_parameters_nothing_is_passed_to_a_reset() -> None:
    copy = Shown()
    GymnasiumLoop("B", [copy]).reset(1)
    assert copy.options is None


def test_an_attribute_that_the_environment_does_not_have_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"must be an attribute of Shown, got 'gravty'. Did you mean gravity\?"):
        loop_of([wrapped()], "  g: 1", g="gravty")


def pool_of(where: str, source: EnvironmentSource, copies: int) -> EnvironmentPool:
    return ProcessPool(source, copies, copies) if where == "process" else SerialPool("own", source.make, copies)


@contextmanager
def started(pool: EnvironmentPool, text: str) -> Iterator[EnvironmentPool]:
    try:
        pool.set_parameters(values_of(text))
        pool.start()
        yield pool
    finally:
        pool.close()


def shown(rounds: list[dict[int, Any]]) -> list[dict[int, float]]:
    """What the agent of each instance observes in each round."""
    return [
        {instance: float(answer["B"].decisions.observations[0][0, 0]) for instance, answer in answers.items()}
        for answers in rounds
    ]


def test_instances_draw_the_same_numbers_in_worker_processes_and_in_this_one() -> None:
    source = EnvironmentSource(OWN, "B", {})
    found = []
    for where in ("serial", "process"):
        with started(pool_of(where, source, 3), f"  size: {SIZES}") as pool:
            found.append(shown(history(pool, 4)))
    assert found[0] == found[1]
    assert len({number for numbers in found[0] for number in numbers.values()}) == 9  # three episodes of three


@pytest.mark.parametrize("where", ["serial", "process"])
def test_new_values_hold_from_the_next_episode_on(where: str) -> None:
    with started(pool_of(where, EnvironmentSource(OWN, "B", {}), 1), "  size: 1") as pool:
        assert shown(history(pool, 1)) == [{0: 1.0}, {0: 1.0}]
        pool.set_parameters({"size": 2.0})
        pool.send(0, {"B": discrete(0)})
        assert shown([receive_all(pool)]) == [{0: 2.0}]


def test_a_restarted_worker_is_given_the_newest_values(tmp_path: Path) -> None:
    source = EnvironmentSource(OWN, "B", {"fails_in": "failed", "folder": str(tmp_path)})
    pool = ProcessPool(source, 1, 1, make_quota=lambda: RestartQuota(10, 10, 60))
    with started(pool, "  size: 1"):
        assert shown(history(pool, 1)) == [{0: 1.0}, {0: 1.0}]
        pool.set_parameters({"size": 2.0})
        pool.send(0, {"B": discrete(0)})
        deadline, answer = time.monotonic() + DEADLINE_SECONDS, dict[int, Any]()
        while not answer:
            assert time.monotonic() < deadline
            answer = dict(pool.receive(0.5))
        assert (tmp_path / "failed").exists()
        assert shown([answer]) == [{0: 2.0}]


def test_a_restarted_worker_draws_other_numbers_than_the_one_before(tmp_path: Path) -> None:
    source = EnvironmentSource(OWN, "B", {"fails_in": "failed", "folder": str(tmp_path)})
    pool = ProcessPool(source, 1, 1, make_quota=lambda: RestartQuota(10, 10, 60))
    with started(pool, f"  size: {SIZES}"):
        rounds = shown(history(pool, 4))
    assert (tmp_path / "failed").exists()
    assert rounds[0] != rounds[2]


@pytest.mark.parametrize("where", ["serial", "process"])
def test_an_environment_that_takes_no_parameters_is_refused_with_their_names(where: str) -> None:
    source = EnvironmentSource("toy:one-step", "B", {}, adaptation=Adaptation(has_parameters=True))
    pool = ProcessPool(source, 1, 1) if where == "process" else SerialPool(source.env, source.make, 1)
    said = r"toy:one-step must have a method set_parameters to take them \(size\)"
    with pytest.raises(ConfigError, match=said), started(pool, "  size: 1"):
        pass


@pytest.mark.parametrize("where", ["serial", "process"])
def test_a_parameter_that_the_environment_refuses_is_an_error_of_the_file(where: str) -> None:
    pool = pool_of(where, EnvironmentSource(OWN, "B", {}), 1)
    with (
        pytest.raises(ConfigError, match=r"environment_parameters\.unknown: must be size"),
        started(pool, "  unknown: 1"),
    ):
        pass


def test_parameters_make_a_registered_environment_a_loop_over_copies() -> None:
    with_parameters = Adaptation(has_parameters=True)
    source = EnvironmentSource("gymnasium:CartPole-v1", "B", {}, adaptation=with_parameters)
    (environment,) = source.make(0, 2)
    assert isinstance(environment, GymnasiumLoop)
    environment.close()
    assert EnvironmentSource.from_json(source.to_json()).adaptation == with_parameters


def make_vector() -> Any:
    return gymnasium.make_vec("CartPole-v1", 2)


def test_a_vectorized_environment_of_the_user_is_refused_by_name() -> None:
    source = EnvironmentSource("tests.sampling.test_parameters:make_vector", "B", {})
    pool = SerialPool(source.env, source.make, 1)
    with (
        pytest.raises(ConfigError, match="CartPoleVectorEnv is a VectorEnv, which takes none"),
        started(pool, "  a: 1"),
    ):
        pass
