"""The hyperparameters that the loop of an on-policy update reads."""

from typing import TYPE_CHECKING

from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule


class OnPolicySettings(Hyperparameters):
    """Those of a trainer that derives from `OnPolicyTrainer`. It declares all of these, in its own order, with its own
    ranges and defaults."""

    if TYPE_CHECKING:  # for pydantic, what a base class declares would come first in files
        batch_size: int
        buffer_size: int
        learning_rate: float
        learning_rate_schedule: Schedule
        num_epoch: int
        max_grad_norm: float | None
        target_kl: float | None
        adam_epsilon: float

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Raise TypeError, where a plug-in is imported, for a class that lacks one."""
        super().__pydantic_init_subclass__(**kwargs)
        names = ("batch_size", "buffer_size", "learning_rate", "learning_rate_schedule", "num_epoch")
        missing = {*names, "max_grad_norm", "target_kl", "adam_epsilon"} - cls.model_fields.keys()
        if missing:
            raise TypeError(f"{cls.__name__} must have the fields {', '.join(sorted(missing))}")
