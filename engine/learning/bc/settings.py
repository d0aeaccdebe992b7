"""Hyperparameters of behavioral cloning, none of which ML-Agents has."""

from typing import Annotated, ClassVar

from pydantic import Field

from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule
from rl_tui.engine.config.types import Positive, PositiveWhole, WholeFromZero


class BCSettings(Hyperparameters):
    """Hyperparameters of a trainer that learns from demonstrations alone. A step is a demonstrated one."""

    implementation: ClassVar = "rl_tui.engine.learning.bc.trainer:BCTrainer"
    changeable: ClassVar = ("learning_rate",)
    learns_offline: ClassVar = True

    demo_path: str = Field(description="A file of demonstrations, or a folder of them.")
    batch_size: PositiveWhole = Field(256, description="Demonstrated steps of a mini-batch.")
    samples_per_update: WholeFromZero = Field(
        10240, description="The most demonstrated steps of an update, drawn without repetition; 0: all."
    )
    learning_rate: Positive = Field(1e-3, description="At the start.")
    learning_rate_schedule: Schedule = Field("linear", description="How it falls; linear: to nothing at max_steps.")
    validation: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="The share of episodes that is not learned from; a loss is reported for it."
    )
    max_grad_norm: Positive | None = Field(None, description="Clip the gradient to this norm; null: never.")
    adam_epsilon: Positive = Field(1e-8, description="Adam's epsilon.")

    @property
    def demonstration_path(self) -> str:
        """What it learns from."""
        return self.demo_path

    def num_updates(self, max_steps: int) -> int | None:
        """One for every `samples_per_update` steps; how many these are where it is 0 is in the demonstrations."""
        return max_steps // self.samples_per_update if self.samples_per_update else None
