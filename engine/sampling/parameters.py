"""Environment parameters: what samplers draw, as ML-Agents' player does, and which seed each has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, TypeAlias, cast

import numpy as np
from pydantic import TypeAdapter

from rl_tui.engine.config.environment_parameters import (
    ConstantSampler,
    CurriculumSettings,
    EnvironmentParameter,
    GaussianSampler,
    MultiRangeUniformSampler,
    ParameterValue,
    SamplerSettings,
    UniformSampler,
)
from rl_tui.engine.specs import Json

ParameterValues: TypeAlias = Mapping[str, float | SamplerSettings]  # by parameter

MOST_SEED = 2**31  # exclusive: an int32 in Unity
COPY_STRIDE = 1_000_003  # between the seeds of two copies: far more than any file has samplers
_VALUES = TypeAdapter(dict[str, ParameterValue])


class Parameters(Mapping[str, float | SamplerSettings]):
    """The parameters of one copy of an environment: their values or samplers by name, and draws from these.

    Each copy draws for itself, the same in every run with the same seeds.
    """

    def __init__(self, values: ParameterValues, copy: int = 0, earlier: Parameters | None = None) -> None:
        """copy: its number in the run. earlier: those before; samplers that stay the same go on drawing."""
        self._values = values
        self._copy = copy
        self._draws: dict[tuple[str, int], _Draw] = {} if earlier is None else earlier._draws

    def __getitem__(self, name: str) -> float | SamplerSettings:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def of_copy(self, index: int) -> Parameters:
        """Those of another copy in the same environment. index: from 0, which is this one."""
        other = Parameters(self._values, self._copy + index)
        other._draws = self._draws
        return other

    def draw(self, name: str, default: float | None = None) -> float:
        """The number of that parameter, another one at each call if it is drawn; call it when an episode begins.

        default: of a parameter that the file does not have. Raises KeyError without one.
        """
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise KeyError(f"environment parameter {name!r}: must be one of {', '.join(self._values)}")
            return default
        if isinstance(value, float | int):
            return value
        draw = self._draws.get((name, self._copy))
        if draw is None or draw.sampler != value:
            draw = self._draws[name, self._copy] = _Draw(value, self._copy)
        return draw.next()

    def draw_all(self) -> dict[str, float]:
        """The number of each parameter, by name."""
        return {name: self.draw(name) for name in self._values}


class _Draw:
    """One sampler and its generator."""

    def __init__(self, sampler: SamplerSettings, copy: int) -> None:
        self.sampler = sampler
        seed = sampler.sampler_parameters.seed
        self._random = np.random.default_rng([seed % MOST_SEED, copy])

    def next(self) -> float:
        """Its next number."""
        return draw_from(self.sampler, self._random)


def draw_from(sampler: SamplerSettings, random: np.random.Generator) -> float:
    """One number, distributed as ML-Agents' samplers are (SamplerFactory.cs)."""
    match sampler:
        case UniformSampler(sampler_parameters=of):
            return of.min_value + (of.max_value - of.min_value) * random.random()
        case GaussianSampler(sampler_parameters=of):
            return of.mean + of.st_dev * float(random.standard_normal())
        case MultiRangeUniformSampler(sampler_parameters=of):
            return _draw_from_intervals(of.intervals, random.random())
        case ConstantSampler(sampler_parameters=of):
            return of.value


def _draw_from_intervals(intervals: list[list[float]], share: float) -> float:
    """The number at that share, 0 to 1, of the total length: longer intervals are chosen more often."""
    ends = list(accumulate(high - low for low, high in intervals))
    if not ends[-1]:  # each is a single number
        return intervals[math.floor(share * len(intervals))][0]
    position = share * ends[-1]
    index = next((index for index, end in enumerate(ends) if position < end), len(ends) - 1)
    return intervals[index][1] - (ends[index] - position)


def with_seeds(settings: Mapping[str, EnvironmentParameter], run_seed: int) -> dict[str, EnvironmentParameter]:
    """The parameters with a seed for each sampler that was given none: ML-Agents' run_seed, run_seed + 1, ...

    Those of all lessons count, in the order of the file, and so does every fixed number.
    """
    seeds = iter(range(run_seed, run_seed + 2**31))

    def seeded(value: float | SamplerSettings) -> float | SamplerSettings:
        if isinstance(value, float | int):
            next(seeds)
            return value
        return _with_seed(value, next(seeds)) if value.sampler_parameters.seed == -1 else value

    def seeded_parameter(parameter: EnvironmentParameter) -> EnvironmentParameter:
        if not isinstance(parameter, CurriculumSettings):
            return seeded(parameter)
        lessons = [lesson.model_copy(update={"value": seeded(lesson.value)}) for lesson in parameter.curriculum]
        return CurriculumSettings(curriculum=lessons)

    return {name: seeded_parameter(parameter) for name, parameter in settings.items()}


def shifted(values: ParameterValues, offset: int) -> dict[str, float | SamplerSettings]:
    """The same values, with samplers that draw other numbers for every other offset."""
    return {
        name: value
        if isinstance(value, float | int)
        else _with_seed(value, (value.sampler_parameters.seed + offset) % MOST_SEED)
        for name, value in values.items()
    }


def _with_seed(sampler: SamplerSettings, seed: int) -> SamplerSettings:
    own: Any = sampler  # Any: the union's members have the same fields
    return cast(
        SamplerSettings,
        own.model_copy(update={"sampler_parameters": own.sampler_parameters.model_copy(update={"seed": seed})}),
    )


def values_to_json(values: ParameterValues) -> Json:
    """What `values_from_json` reads."""
    return cast(Json, _VALUES.dump_python(dict(values), mode="json"))


def values_from_json(written: Json) -> dict[str, float | SamplerSettings]:
    """The values that were written."""
    return _VALUES.validate_python(written)
