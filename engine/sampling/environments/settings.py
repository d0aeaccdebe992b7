"""The kinds of environments that are built in. Their arguments are checked where they are made."""

from typing import ClassVar, Self

from pydantic import JsonValue, SerializerFunctionWrapHandler, model_serializer

from rl_tui.engine.config.environments import EnvironmentSettings, OpenArguments
from rl_tui.engine.config.types import Positive, PositiveWhole, WholeFromMinusOne, WholeFromZero
from rl_tui.engine.sampling.environments.training_analytics import TrainingAnalytics


class GymnasiumSettings(OpenArguments):
    """Registered environments of Gymnasium, as gymnasium:ID or gymnasium:MODULE:ID."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.gymnasium:GymnasiumEnvironment"
    has_one_behavior: ClassVar = True
    takes_wrappers: ClassVar = True
    pattern: ClassVar = "ID"

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Only where a module registers the id."""
        return ":" in name


class ToySettings(OpenArguments):
    """Small tasks, to try settings in seconds or minutes."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.toys.factory:ToyEnvironment"
    has_one_behavior: ClassVar = True

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Never."""
        return False


class BaseEnvSettings(OpenArguments):
    """Environments written for mlagents_envs, made by a factory of the user's."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.base_env.kind:BaseEnvKind"
    has_mlagents_defaults: ClassVar = True
    pattern: ClassVar = "module:factory"
    seeding: ClassVar = "Give its reset an argument seed, and draw from a generator of it"
    time_limit: ClassVar = "terminal steps with interrupted"


class PettingZooSettings(OpenArguments):
    """Environments of PettingZoo, as pettingzoo:NAMESPACE/NAME or pettingzoo:MODULE."""

    implementation: ClassVar = "rl_tui.engine.sampling.environments.pettingzoo.kind:PettingZooEnvironment"
    names_agents: ClassVar = True
    takes_wrappers: ClassVar = True
    seeding: ClassVar = "Let its reset make a generator of the seed, and draw only from that; spaces' sample() does not"
    time_limit: ClassVar = "max_cycles in env_kwargs, which many of PettingZoo's have"

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Only where a module is named, of the user's or of a package."""
        return "/" not in name or ":" in name


class DemonstrationsSettings(EnvironmentSettings):
    """What was demonstrated, as demonstrations:PATH, for behaviors that learn from nothing else."""

    implementation: ClassVar = "rl_tui.engine.demonstrations.in_place_of_environment:DemonstrationsInPlace"
    has_one_behavior: ClassVar = True
    has_agents: ClassVar = False
    pattern: ClassVar = "PATH"
    not_drawn: ClassVar = "there is nothing to watch: set env"

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Never."""
        return False


class UnityArguments(EnvironmentSettings):
    """Players built with Unity, and the Editor.

    side_channels: the user's own, as package.module:Class.
    """

    elsewhere: ClassVar = ". Other settings of players are in env_settings and engine_settings"
    has_mlagents_defaults: ClassVar = True

    side_channels: list[str] = []

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without what nobody wrote: the environment of a file may be replaced by one of another kind."""
        return {key: value for key, value in dump(self).items() if key in self.model_fields_set}


class UnitySettings(UnityArguments):
    """Players built with Unity, as unity:PATH or just PATH, and the Editor, as unity:editor.

    The run adds what env_settings and engine_settings have. seed: of copy 0; that of copy i is i more, and so is its
    port; the Editor takes the seed of a reset. is_port_fixed: base_port was chosen by the user, and no other port will
    do. log_folder: an absolute path, null for no log. shows_output: what the player prints goes into the log of its
    worker process. analytics: what copy 0 receives of the training; null: nothing.
    """

    implementation: ClassVar = "rl_tui.engine.sampling.environments.unity.kind:UnityKind"
    pattern: ClassVar = "PATH"
    from_file: ClassVar = UnityArguments
    time_limit: ClassVar = "Max Step of the agents"
    not_drawn: ClassVar = (
        "a Unity player cannot be drawn here, since it draws in a window of its own. To see a policy, run it without"
        " --no-graphics, or use the exported .onnx file in Unity"
    )

    env_args: list[str] = []
    base_port: PositiveWhole = 5005
    is_port_fixed: bool = False
    num_areas: PositiveWhole = 1
    timeout_wait: PositiveWhole = 60
    seed: WholeFromZero = 0
    width: PositiveWhole = 84
    height: PositiveWhole = 84
    quality_level: WholeFromZero = 5
    time_scale: Positive = 20.0
    target_frame_rate: WholeFromMinusOne = -1
    capture_frame_rate: WholeFromZero = 60
    no_graphics: bool = False
    no_graphics_monitor: bool = False
    log_folder: str | None = None
    shows_output: bool = False
    analytics: TrainingAnalytics | None = None

    @classmethod
    def runs_user_code(cls, name: str) -> bool:
        """Only when a player is started."""
        return False

    def with_later_seed(self, shift: int) -> Self:
        """A player takes a seed when it connects, and none at a reset."""
        return self.model_copy(update={"seed": self.seed + shift})
