"""Hyperparameters set while training, which override the file's, and the values allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast, get_args

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.reward_signals import KIND
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import HyperparameterChanged, HyperparametersReported, Range
from rl_tui.engine.specs import Json, State

HYPERPARAMETERS = "hyperparameters"  # the part of a checkpoint with what was set while training


class LiveHyperparameters:
    """Used in its learner's thread. Knows the file's values of its trainer's hyperparameters and what was set since,
    and publishes changes.

    Made before anything is set. Everything here may raise PluginError. has_changed: something was set in this process.
    """

    has_changed = False

    def __init__(self, behavior: str, trainer: Trainer, config: BehaviorConfig, bus: EventBus):
        self._behavior = behavior
        self._trainer = trainer
        self._config = config
        self._bus = bus
        self._configured = dict(trainer.hyperparameters())

    @property
    def values(self) -> Mapping[str, float]:
        """What the trainer uses from its next update on."""
        return self._trainer.hyperparameters()

    def set(self, name: str, value: float, step: int) -> str:
        """Use that value from the next update on; returns the change in words. Raises ConfigError."""
        before = self.values
        self._trainer.set_hyperparameter(name, value)
        self.has_changed = True
        self.publish_changes(before, step)
        return f"{name} {before[name]:.6g} -> {self.values[name]:.6g}"

    def publish(self) -> None:
        """Publish what may be changed, and its limits."""
        values = dict(self.values)
        self._bus.publish(HyperparametersReported(self._behavior, values, ranges(self._config, values)))

    def publish_changes(self, before: Mapping[str, float], step: int) -> None:
        """Publish every value that differs from `before`, then all of them."""
        for name, value in self.values.items():
            if value != before[name]:
                self._bus.publish(HyperparameterChanged(self._behavior, step, name, before[name], value))
        self.publish()

    def state(self) -> State:
        """Every value that differs from the file's, together with the file's."""
        used = self.values
        changed = [name for name, configured in self._configured.items() if used[name] != configured]
        return State({}, {name: {"file": self._configured[name], "set": used[name]} for name in changed})

    def restore(self, state: State) -> None:
        """Use the file's values and those set in a checkpoint, and log each of these.

        A value that has changed in the file since then wins: the file was edited later.
        """
        for name, used in dict(self.values).items():
            if used != self._configured[name]:
                self._trainer.set_hyperparameter(name, self._configured[name])
        for name, entry in state.values.items():
            self._bus.log("info", self._behavior, self._restore(name, entry))

    def _restore(self, name: str, entry: Json) -> str:
        configured = self._configured.get(name)
        match entry:
            case {"file": int() | float() as then, "set": int() | float() as value} if configured is not None:
                if configured != then:
                    dropped = f"the value {value:g} set during training is dropped"
                    return f"{name} {configured:g} from the file, which was edited ({then:g} before); {dropped}"
                try:
                    self._trainer.set_hyperparameter(name, value)
                except ConfigError as error:
                    return f"a value set during training was not restored: {error}"
                return f"{name} {value:g}, set during training; the file has {configured:g}"
            case _:
                return f"the value of {name} set during training was not restored: it cannot be set here"


def ranges(config: BehaviorConfig, names: Iterable[str]) -> dict[str, Range]:
    """The values that a configuration allows for each, of the trainer or of a reward signal."""
    return {name: _range(_field(config, name)) for name in names}


def _field(config: BehaviorConfig, name: str) -> FieldInfo:
    signal, _, key = name.removeprefix(f"{KIND}.").rpartition(".")
    settings = config.reward_signals[signal] if signal else config.hyperparameters
    return type(settings).model_fields[key]


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
