"""What the hyperparameters of every trainer have in common, and how `trainer_type` chooses their class.

Each trainer's own class is in the trainer's folder (engine/learning/ppo/settings.py). The registry names it, so that a
configuration is read without importing any algorithm.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import SerializeAsAny

from rl_tui.engine import registry
from rl_tui.engine.config.changeable import ChangeableSettings, require_fields, require_kind
from rl_tui.engine.config.plugin_settings import (
    plugin_name,
    plugin_settings,
    settings_of_plugin,
    settings_of_plugins,
    supported_names,
)
from rl_tui.engine.config.reward_signals import RewardSignalSettings

KIND = "trainers"
Schedule: TypeAlias = Literal["constant", "linear"]


class Hyperparameters(ChangeableSettings):
    """The hyperparameters of one trainer.

    Trainers declare all of their fields themselves, in the order in which ML-Agents writes them.
    """

    squashes_actions: ClassVar[bool] = False  # the policy bounds continuous actions by a tanh
    learns_from_rewards: ClassVar[bool] = True
    values_groups: ClassVar[bool] = False  # its critic sees all agents of a group
    attention_heads: ClassVar[int] = 1  # by which network_settings.hidden_units must be divisible

    # For warnings, by their kind (engine/session/health/monitor.py lists the common ones).
    health_rules: ClassVar[Mapping[str, str]] = {}  # rules of its own as "module:Class"; "": a common one is left out
    advice: ClassVar[Mapping[str, str]] = {}  # what to try, in place of the rule's advice
    entropy_target: ClassVar[str] = ""  # the changeable number at which it holds the policy's entropy
    headline_metrics: ClassVar[tuple[str, ...]] = ()  # tags of its own that the screen shows before the usual ones

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Raise TypeError, where a plug-in is imported, for what would otherwise fail while it trains."""
        super().__pydantic_init_subclass__(**kwargs)
        for name, kind in {"headline_metrics": tuple, "health_rules": dict, "advice": dict}.items():
            require_kind(cls, name, kind)
        require_fields(cls, filter(None, [cls.entropy_target]))

    @classmethod
    def complete(cls, written: dict[str, object]) -> dict[str, object]:
        """beta and epsilon take the learning rate's schedule where they have none of their own, as in ML-Agents."""
        schedule = written.get("learning_rate_schedule")
        followers = [key for key in ("beta_schedule", "epsilon_schedule") if key in cls.model_fields]
        return dict.fromkeys(followers, schedule) | written if schedule in ("constant", "linear") else written

    def for_playing(self) -> Self:
        """The same for a trainer that never learns, and needs no room for experience."""
        return self

    def for_timing(self, share: float) -> Self:
        """The same for a trainer that is only timed: its updates need little experience, and mini-batches have this
        share of their rows. Without this method an update is timed as it is."""
        return self

    @property
    def replay_steps(self) -> int:
        """How many steps the replay buffer holds; 0 without one."""
        return 0

    @property
    def saves_replay(self) -> bool:
        """Whether a replay buffer is saved with each checkpoint, and loaded again by `--resume`."""
        return False

    @property
    def warmup_steps(self) -> int:
        """Steps that only fill an empty replay buffer, before the first update."""
        return 0

    def minimal(self) -> Self:
        """The defaults, with all that it cannot do without."""
        needed = [name for name, field in type(self).model_fields.items() if field.is_required()]
        return type(self).model_validate({name: getattr(self, name) for name in needed})

    @property
    def learns_offline(self) -> bool:
        """Whether updates need no experience, and no agent acts for them."""
        return False

    @property
    def demonstration_path(self) -> str | None:
        """The demonstrations without which it cannot learn, a file or a folder; None without any."""
        return None

    @property
    def teacher_path(self) -> str | None:
        """The policy without which it cannot learn: a run's folder, a checkpoint or an exported file; None for none."""
        return None

    def num_updates(self, max_steps: int) -> int | None:
        """About how many updates a training of so many steps makes; None where that is not known."""
        return None

    @property
    def memory_conflict(self) -> str:
        """Why no memory can be trained with these settings; empty when one can."""
        return ""

    def unused(self, reward_signals: Mapping[str, RewardSignalSettings]) -> Iterator[tuple[str, str]]:
        """Every key that changes nothing in this behavior, and why."""
        yield from ()

    def suspicious(self, time_horizon: int, max_steps: int) -> Iterator[tuple[str, str]]:
        """Every key whose value is accepted and probably not intended, and why."""
        yield from ()


def trainer_names() -> list[str]:
    """What `trainer_type` may be in a run."""
    return supported_names(KIND, Hyperparameters)


def trainers_that_value_groups() -> list[str]:
    """Those whose critics see all agents of a group."""
    return [name for name, settings in settings_of_plugins(KIND, Hyperparameters).items() if settings.values_groups]


def is_trainer(name: object) -> bool:
    """Whether `trainer_type` may be this."""
    return registry.has(KIND, name)


def hyperparameters_of(trainer: str) -> type[Hyperparameters]:
    """The class of a trainer's hyperparameters. Raises NotSupportedError for an unknown trainer, PluginError."""
    return settings_of_plugin(KIND, trainer, Hyperparameters)


def every_hyperparameters() -> dict[str, type[Hyperparameters]]:
    """The class of every trainer's hyperparameters, without those that cannot be imported."""
    return settings_of_plugins(KIND, Hyperparameters)


TrainerType: TypeAlias = Annotated[str, plugin_name(KIND, Hyperparameters)]
TrainerHyperparameters: TypeAlias = Annotated[
    SerializeAsAny[Hyperparameters], plugin_settings(KIND, Hyperparameters, "trainer_type")
]
"""Those of the `trainer_type` that is declared before."""
