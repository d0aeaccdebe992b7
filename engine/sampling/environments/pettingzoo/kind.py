"""PettingZoo's environments, of its registry and of modules."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environments import OpenArguments
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.pettingzoo.episodes import Env
from rl_tui.engine.sampling.environments.pettingzoo.lookup import find, missing
from rl_tui.engine.sampling.environments.pettingzoo.loop import PettingZooLoop
from rl_tui.engine.sampling.environments.pettingzoo.roles import Roles
from rl_tui.engine.sampling.environments.wrapping import wrap

KIND_OF_COPIES = "ParallelEnv or AECEnv of PettingZoo"


class PettingZooEnvironment(EnvironmentKind[OpenArguments]):
    """The environments that "pettingzoo:NAME" names."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """One instance that holds these copies. name: "classic/connect_four_v3", or a module like
        "mpe2.simple_spread_v3".

        settings go to the environment. Raises ConfigError when there is none of that name, a package is missing or they
        do not fit, NotSupportedError for spaces that are not columns.
        """
        found = find(name)
        try:
            made = [found.make(**settings.arguments) for _ in copies]
        except ImportError as error:
            if not (text := missing(error)):
                raise
            raise ConfigError(f"pettingzoo:{name}: {text}") from error
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise ConfigError(f"pettingzoo:{name}: invalid env_kwargs: {error}") from error
        made = wrap(made, settings.adaptation.wrappers, is_of_pettingzoo, KIND_OF_COPIES)
        return [loop_of(f"pettingzoo:{name}", behavior, made, settings.adaptation)]

    def require(self, name: str) -> None:
        """It is registered, or its module can be imported. Raises ConfigError and InstanceFailure."""
        find(name)

    def to_draw(self, name: str, settings: OpenArguments, *, may_be_text: bool) -> OpenArguments:
        """Text if it may be text and the environment can draw it, else frames."""
        given, modes = settings.arguments, find(name).render_modes
        if not may_be_text:
            return OpenArguments(**{"render_mode": "rgb_array", **given}) if "rgb_array" in modes else settings
        mode = next((mode for mode in ("ansi", "rgb_array") if mode in modes), None)
        return settings if mode is None else OpenArguments(**{**given, "render_mode": mode})


def is_of_pettingzoo(env: object) -> bool:
    """Whether it is an environment of PettingZoo, which need not be installed: each agent has spaces of its own."""
    asked = ("observation_space", "action_space", "reset", "step")
    return all(callable(getattr(env, method, None)) for method in asked)


def loop_of(env: str, behavior: str, copies: Sequence[Env], adaptation: Adaptation) -> PettingZooLoop:
    """The copies as one instance. env: for messages. behavior: the first name in the file."""
    roles = Roles(adaptation.behaviors, adaptation.random_agents, behavior, env)
    return PettingZooLoop(copies, roles, adaptation.groups, adaptation.parameters)
