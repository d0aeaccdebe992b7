"""When lessons end, as ML-Agents decides it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.config.environment_parameters import CurriculumSettings, EnvironmentParameter
from rl_tui.engine.running.lessons.curricula import Advance, Curricula, RewardWindow


def curriculum(*criteria: Mapping[str, Any] | None) -> CurriculumSettings:
    """Lessons with these criteria, of behavior B unless they name another; the last one has none."""
    lessons: list[Mapping[str, Any]] = [
        {"name": str(number), "value": number}
        | ({} if one is None else {"completion_criteria": {"behavior": "B", "signal_smoothing": False, **one}})
        for number, one in enumerate([*criteria, None])
    ]
    return CurriculumSettings.model_validate({"curriculum": lessons})


def update(curricula: Curricula, returns: list[float], step: int = 0, max_steps: int = 100) -> Advance:
    return curricula.update({"B": step}, {"B": max_steps}, {"B": RewardWindow(curricula.window_size("B"), returns)})


def test_a_lesson_ends_once_the_mean_return_is_greater_than_its_threshold() -> None:
    curricula = Curricula({"a": curriculum({"threshold": 2.0, "min_lesson_length": 2})})
    assert update(curricula, [2.0, 2.0]) == Advance()
    assert update(curricula, [2.0, 2.1]) == Advance(("a",))
    assert curricula.lessons == {"a": 1}
    assert curricula.are_over


def test_only_as_many_episodes_count_as_the_longest_lesson_of_the_behavior_needs() -> None:
    curricula = Curricula({"a": curriculum({"threshold": 2.0, "min_lesson_length": 3}, {"min_lesson_length": 2})})
    assert curricula.window_size("B") == 3
    assert curricula.window_size("other") == 1
    assert update(curricula, [3.0, 3.0]) == Advance()
    assert update(curricula, [-100.0, 3.0, 3.0, 3.0]) == Advance(("a",))


def test_progress_is_the_share_of_max_steps() -> None:
    curricula = Curricula({"a": curriculum({"measure": "progress", "threshold": 0.5})})
    assert update(curricula, [], 50) == Advance()
    assert update(curricula, [], 51) == Advance(("a",))


def test_progress_waits_for_the_episodes_of_a_lesson_too() -> None:
    curricula = Curricula({"a": curriculum({"measure": "progress", "threshold": 0.5, "min_lesson_length": 1})})
    assert update(curricula, [], 90) == Advance()
    assert update(curricula, [-5.0], 90) == Advance(("a",))


def test_smoothing_is_updated_at_every_evaluation_and_kept_across_lessons() -> None:
    criteria = {"threshold": 1.0, "signal_smoothing": True}
    curricula = Curricula({"a": curriculum(criteria, {**criteria, "threshold": 10.0})})
    assert update(curricula, [1.3]) == Advance()
    assert curricula.smoothed["a"] == 0.75 * 1.3
    assert update(curricula, [1.3]) == Advance(("a",))
    assert curricula.smoothed["a"] == 0.25 * (0.75 * 1.3) + 0.75 * 1.3
    update(curricula, [8.0])
    assert curricula.smoothed["a"] > 6.0


@pytest.mark.parametrize("returns", [[], [math.nan]])
def test_without_a_mean_return_the_lesson_stays(returns: list[float]) -> None:
    curricula = Curricula({"a": curriculum({"threshold": -1.0, "signal_smoothing": True})})
    assert update(curricula, returns) == Advance()
    assert curricula.smoothed == {"a": 0.0}


def test_parameters_advance_independently_and_an_unknown_behavior_ends_no_lesson() -> None:
    settings: dict[str, EnvironmentParameter] = {
        "a": curriculum({"threshold": 1.0}),
        "b": curriculum({"threshold": 5.0, "require_reset": True}),
        "c": curriculum({"threshold": -5.0, "behavior": "unknown"}),
        "d": 3.0,
    }
    curricula = Curricula(settings)
    assert update(curricula, [2.0]) == Advance(("a",))
    assert update(curricula, [6.0]) == Advance(("b",), must_reset=True)
    assert curricula.lessons == {"a": 1, "b": 1, "c": 0}


def reference(criteria: Mapping[str, Any], steps: list[int], returns: list[list[float]]) -> list[int]:
    """The lesson after each update, written again from ML-Agents' description."""
    lesson, smoothed, found = 0, 0.0, []
    for step, buffer in zip(steps, returns, strict=True):
        if lesson < 3 and len(buffer) >= criteria["min_lesson_length"]:
            if criteria["measure"] == "progress":
                lesson += int(step / 1000 > criteria["threshold"])
            elif buffer:
                mean = float(np.mean(buffer[::-1]))
                if criteria["signal_smoothing"]:
                    mean = smoothed = 0.25 * smoothed + 0.75 * mean
                lesson += int(mean > criteria["threshold"])
        found.append(lesson)
    return found


def test_random_curricula_advance_as_the_description_says() -> None:
    random = np.random.default_rng(0)
    num_advanced = 0
    for _ in range(300):
        criteria = {
            "measure": str(random.choice(["reward", "progress"])),
            "threshold": float(random.uniform(0, 1)),
            "min_lesson_length": int(random.integers(0, 4)),
            "signal_smoothing": bool(random.integers(2)),
        }
        steps = sorted(random.integers(0, 1000, 12).tolist())
        size = max(1, criteria["min_lesson_length"])
        returns = [random.uniform(-1, 2, random.integers(0, size + 1)).tolist() for _ in steps]
        curricula, found = Curricula({"a": curriculum(criteria, criteria, criteria)}), []
        for step, buffer in zip(steps, returns, strict=True):
            update(curricula, buffer, step, 1000)
            found.append(curricula.lessons["a"])
        assert found == reference(criteria, steps, returns)
        num_advanced += found[-1]
    assert num_advanced > 100


def test_a_rating_ends_a_lesson_where_it_is_known_and_episodes_have_ended() -> None:
    curricula = Curricula({"a": curriculum({"measure": "Elo", "threshold": 1250.0, "min_lesson_length": 2})})
    window = RewardWindow(2, [0.0])
    for num_returns, ratings, lesson in (
        (1, {"B": 1300.0}, 0),
        (2, {}, 0),
        (2, {"B": 1250.0}, 0),
        (2, {"B": 1251.0}, 1),
    ):
        window.add([0.0] * (num_returns - len(window)))
        curricula.update({"B": 1}, {"B": 10}, {"B": window}, ratings)
        assert curricula.lessons == {"a": lesson}
