"""The strict base class of all settings, the types of their fields, and what pydantic's errors mean in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from rl_tui.engine.config.diagnostics import (
    LARGEST_WHOLE,
    Diagnostic,
    KeyPath,
    closest,
    describe,
    must_be,
    must_be_one_of,
    one_of,
    visible,
)


def refusal(text: str, *at: str | int) -> PydanticCustomError:
    """The error that a validator raises. at: the path from the validated value to the wrong part."""
    return PydanticCustomError("refusal", "{text}", {"text": text, "at": at})


class Settings(BaseModel):
    """A frozen section that refuses unknown keys, other types and non-finite numbers.

    Validation fills the context, if there is one, with the class that read each mapping, by the mapping's id.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    # What people write for a key of this section: names in other programs, other pages, older formats.
    synonyms: ClassVar[Mapping[str, str]] = {}

    elsewhere: ClassVar[str] = ""  # what that refusal ends with: where other keys are listed

    @classmethod
    def offered(cls) -> list[str]:
        """The keys that the refusal of an unknown one names."""
        return sorted(cls.model_fields)

    @classmethod
    def known_synonyms(cls) -> Mapping[str, str]:
        """These, and what depends on the installed trainers."""
        return cls.synonyms

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict):
            return value
        if info.context is not None:
            info.context[id(value)] = cls
        return cls.complete(value)

    def default_of(self, key: str) -> object:
        """The value that it would have without being written, next to the others."""
        others = {name: value for name, value in self if name != key}
        field = type(self).model_fields[key]
        derived = type(self).complete(others)
        return derived[key] if key in derived else field.get_default(call_default_factory=True, validated_data=others)

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """The written keys, and those whose default depends on what was written."""
        return written


S = TypeVar("S", bound=Settings)


def read_settings(kind: type[S], values: dict[str, object], *at: str) -> tuple[S | None, list[Diagnostic]]:
    """The settings in a mapping, or everything that is wrong with it. at: its path."""
    classes: dict[int, type[Settings]] = {}
    try:
        return kind.model_validate(values, context=classes), []
    except ValidationError as error:
        wrong = [one for one in error.errors(include_url=False) if one["type"] != "default_factory_not_called"]
        refused_keys = {one["loc"][:-1] for one in wrong if one["loc"][-1:] == ("[key]",)}
        wrong = [one for one in wrong if not _is_below(one["loc"], refused_keys)]
        found = [as_diagnostic(one, values, classes) for one in wrong]
        return None, [diagnostic._replace(path=(*at, *diagnostic.path)) for diagnostic in found]


def _is_below(place: KeyPath, refused_keys: set[KeyPath]) -> bool:
    """Whether this is the value of a key that is wrong itself."""
    return place[-1:] != ("[key]",) and any(place[: len(key)] == key for key in refused_keys)


def is_positive(value: object) -> TypeGuard[int | float]:
    """Whether other values may be derived from this one; anything else is refused by its own field."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _whole(value: object) -> object:
    """5.0e6 is a whole number, 1e300 is not."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
        return int(value)
    return value


OFF = -1  # an interval: never


def _interval(value: object) -> object:
    steps = _whole(value)
    if isinstance(steps, int) and not isinstance(steps, bool) and steps < 1 and steps != OFF:
        raise refusal(must_be("at least 1, or -1 for never", steps))
    return steps


AUTO: Final = "auto"


def _workers(value: object) -> object:
    number = _whole(value)
    if value != AUTO and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
        raise refusal(must_be("a whole number from 0, or auto", value))
    return number


DEVICES = "auto, cpu, cuda, cuda:N or mps"


def _device(value: object) -> object:
    if value is None:  # which ML-Agents writes for its own choice
        return AUTO
    if isinstance(value, str) and not re.fullmatch(r"[a-z]+(:[0-9]{1,3})?", value):
        raise refusal(must_be(DEVICES, value))
    return value


def _path(value: object) -> object:
    if isinstance(value, str) and "\0" in value:
        raise refusal(must_be("a path without the character U+0000", value))
    return value


PathText: TypeAlias = Annotated[str, BeforeValidator(_path)]
Whole: TypeAlias = Annotated[int, BeforeValidator(_whole)]
PositiveWhole: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
WholeFromZero: TypeAlias = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
WholeFromMinusOne: TypeAlias = Annotated[int, Field(ge=-1), BeforeValidator(_whole)]
Interval: TypeAlias = Annotated[
    int,
    BeforeValidator(_interval),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": OFF}]}),
]
"""Steps, or seconds, from one time to the next; OFF for never."""
Workers: TypeAlias = Annotated[
    int | Literal["auto"],
    BeforeValidator(_workers),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"const": AUTO}]}),
]
"""How many worker processes; AUTO: the start of a run chooses."""
Device: TypeAlias = Annotated[
    str, BeforeValidator(_device), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})
]
"""A device as torch names it; AUTO: the start of a run chooses."""
Positive: TypeAlias = Annotated[float, Field(gt=0)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0)]
Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def as_diagnostic(error: ErrorDetails, root: object, classes: Mapping[int, type[Settings]]) -> Diagnostic:
    """One of pydantic's errors about `root`. classes: the context that the validation filled."""
    path: KeyPath = tuple(part for part in error["loc"] if part != "[key]")
    match error["type"]:
        case "refusal":
            at = error["ctx"]["at"]
            return Diagnostic((*path, *at), error["ctx"]["text"], of_key=path != error["loc"])
        case "missing":
            text = f"{path[-1]} is missing: it has no default"
            return Diagnostic(path[:-1], text, of_key=True)
        case "extra_forbidden":
            section = classes.get(id(_value_at(root, path[:-1])))
            return Diagnostic(path, _unknown_key(str(path[-1]), section), of_key=True)
    found, expected = error["input"], _EXPECTED.get(error["type"])
    if error["type"] == "literal_error":
        return Diagnostic(path, must_be_one_of(re.findall("'([^']*)'", error["ctx"]["expected"]), found))
    if expected is None:
        return Diagnostic(path, f"{visible(_plain(error['msg']), limit=200)}, got {describe(found)}")
    limit = next(iter(error.get("ctx", {}).values()), 0)
    return Diagnostic(path, must_be(expected.format(limit), found) + _hint(error["type"], found))


def _value_at(value: object, path: KeyPath) -> object:
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value


def _plain(message: str) -> str:
    """Pydantic's message, without what it puts before that of a ValueError or of an assertion."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _unknown_key(key: str, section: type[Settings] | None) -> str:
    if section is None:
        return "unknown key"
    known, synonyms = section.offered(), section.known_synonyms()
    close = key if key in synonyms else closest(key, [*known, *synonyms])
    if close is not None:
        return f"unknown key. Did you mean {synonyms.get(close, close)}?"
    return (
        f"unknown key. Must be one of: {one_of(known)}{section.elsewhere}"
        if known
        else "unknown key. There are none here"
    )


def _hint(kind: str, found: object) -> str:
    """How to correct a likely slip."""
    if kind == "string_type" and isinstance(found, bool | int | float):
        return ". Write it in quotes"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(found, str):
        return ". Remove the quotes" if _is_quoted(found, kind) else ""
    return ". Write {} for all defaults" if kind in ("model_type", "dict_type") and found is None else ""


def _is_quoted(text: str, kind: str) -> bool:
    """Whether the text would be a number, true or false without its quotes."""
    try:
        return text.lower() in ("true", "false") if kind == "bool_type" else math.isfinite(float(text))
    except ValueError:
        return False


# What a value must be, by pydantic's type of the error. {}: its limit.
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_too_short": "at least one character",
    "greater_than": "greater than {:.15g}",
    "greater_than_equal": "at least {:.15g}",
    "less_than": "less than {:.15g}",
    "less_than_equal": "at most {:.15g}",
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "too_short": "a list of at least one entry",
}
