"""What settings are made of: the strict base class, the kinds of numbers, and how a refusal reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, TypeAlias, TypeGuard

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from rl_tui.engine.config.diagnostics import (
    LARGEST_WHOLE,
    Diagnostic,
    KeyPath,
    closest,
    describe,
    one_of,
    suggest,
    visible,
)


def refusal(text: str, *at: str | int) -> PydanticCustomError:
    """An error a validator raises; `at` leads from the validated value to the part that is wrong."""
    return PydanticCustomError("refusal", "{text}", {"text": text, "at": at})


class Settings(BaseModel):
    """A frozen section whose unknown keys, foreign types and non-finite numbers are refused.

    A validation context, when given, is a dict filled with the class that read each mapping, by the mapping's id.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    # Words people write for a key of this section, from other programs, other pages, older formats.
    synonyms: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def known_synonyms(cls) -> Mapping[str, str]:
        """These words, and those that depend on what is installed."""
        return cls.synonyms

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict):
            return value
        if info.context is not None:
            info.context[id(value)] = cls
        return cls.complete(value)

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """The written keys, and those whose default depends on what was written."""
        return written


def is_positive(value: object) -> TypeGuard[int | float]:
    """Whether other values may be derived from it; what is wrong with it otherwise is told once, by its own field."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _whole(value: object) -> object:
    """5.0e6 is as whole as 5000000; 1e300 is not meant as one."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
        return int(value)
    return value


def _interval(value: object) -> object:
    steps = _whole(value)
    if isinstance(steps, int) and not isinstance(steps, bool) and steps < 1 and steps != -1:
        raise refusal(f"found {steps}. A number of at least 1 is right, or -1 for never")
    return steps


def _path(value: object) -> object:
    if isinstance(value, str) and "\0" in value:
        raise refusal(f"found {describe(value)}. No path holds the character U+0000")
    return value


PathText: TypeAlias = Annotated[str, BeforeValidator(_path)]
Whole: TypeAlias = Annotated[int, BeforeValidator(_whole)]
PositiveWhole: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
WholeFromZero: TypeAlias = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
WholeFromMinusOne: TypeAlias = Annotated[int, Field(ge=-1), BeforeValidator(_whole)]
Interval: TypeAlias = Annotated[
    int,
    BeforeValidator(_interval),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": -1}]}),
]
"""Steps from one time to the next, -1 for never."""
Positive: TypeAlias = Annotated[float, Field(gt=0)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0)]
Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def as_diagnostic(error: ErrorDetails, root: object, classes: Mapping[int, type[Settings]]) -> Diagnostic:
    """One pydantic error about `root`, in our words. classes: the context that the validation filled."""
    path: KeyPath = tuple(part for part in error["loc"] if part != "[key]")
    match error["type"]:
        case "refusal":
            at = error["ctx"]["at"]
            return Diagnostic((*path, *at), error["ctx"]["text"], of_key=path != error["loc"])
        case "missing":
            text = f"{path[-1]} is missing. It has no default and must be written"
            return Diagnostic(path[:-1], text, of_key=True)
        case "extra_forbidden":
            section = classes.get(id(_value_at(root, path[:-1])))
            return Diagnostic(path, _unknown_key(str(path[-1]), section), of_key=True)
    found, right = describe(error["input"]), _RIGHT.get(error["type"])
    if right is None:
        return Diagnostic(path, f"found {found}. {visible(error['msg'], limit=200)}")
    return Diagnostic(path, f"found {found}. {right(error)}")


def _value_at(value: object, path: KeyPath) -> object:
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value


def _unknown_key(key: str, section: type[Settings] | None) -> str:
    if section is None:
        return "unknown key"
    known, synonyms = list(section.model_fields), section.known_synonyms()
    close = key if key in synonyms else closest(key, [*known, *synonyms])
    if close is not None:
        return f"unknown key. Did you mean {synonyms.get(close, close)}?"
    return f"unknown key. {one_of(sorted(known))} is right here"


def _limit(words: str, limit: str) -> Callable[[ErrorDetails], str]:
    return lambda error: f"A number {words} {error['ctx'][limit]:g} is right"


def _text(error: ErrorDetails) -> str:
    found = error["input"]
    if isinstance(found, bool | int | float):
        return "A text is right: write it in quotes"
    return "A text is right"


def _boolean(error: ErrorDetails) -> str:
    if isinstance(error["input"], str):
        return "true or false is right, without quotes"
    return "true or false is right"


def _choice(error: ErrorDetails) -> str:
    words = [word.strip().strip("'") for word in str(error["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
    found = error["input"]
    return f"{one_of(words)} is right.{suggest(found, words) if isinstance(found, str) else ''}"


def _mapping(error: ErrorDetails) -> str:
    return "A mapping is right ({} for all defaults)" if error["input"] is None else "A mapping is right"


def _number(words: str) -> Callable[[ErrorDetails], str]:
    quoted = f"{words} is right, without quotes"
    return lambda error: quoted if isinstance(error["input"], str) else f"{words} is right"


def _always(text: str) -> Callable[[ErrorDetails], str]:
    return lambda _: text


_RIGHT: Mapping[str, Callable[[ErrorDetails], str]] = {
    "int_type": _number("A whole number"),
    "int_from_float": _always("A whole number is right"),
    "float_type": _number("A number"),
    "finite_number": _always("A finite number is right"),
    "bool_type": _boolean,
    "string_type": _text,
    "literal_error": _choice,
    "greater_than": _limit("greater than", "gt"),
    "greater_than_equal": _limit("of at least", "ge"),
    "less_than": _limit("less than", "lt"),
    "less_than_equal": _limit("of at most", "le"),
    "model_type": _mapping,
    "dict_type": _mapping,
    "list_type": _always("A list is right"),
    "too_short": _always("At least one entry is right"),
}
