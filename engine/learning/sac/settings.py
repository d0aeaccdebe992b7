"""Hyperparameters of SAC: ML-Agents' keys in its order, then rl-tui's additions, which have a description."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.types import (
    Fraction,
    Positive,
    PositiveWhole,
    Settings,
    WholeFromZero,
    is_positive,
    refusal,
)

TIMED_REPLAY_STEPS = 1024  # room for some segments of any length


class PrioritizedReplaySettings(Settings):
    """Drawing rows of the replay buffer by their error instead of uniformly (Schaul et al. 2016)."""

    alpha: Fraction = Field(0.6, description="0 draws uniformly, 1 in proportion to the error.")
    beta: Fraction = Field(0.4, description="How far it is corrected for at the start; that grows to 1 at max_steps.")


class SACSettings(Hyperparameters):
    """Hyperparameters of soft actor-critic."""

    implementation: ClassVar = "rl_tui.engine.learning.sac.trainer:SACTrainer"
    synonyms: ClassVar = {
        **dict.fromkeys(("num_update", "train_interval", "gradient_steps", "train_freq"), "steps_per_update"),
        "reward_signal_num_update": "reward_signal_steps_per_update",
        "learning_starts": "buffer_init_steps",
        "gamma": "reward_signals.extrinsic.gamma",
    }

    learning_rate: Positive = 3e-4
    learning_rate_schedule: Schedule = "constant"
    batch_size: PositiveWhole = 128
    buffer_size: PositiveWhole = 50000
    buffer_init_steps: WholeFromZero = 0
    tau: Fraction = 0.005
    steps_per_update: Positive = 1.0
    save_replay_buffer: bool = False
    init_entcoef: Positive = 1.0
    reward_signal_steps_per_update: Positive = 1.0
    target_q: bool = Field(False, description="Learn from target copies of both Q networks, without a value network.")
    n_step: PositiveWhole = Field(1, description="Rewards that are summed before the value of the state after them.")
    prioritized_replay: PrioritizedReplaySettings | None = Field(
        None, description="Draw rows by the error of their Q values; null: uniformly."
    )
    target_entropy: float | None = Field(
        None, description="Of continuous actions; null: minus their number, as in ML-Agents."
    )
    max_grad_norm: Positive | None = Field(None, description="Clip the gradient to this norm; null: never.")
    adam_epsilon: Positive = Field(1e-8, description="Adam's epsilon.")

    changeable: ClassVar = ("learning_rate", "tau", "steps_per_update", "target_entropy")
    squashes_actions: ClassVar = True
    entropy_target: ClassVar = "target_entropy"
    health_rules: ClassVar = {
        "value_loss_explosion": "",  # the Q losses are judged instead
        "q_divergence": "rl_tui.engine.session.health.replay:QDivergence",
        "entropy_coefficient": "rl_tui.engine.session.health.entropy:EntropyCoefficient",
        "no_updates": "rl_tui.engine.session.health.replay:NoUpdates",
    }
    advice: ClassVar = {
        "entropy_collapse": "raise target_entropy or init_entcoef, or roll back to an earlier checkpoint",
        "same_returns": "reward steps toward the goal, make the task easier, or explore more: raise init_entcoef",
        "no_improvement": "update more often (a lower steps_per_update), reward steps toward the goal, or raise"
        " target_entropy or init_entcoef",
    }

    def for_playing(self) -> Self:
        """With the smallest replay buffer."""
        return self.model_copy(update={"buffer_size": 1})

    def for_timing(self, share: float) -> Self:
        """A small replay buffer, and each of its steps is followed by a mini-batch."""
        rows = max(1, round(self.batch_size * share))
        update = {"batch_size": rows, "buffer_size": max(4 * rows, TIMED_REPLAY_STEPS), "buffer_init_steps": 0}
        return self.model_copy(update=update | {"steps_per_update": 1.0})

    @property
    def replay_steps(self) -> int:
        """How many steps the replay buffer holds."""
        return self.buffer_size

    @property
    def saves_replay(self) -> bool:
        """Whether the replay buffer is saved with each checkpoint."""
        return self.save_replay_buffer

    @property
    def warmup_steps(self) -> int:
        """Steps that only fill an empty replay buffer."""
        return min(self.buffer_init_steps, self.buffer_size)

    def num_updates(self, max_steps: int) -> int:
        """One for every `steps_per_update` steps after the first ones."""
        return int(max(0, max_steps - self.warmup_steps) / self.steps_per_update)

    @property
    def memory_conflict(self) -> str:
        """A memory is trained on whole sequences: no sums of n steps, no single steps drawn by priority."""
        if self.n_step > 1:
            return f"must be null unless n_step is 1, got n_step: {self.n_step}"
        if self.prioritized_replay:
            return "must be null unless prioritized_replay is null"
        return ""

    def unused(self, reward_signals: Mapping[str, RewardSignalSettings]) -> Iterator[tuple[str, str]]:
        """How often reward signals learn, where none does."""
        if not any(signal.learns for signal in reward_signals.values()):
            yield "reward_signal_steps_per_update", "no reward signal of this behavior learns"

    def suspicious(self, time_horizon: int, max_steps: int) -> Iterator[tuple[str, str]]:
        """A warm-up longer than the buffer or the training, and sums longer than their experience."""
        got = f"got {self.buffer_init_steps}"
        if self.buffer_init_steps > self.buffer_size:
            yield "buffer_init_steps", f"should be at most buffer_size ({self.buffer_size}), {got}"
        elif self.buffer_init_steps >= max_steps:
            yield "buffer_init_steps", f"should be less than max_steps ({max_steps}), or nothing is learned, {got}"
        if self.n_step > time_horizon:
            yield "n_step", f"should be at most time_horizon ({time_horizon}), where sums end, got {self.n_step}"

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """reward_signal_steps_per_update is steps_per_update unless written."""
        steps = written.get("steps_per_update")
        return {"reward_signal_steps_per_update": steps} | written if is_positive(steps) else written

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if self.batch_size <= self.buffer_size:
            return self
        if "batch_size" in self.model_fields_set:
            raise refusal(must_be(f"at most buffer_size ({self.buffer_size})", self.batch_size), "batch_size")
        raise refusal(must_be(f"at least batch_size ({self.batch_size})", self.buffer_size), "buffer_size")
