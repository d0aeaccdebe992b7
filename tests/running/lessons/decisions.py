"""Generated curricula as this project decides on them; also for tests/benchmarks/lesson_decisions.py.

A case is a mapping: `parameters` as in a file, the run's `seed`, `max_steps` by behavior, and `rounds`. A round has,
for each behavior that is there, its step and the returns of the episodes that have ended since the round before, oldest
first.

An answer has the `seeds` of each parameter's lessons, and for each round the lessons of all parameters, from 0 and
sorted by name, and whether a full reset was due.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from rl_tui.engine.config.environment_parameters import ConstantSampler, CurriculumSettings, EnvironmentParameter
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.sampling.parameters import with_seeds
from rl_tui.engine.session.bus import EventBus

_PARAMETERS = TypeAdapter(dict[str, EnvironmentParameter])


def decide(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a case."""
    settings = _PARAMETERS.validate_python(case["parameters"])
    lessons, max_steps = Lessons(settings, case["seed"], EventBus()), case["max_steps"]
    rounds = []
    for behaviors in case["rounds"]:
        num_resets = lessons.num_resets
        for name, (_, returns) in behaviors.items():
            lessons.add_returns(name, returns)
        lessons.update({name: (step, max_steps[name]) for name, (step, _) in behaviors.items()})
        numbers = lessons.numbers
        rounds.append([[numbers[name] for name in sorted(numbers)], lessons.num_resets > num_resets])
    seeds = {name: _seeds(setting) for name, setting in with_seeds(settings, case["seed"]).items()}
    return {"seeds": seeds, "rounds": rounds}


def _seeds(setting: EnvironmentParameter) -> list[int | None]:
    """Those of its samplers; None for a constant."""
    values = [each.value for each in setting.curriculum] if isinstance(setting, CurriculumSettings) else [setting]
    constant = float | int | ConstantSampler
    return [None if isinstance(value, constant) else value.sampler_parameters.seed for value in values]
