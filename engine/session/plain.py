"""Dataclasses as what JSON can hold, and back by the types of their fields.

Non-finite floats are the strings "nan", "inf" and "-inf"; a mapping whose keys are no strings is a list of pairs; an
array is the base64 of its numbers in 8 bytes each, little-endian.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import math
import sys
import types
import typing
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

Read: TypeAlias = Callable[[Any], Any]
Arguments: TypeAlias = tuple[Any, ...]
NOT_FINITE = ("nan", "inf", "-inf")


def to_plain(value: object) -> Any:
    """What JSON can hold of a dataclass, a number, a text, or a collection of these."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list | deque):
        return [to_plain(item) for item in value]
    if isinstance(value, array):
        return base64.b64encode(_little_endian(value).tobytes()).decode("ascii")
    kind: Any = type(value)
    items = value if isinstance(value, Mapping) else {name: getattr(value, name) for name in _names(kind)}
    if all(isinstance(key, str) for key in items):
        return {key: to_plain(item) for key, item in items.items()}
    return [[to_plain(key), to_plain(item)] for key, item in items.items()]


def from_plain(value: object, hint: object) -> Any:
    """The value of that type which `to_plain` has made this of. Raises TypeError, OverflowError for anything else."""
    return _reader(hint)(value)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass. Raises TypeError for anything else."""
    return tuple(field.name for field in dataclasses.fields(kind))


@functools.cache
def _reader(hint: Any) -> Read:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is not None:
        return _COLLECTIONS[origin](arguments)
    return _dataclass(hint) if dataclasses.is_dataclass(hint) else _SINGLE[hint]


def _optional(arguments: Arguments) -> Read:
    [kind] = [argument for argument in arguments if argument is not types.NoneType]  # of several, which one is unknown
    read = _reader(kind)
    return lambda value: None if value is None else read(value)


def _tuple(arguments: Arguments) -> Read:
    if arguments[-1] is Ellipsis:
        read = _reader(arguments[0])
        return lambda value: tuple([read(item) for item in _list(value)])
    readers = [_reader(argument) for argument in arguments]

    def read_each(value: Any) -> Any:
        if len(_list(value)) != len(readers):
            raise TypeError(f"{value!r} has not {len(readers)} items")
        return tuple([read(item) for read, item in zip(readers, value, strict=True)])

    return read_each


def _sequence(kind: Callable[[list[Any]], Any], arguments: Arguments) -> Read:
    read = _reader(arguments[0])
    return lambda value: kind([read(item) for item in _list(value)])


def _mapping(arguments: Arguments) -> Read:
    has_texts, (read_key, read) = arguments[0] is str, map(_reader, arguments)

    def read_all(value: Any) -> Any:
        if isinstance(value, dict) and (has_texts or not value):
            return {key: read(item) for key, item in value.items()}
        if has_texts:
            raise TypeError(f"{value!r} is no mapping")
        pairs = [_pair(item) for item in _list(value)]
        return {read_key(key): read(item) for key, item in pairs}

    return read_all


def _array(arguments: Arguments) -> Read:
    _, typecode = arguments

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no array")
        made = array(typecode)
        try:
            made.frombytes(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError) as error:
            raise TypeError(f"not an array: {error}") from error
        return _little_endian(made)

    return read


def _little_endian(numbers: array[Any]) -> array[Any]:
    """From the order of this machine, and back."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


def _literal(choices: Arguments) -> Read:
    def read(value: Any) -> Any:
        if value not in choices:
            raise TypeError(f"{value!r} is none of {choices}")
        return value

    return read


def _dataclass(kind: Any) -> Read:
    readers: dict[str, Read] = {}
    fields = {field.name: field for field in dataclasses.fields(kind)}
    missing = dataclasses.MISSING
    required = {name for name, field in fields.items() if field.default is missing and field.default_factory is missing}

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or not required <= value.keys():
            raise TypeError(f"{value!r} is no complete {kind.__name__}")
        if not readers:
            hints = typing.get_type_hints(kind, include_extras=True)
            readers.update({name: _reader(hints[name]) for name in fields})
        found = {name: each(value[name]) for name, each in readers.items() if name in value}
        for name, own in found.items():  # the default of a bounded one knows how long it may be
            if isinstance(own, deque):
                found[name] = _like_default(fields[name], own)
        return kind(**found)

    return read


def _like_default(field: dataclasses.Field[Any], items: deque[Any]) -> deque[Any]:
    if field.default_factory is dataclasses.MISSING:
        return items
    made: deque[Any] = field.default_factory()
    made.extend(items)
    return made


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _pair(value: Any) -> tuple[Any, Any]:
    if len(_list(value)) != 2:
        raise TypeError(f"{value!r} is no pair")
    return value[0], value[1]


def _float(value: Any) -> float:
    if isinstance(value, bool) or not (isinstance(value, int | float) or value in NOT_FINITE):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _of(kind: type) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is no {kind.__name__}")
        return value

    return read


_SINGLE: Mapping[object, Read] = {float: _float, int: _of(int), str: _of(str), bool: _of(bool)}
_COLLECTIONS: Mapping[object, Callable[[Arguments], Read]] = {
    types.UnionType: _optional,
    typing.Union: _optional,
    tuple: _tuple,
    list: partial(_sequence, list),
    deque: partial(_sequence, deque),
    dict: _mapping,
    Mapping: _mapping,
    Literal: _literal,
    Annotated: _array,
}
