"""What messages call a setting: by its flag on the command line, by its keyword argument in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from rl_tui.engine.config.flags import flag_of

Naming: TypeAlias = Callable[[str], str]  # from the dotted path of a setting

_naming: ContextVar[Naming] = ContextVar("naming", default=flag_of)  # threads of a run have that of their starter


@contextmanager
def naming(names: Naming) -> Iterator[None]:
    """Messages made within call settings by these names."""
    token = _naming.set(names)
    try:
        yield
    finally:
        _naming.reset(token)


def name_of(setting: str) -> str:
    """`--run-id`, or `run_id`."""
    return _naming.get()(setting)


def switched_on(setting: str) -> str:
    """`--resume`, or `resume=True`."""
    name = name_of(setting)
    return name if _is_flag(name) else f"{name}=True"


def set_to(setting: str, value: object) -> str:
    """`--set behaviors.Walker.max_steps=5`, or `set={"behaviors.Walker.max_steps": 5}`."""
    name = name_of(setting)
    return f"{name}={value}" if _is_flag(name) else f'set={{"{setting}": {value}}}'


def _is_flag(name: str) -> bool:
    return name.startswith("--")
