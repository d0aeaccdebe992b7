"""Numbers that environments report in `info` are counted once, and in the step that reported them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.measuring import as_number
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from tests.sampling.driving import history
from tests.sampling.worlds import Counting

KEYS = ("step", "last", "start", "hidden")


class Reporting(Counting):
    """Reports the number of each step, at the end its length, and at a reset numbers that do not count."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, _ = super().reset(**options)
        return observation, {"start": 1.0, "step": 1000.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, _ = super().step(action)
        infos = {"step": np.float32(self._step), "bad": np.nan, "none": None}
        if terminated or truncated:
            infos["last"] = infos["Maze/last"] = np.array([self._step])
        return observation, reward, terminated, truncated, infos


def make_vector(mode: str, lengths: list[int]) -> SyncVectorEnv:
    makers = [lambda length=length: Reporting(length=length) for length in lengths]
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode[mode])


def measured_by(pool: EnvironmentPool, num_steps: int) -> dict[str, tuple[float, int]]:
    """Sums and counts over so many steps after a reset, of all instances together."""
    total: dict[str, tuple[float, int]] = {}
    try:
        pool.start()
        for measured in [each["B"].measured for answers in history(pool, num_steps) for each in answers.values()]:
            for name, (value, count) in (measured or {}).items():
                before = total.get(name, (0.0, 0))
                total[name] = before[0] + value, before[1] + count
    finally:
        pool.close()
    return total


def pool_of(where: str, env: str, copies: int, metrics: tuple[str, ...] = KEYS, **kwargs: Any) -> EnvironmentPool:
    source = EnvironmentSource(env, "B", kwargs, metrics)
    return ProcessPool(source, copies, copies) if where == "process" else SerialPool(env, source.make, copies)


@pytest.mark.parametrize("where", ["serial", "process"])
def test_every_step_of_every_copy_counts_once_and_resets_do_not(where: str) -> None:
    pool = pool_of(where, f"{__name__}:Reporting", 2)
    assert measured_by(pool, 6) == {"step": (24.0, 12), "last": (12.0, 4)}


@pytest.mark.parametrize(
    ("mode", "lengths", "expected"),
    [
        ("NEXT_STEP", [2, 3], {"step": (15.0, 9), "last": (7.0, 3)}),
        ("NEXT_STEP", [2, 2], {"step": (18.0, 12), "last": (12.0, 6)}),
        ("SAME_STEP", [2, 3], {"step": (21.0, 12), "last": (12.0, 5)}),
    ],
)
def test_vectorized_form_counts_the_same(mode: str, lengths: list[int], expected: dict[str, Any]) -> None:
    pool = pool_of("serial", f"{__name__}:make_vector", 1, mode=mode, lengths=lengths)
    assert measured_by(pool, 6) == expected


class Nested(Counting):
    """Reports numbers under a key within a key, as wrappers of Gymnasium do for the end of an episode."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return (*super().step(action)[:4], {"episode": {"r": 1.0}})


@pytest.mark.parametrize("is_vectorized", [False, True])
def test_mapping_is_refused_by_its_key(is_vectorized: bool) -> None:
    pool = pool_of("serial", f"{__name__}:{'nested_vector' if is_vectorized else 'Nested'}", 1, metrics=("episode",))
    with pytest.raises(EnvironmentFailure, match=r"info\['episode'\] must be a number.*, got \{'r'"):
        measured_by(pool, 1)


def nested_vector() -> SyncVectorEnv:
    return SyncVectorEnv([Nested, Nested])


def test_keys_that_are_not_named_are_not_counted() -> None:
    assert measured_by(pool_of("serial", f"{__name__}:Reporting", 2, metrics=()), 6) == {}


def test_values_that_are_not_finite_or_nothing_are_left_out() -> None:
    assert measured_by(pool_of("serial", f"{__name__}:Reporting", 1, metrics=("bad", "none")), 6) == {}


@pytest.mark.parametrize("value", [True, 1, 1.0, np.float32(1), np.array(1), np.array([[1]], np.uint8)], ids=repr)
def test_scalar_of_any_kind_is_a_number(value: object) -> None:
    assert as_number("speed", value) == 1.0


@pytest.mark.parametrize(
    "value", ["fast", [1, 2], {"x": 1}, np.zeros(2), object()], ids=["text", "list", "dict", "array", "object"]
)
def test_what_is_no_number_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(EnvironmentFailure, match=r"info\['speed'\] must be a number.*, got "):
        as_number("speed", value)
