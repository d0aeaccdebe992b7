"""A trainer as its learner calls it: what one of an installed package does wrong is a PluginError, too little memory
OutOfMemory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from rl_tui.engine import registry
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.plugin_results import PluginResults
from rl_tui.engine.learning.trainer import Metrics, Samples, Trainer
from rl_tui.engine.specs import Policy, State, Trajectories, Weights

TRAINERS = "trainers"


class CheckedTrainer:
    """Calls the methods of `trainer` that may fail, and checks what they return. All raise PluginError, OutOfMemory."""

    def __init__(self, trainer: Trainer, trainer_type: str):
        self.trainer = trainer
        self._type = trainer_type
        self._results = PluginResults(TRAINERS, trainer_type)

    @property
    def is_installed(self) -> bool:
        """Whether it is of an installed package."""
        return bool(registry.package_of(TRAINERS, self._type))

    def add(self, block: Trajectories) -> Samples:
        """Trainer.add."""
        with self._blaming("add"):
            return self.trainer.add(block)

    def is_ready(self) -> bool:
        """Trainer.is_ready."""
        with self._blaming("is_ready"):
            return self.trainer.is_ready()

    def update(self, step: int, should_continue: Callable[[], bool]) -> dict[str, float]:
        """Trainer.update."""
        with self._blaming("update"):
            return self._numbers(self.trainer.update(step, should_continue))

    def loss(self, block: Trajectories) -> dict[str, float]:
        """Trainer.loss."""
        with self._blaming("loss"):
            return self._numbers(self.trainer.loss(block))

    def weights(self) -> Weights:
        """Trainer.weights."""
        with self._blaming("weights"):
            return self.trainer.weights()

    def make_policy(self, seed: int) -> Policy:
        """Trainer.make_policy."""
        with self._blaming("make_policy"):
            return self.trainer.make_policy(seed)

    def load(self, state: State) -> None:
        """Trainer.load."""
        with self._blaming("load"):
            self.trainer.load(state)

    def load_replay(self, replay: State) -> None:
        """Trainer.load_replay. Raises CheckpointError, too."""
        with self._blaming("load_replay"):
            self.trainer.load_replay(replay)

    def replay(self) -> State | None:
        """Trainer.replay."""
        with self._blaming("replay"):
            return self.trainer.replay()

    def hyperparameters(self) -> Mapping[str, float]:
        """Trainer.hyperparameters."""
        with self._blaming("hyperparameters"):
            return self.trainer.hyperparameters()

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Trainer.set_hyperparameter. Raises ConfigError, too."""
        with self._blaming("set_hyperparameter"):
            self.trainer.set_hyperparameter(name, value)

    def _numbers(self, metrics: Metrics) -> dict[str, float]:
        return {tag: float(number) for tag, number in self._results.metrics(metrics).items()}

    def state(self) -> State:
        """Trainer.state, the same arrays each time."""
        with self._blaming("state"):
            return self._results.state(self.trainer.state())

    def _blaming(self, method: str) -> _Blaming:
        return _Blaming(self._type, method)


class _Blaming:
    """What is raised in here is blamed on the trainer's package, or on the memory. Blocks come by the thousand, so
    nothing is done where nothing is raised."""

    __slots__ = ("_method", "_type")

    def __init__(self, trainer_type: str, method: str):
        self._type = trainer_type
        self._method = method

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with registry.blaming(TRAINERS, self._type, self._method), needing_memory("training"):
                raise error
