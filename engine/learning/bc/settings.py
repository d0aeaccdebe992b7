"""Hyperparameters of behavioral cloning, none of which ML-Agents has."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, model_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.types import PathText, Positive, PositiveWhole, WholeFromZero, refusal

LOSS: Final = "Losses/Cloning Loss"
HELD_OUT: Final = "Losses/Held-Out Cloning Loss"
_OF_TEACHERS = ("steps_per_update", "buffer_size", "save_replay_buffer")


class BCSettings(Hyperparameters):
    """Hyperparameters of a trainer that learns from demonstrations, whose steps are demonstrated ones, or from a
    teacher, which says what it would do where the policy comes."""

    implementation: ClassVar = "rl_tui.engine.learning.bc.trainer:BCTrainer"
    changeable: ClassVar = ("learning_rate",)
    learns_from_rewards: ClassVar = False
    headline_metrics: ClassVar = (HELD_OUT, LOSS)

    demo_path: PathText | None = Field(None, description="A file of demonstrations, or a folder of them.")
    teacher: PathText | None = Field(
        None, description="In place of demo_path: a run's folder, a checkpoint or an ONNX file, which labels steps."
    )
    batch_size: PositiveWhole = Field(256, description="Steps of a mini-batch.")
    samples_per_update: WholeFromZero = Field(
        10240, description="The most steps of an update, of demonstrations drawn without repetition; 0: all."
    )
    steps_per_update: PositiveWhole = Field(1024, description="With a teacher: new steps between two updates.")
    buffer_size: PositiveWhole = Field(100000, description="With a teacher: how many labeled steps are kept.")
    save_replay_buffer: bool = Field(
        True, description="With a teacher: save labeled steps with each checkpoint, for --resume."
    )
    learning_rate: Positive = Field(1e-3, description="At the start.")
    learning_rate_schedule: Schedule = Field("linear", description="How it falls; linear: to nothing at max_steps.")
    validation: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="The share of demonstrated episodes that is not learned from; a loss is reported for it."
    )
    max_grad_norm: Positive | None = Field(None, description="Clip the gradient to this norm; null: never.")
    adam_epsilon: Positive = Field(1e-8, description="Adam's epsilon.")

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.demo_path is None and self.teacher is None:
            raise refusal("must be given, unless there is a teacher", "demo_path")
        if self.demo_path is not None and self.teacher is not None:
            text = "must be null where demo_path is given. For both, begin with demonstrations in a run of their own"
            raise refusal(f"{text}; one with a teacher can continue from its checkpoint (init_path)", "teacher")
        if self.teacher is not None and self.batch_size > self.buffer_size:
            raise refusal(must_be(f"at most buffer_size ({self.buffer_size})", self.batch_size), "batch_size")
        return self

    def minimal(self) -> Self:
        """With what it learns from."""
        return type(self)(demo_path=self.demo_path, teacher=self.teacher)

    def for_playing(self) -> Self:
        """With the smallest replay buffer."""
        return self.model_copy(update={"buffer_size": 1})

    def for_timing(self, share: float) -> Self:
        """Two mini-batches make an update, without a loss of what is held out."""
        rows = max(1, round(self.batch_size * share))
        update = {"batch_size": rows, "samples_per_update": 2 * rows, "steps_per_update": 2 * rows, "validation": 0.0}
        return self.model_copy(update=update | {"buffer_size": 4 * rows})

    @property
    def learns_offline(self) -> bool:
        """Demonstrations need no agents."""
        return self.teacher is None

    @property
    def demonstration_path(self) -> str | None:
        """What it learns from without a teacher."""
        return self.demo_path

    @property
    def teacher_path(self) -> str | None:
        """Whom it learns from without demonstrations."""
        return self.teacher

    @property
    def replay_steps(self) -> int:
        """How many labels are kept."""
        return 0 if self.teacher is None else self.buffer_size

    @property
    def saves_replay(self) -> bool:
        """Whether labels are saved with each checkpoint."""
        return self.teacher is not None and self.save_replay_buffer

    def num_updates(self, max_steps: int) -> int | None:
        """By the steps of an update; with demonstrations these may be fewer than `samples_per_update`, as many as there
        are."""
        return None if self.teacher is None else max_steps // self.steps_per_update

    def unused(self, reward_signals: Mapping[str, RewardSignalSettings]) -> Iterator[tuple[str, str]]:
        """What only the other source has."""
        if self.teacher is not None:
            yield "validation", "all labels of a teacher are learned from, once their loss is known"
        else:
            yield from ((key, "it counts with a teacher only") for key in _OF_TEACHERS)
