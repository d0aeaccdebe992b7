"""Hyperparameters that were set while training, over those of the file, and what they may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast, get_args

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from rl_tui.engine.config.types import Settings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.session.messages import Range
from rl_tui.engine.specs import Json, State


class LiveHyperparameters:
    """Lives with its learner. Remembers what the file says of its trainer's hyperparameters, and what was set since.

    Made before anything is set.
    """

    def __init__(self, trainer: Trainer):
        self._trainer = trainer
        self._configured = dict(trainer.hyperparameters())

    @property
    def values(self) -> Mapping[str, float]:
        """What the trainer uses from its next update on."""
        return self._trainer.hyperparameters()

    def set(self, name: str, value: float) -> None:
        """Use that value from the next update on. Raises ConfigError."""
        self._trainer.set_hyperparameter(name, value)

    def state(self) -> State:
        """Every value that is not the file's, and the file's that it stands for."""
        used = self.values
        changed = [name for name, configured in self._configured.items() if used[name] != configured]
        return State({}, {name: {"file": self._configured[name], "set": used[name]} for name in changed})

    def restore(self, state: State) -> list[str]:
        """Use the file's values and those set in `state`, and tell about each of these.

        Where the file says something else than it said then, the file is right: it was changed later.
        """
        for name, configured in self._configured.items():
            self._trainer.set_hyperparameter(name, configured)
        return [self._restore(name, entry) for name, entry in state.values.items()]

    def _restore(self, name: str, entry: Json) -> str:
        configured = self._configured.get(name)
        match entry:
            case {"file": int() | float() as then, "set": int() | float() as value} if configured is not None:
                if configured != then:
                    return f"{name} {configured:g} as the file says; {value:g} was set when it said {then:g}"
                try:
                    self._trainer.set_hyperparameter(name, value)
                except ConfigError as error:
                    return f"what was set while training is not taken over: {error}"
                return f"{name} {value:g} as set while training; the file says {configured:g}"
            case _:
                return f"what was set for {name} while training is not taken over: it cannot be set here"


def ranges(settings: Settings, names: Iterable[str]) -> dict[str, Range]:
    """What a file may say of each."""
    return {name: _range(type(settings).model_fields[name]) for name in names}


def _range(field: FieldInfo) -> Range:
    """Of a field that is a number, or a number or null."""
    kinds = [field.annotation, *get_args(field.annotation)]
    nested = [note for kind in kinds for note in getattr(kind, "__metadata__", ())]
    limits = [limit for note in (field, *nested) for limit in getattr(note, "metadata", ())]
    above = [limit.gt for limit in limits if isinstance(limit, Gt)]
    low = [*above, *(limit.ge for limit in limits if isinstance(limit, Ge))]
    high = [limit.le for limit in limits if isinstance(limit, Le)]
    return Range(_first(low), _first(high), bool(above), int in kinds)


def _first(limits: Sequence[object]) -> float | None:
    return float(cast(float, limits[0])) if limits else None
