"""The `environment_parameters` section: numbers, samplers and curricula that shape the environment itself."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from rl_tui.engine.config.diagnostics import closest, must_be, must_be_one_of
from rl_tui.engine.config.types import Settings, Whole, WholeFromZero, refusal


class UniformParameters(Settings):
    """Bounds of a uniform sampler."""

    min_value: float = 0.0
    max_value: float = 1.0
    seed: Whole = -1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min_value > self.max_value:
            raise refusal(must_be(f"at most max_value ({self.max_value})", self.min_value), "min_value")
        return self


class GaussianParameters(Settings):
    """Mean and spread of a Gaussian sampler."""

    mean: float = 1.0
    st_dev: float = 1.0
    seed: Whole = -1


class MultiRangeUniformParameters(Settings):
    """Intervals of a sampler that is uniform over several."""

    intervals: list[list[float]] = Field(default=[[0.0, 1.0]], min_length=1)
    seed: Whole = -1

    @model_validator(mode="after")
    def _check(self) -> Self:
        for position, interval in enumerate(self.intervals):
            if len(interval) != 2 or interval[0] > interval[1]:
                raise refusal(f"must be [minimum, maximum], got {interval}", "intervals", position)
        return self


class ConstantParameters(Settings):
    """The value of a constant sampler."""

    value: float = 0.0
    seed: Whole = -1


class UniformSampler(Settings):
    """Draws uniformly between two bounds."""

    sampler_type: Literal["uniform"]
    sampler_parameters: UniformParameters


class GaussianSampler(Settings):
    """Draws from a normal distribution."""

    sampler_type: Literal["gaussian"]
    sampler_parameters: GaussianParameters


class MultiRangeUniformSampler(Settings):
    """Draws uniformly from several intervals."""

    sampler_type: Literal["multirangeuniform"]
    sampler_parameters: MultiRangeUniformParameters


class ConstantSampler(Settings):
    """Always gives the same value."""

    sampler_type: Literal["constant"]
    sampler_parameters: ConstantParameters


SamplerSettings: TypeAlias = UniformSampler | GaussianSampler | MultiRangeUniformSampler | ConstantSampler
_SAMPLERS: dict[str, type[Settings]] = {
    "uniform": UniformSampler,
    "gaussian": GaussianSampler,
    "multirangeuniform": MultiRangeUniformSampler,
    "constant": ConstantSampler,
}


def _read_value(value: object, info: ValidationInfo) -> object:
    """A number as it is, a mapping by its sampler_type."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, Settings):
        return value
    if not isinstance(value, dict):
        raise refusal(must_be("a number or a mapping with sampler_type", value))
    if "sampler_type" not in value:
        raise refusal("sampler_type is missing. A sampler has sampler_type and sampler_parameters")
    word = value["sampler_type"]
    sampler = _SAMPLERS.get(word) if isinstance(word, str) else None
    if sampler is None:
        raise refusal(must_be_one_of(_SAMPLERS, word), "sampler_type")
    return sampler.model_validate(value, context=info.context)


ParameterValue: TypeAlias = Annotated[float | SamplerSettings, BeforeValidator(_read_value)]


class CompletionCriteria(Settings):
    """When a lesson ends."""

    behavior: str
    measure: Literal["reward", "progress", "Elo"] = "reward"  # Elo: in ML-Agents' documentation, not in its code
    min_lesson_length: WholeFromZero = 0
    signal_smoothing: bool = True
    threshold: float = 0.0
    require_reset: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.measure == "progress" and not 0 <= self.threshold <= 1:
            raise refusal(must_be("a number from 0 to 1 where progress is measured", self.threshold), "threshold")
        return self


class Lesson(Settings):
    """A value of the parameter, and when it ends."""

    name: str
    value: ParameterValue
    completion_criteria: CompletionCriteria | None = None


class CurriculumSettings(Settings):
    """Lessons, one after another."""

    curriculum: list[Lesson] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for position, lesson in enumerate(self.curriculum[:-1]):
            if lesson.completion_criteria is None:
                text = "completion_criteria is missing: every lesson but the last needs it"
                raise refusal(text, "curriculum", position)
        return self


def _read_parameter(value: object, info: ValidationInfo) -> object:
    if isinstance(value, dict) and "curriculum" in value:
        return CurriculumSettings.model_validate(value, context=info.context)
    if isinstance(value, dict) and "sampler_type" not in value:
        near = closest("curriculum", [key for key in value if isinstance(key, str)])
        if near is not None:
            raise refusal("unknown key. Did you mean curriculum?", near)
    return value if isinstance(value, CurriculumSettings) else _read_value(value, info)


EnvironmentParameter: TypeAlias = Annotated[
    float | SamplerSettings | CurriculumSettings, BeforeValidator(_read_parameter)
]
"""A fixed number, a sampler that the environment draws from each time, or lessons."""
