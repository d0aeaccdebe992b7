"""From a Gymnasium id to an environment: in its vectorized form if one is registered, else a loop over copies."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, VectorizeMode, load_env_creator

from rl_tui.engine.config.diagnostics import closest
from rl_tui.engine.config.environments import OpenArguments
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.installation import command_for, command_for_extra
from rl_tui.engine.sampling.environments.base import Environment, EnvironmentKind
from rl_tui.engine.sampling.environments.gymnasium_loop import KIND_OF_COPIES, GymnasiumLoop, is_gymnasium
from rl_tui.engine.sampling.environments.gymnasium_vector import AnyVectorEnv, GymnasiumVector
from rl_tui.engine.sampling.environments.modules import import_named
from rl_tui.engine.sampling.environments.wrapping import wrap


@dataclass(frozen=True, slots=True)
class Needed:
    """A package besides Gymnasium, and our extra, or else the package, that installs it.

    module: what an environment imports; "" where only drawing needs it.
    """

    name: str
    module: str = ""
    extra: str = ""
    package: str = ""


NEEDED = {  # by the module of an environment's entry point
    "gymnasium.envs.box2d": Needed("Box2D", "Box2D", extra="box2d"),
    "gymnasium.envs.mujoco": Needed("MuJoCo", "mujoco", extra="mujoco"),
    "gymnasium.envs.phys2d": Needed("JAX", "jax", package="gymnasium[jax]"),
    "gymnasium.envs.tabular": Needed("JAX", "jax", package="gymnasium[jax]"),
    "gymnasium.envs.toy_text": Needed("pygame", package="gymnasium[toy-text]"),
    "ale_py": Needed("ale-py", "ale_py", extra="atari"),
}


class GymnasiumEnvironment(EnvironmentKind[OpenArguments]):
    """The environments that "gymnasium:ID" names."""

    def make(self, name: str, behavior: str, copies: range, settings: OpenArguments) -> list[Environment]:
        """One environment holding these copies of a registered id, e.g. "CartPole-v1" or "ale_py:ALE/Pong-v5".

        settings go to the environment, as with gymnasium.make. Raises ConfigError when the id is unknown, a package is
        missing or they do not fit, NotSupportedError for spaces that are not columns.
        """
        spec, kwargs, num_copies = find(name), settings.arguments, len(copies)
        adaptation = settings.adaptation  # a vectorized form resets its copies itself, and has no parameters of each
        try:
            is_one_by_one = adaptation.has_parameters or bool(adaptation.wrappers)
            if num_copies > 1 and not is_one_by_one and has_vectorized_form(spec, kwargs):
                vectorized = _vectorized(spec, num_copies, kwargs)
                if vectorized is not None:
                    return [GymnasiumVector(behavior, vectorized)]
            # Our own checks cover every step; Gymnasium's only the first, with warnings about style.
            arguments: dict[str, Any] = {"disable_env_checker": True, **kwargs}
            made = [gymnasium.make(spec, **arguments) for _ in range(num_copies)]
        except (gymnasium.error.DependencyNotInstalled, ModuleNotFoundError) as error:
            missing = _missing(str(spec.entry_point))
            if not missing and isinstance(error, ModuleNotFoundError):
                raise  # from the user's environment: the line says more
            raise ConfigError(f"gymnasium:{name}: {missing or error}") from error
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            reason = str(error).partition(" was raised from the environment creator")[0]
            raise ConfigError(f"gymnasium:{name}: invalid env_kwargs: {reason}") from error
        made = wrap(made, adaptation.wrappers, is_gymnasium, KIND_OF_COPIES)
        return [GymnasiumLoop(behavior, made, adaptation.parameters)]

    def require(self, name: str) -> None:
        """The id is registered, after importing the module named before a colon, and what it needs is installed.

        Raises ConfigError.
        """
        needed = _needed(str(find(name).entry_point))
        if needed is not None and needed.module and importlib.util.find_spec(needed.module) is None:
            raise ConfigError(f"gymnasium:{name}: {_how_to_install(needed)}")

    def to_draw(self, name: str, settings: OpenArguments, *, may_be_text: bool) -> OpenArguments:
        """Text if it may be text and the environment can render it, else frames."""
        given = settings.arguments
        if not may_be_text:
            return OpenArguments(**{"render_mode": "rgb_array", **given})
        modes = render_modes(name)
        mode = next((mode for mode in ("ansi", "rgb_array") if mode in modes), None)
        return settings if mode is None else OpenArguments(**{**given, "render_mode": mode})


def find(identifier: str) -> EnvSpec:
    """The registered spec of an id, after importing the module named before a colon."""
    module, colon, name = identifier.rpartition(":")
    if colon:
        try:
            import_named(f"gymnasium:{identifier}", module)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"gymnasium:{identifier}: {_missing(module) or f'no module named {error.name!r}'}"
            ) from error
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise ConfigError(f"gymnasium:{identifier}: {_why_unknown(name, error)}") from error


def render_modes(identifier: str) -> list[str]:
    """The render modes of an environment, as its class lists them or its function accepts them.

    Raises ConfigError as `make` does.
    """
    entry_point = find(identifier).entry_point
    try:
        creator: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    except ModuleNotFoundError:
        return []  # making it says what is missing
    modes = getattr(creator, "metadata", {}).get("render_modes")
    if modes is None and creator is not None and "render_mode" in inspect.signature(creator).parameters:
        return ["rgb_array"]
    return list(modes or [])


def has_vectorized_form(spec: EnvSpec, kwargs: Mapping[str, object]) -> bool:
    """Whether a vectorized form is registered that takes the same arguments as one copy.

    Frames come from the loop, which draws one copy; the vectorized form draws all.
    """
    if spec.vector_entry_point is None or spec.additional_wrappers or kwargs.get("max_episode_steps") == -1:
        return False
    if "render_mode" in kwargs:
        return False
    creator = spec.vector_entry_point
    parameters = inspect.signature(load_env_creator(creator) if isinstance(creator, str) else creator).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    wanted = {*spec.kwargs, *kwargs, *(["max_episode_steps"] if spec.max_episode_steps is not None else [])}
    return takes_any or wanted <= set(parameters)


def _vectorized(spec: EnvSpec, num_copies: int, kwargs: Mapping[str, object]) -> AnyVectorEnv | None:
    """The vectorized form; None where its spaces are not those of one copy.

    Atari's scales and stacks the frames that one copy returns as they are: a policy of the one would not fit the other.
    """
    arguments = dict[str, Any](kwargs)
    with contextlib.closing(gymnasium.make(spec, disable_env_checker=True, **arguments)) as one:
        vectorized = gymnasium.make_vec(spec, num_copies, VectorizeMode.VECTOR_ENTRY_POINT, **arguments)
        if (vectorized.single_observation_space, vectorized.single_action_space) == (
            one.observation_space,
            one.action_space,
        ):
            return vectorized
    vectorized.close()
    return None


def _why_unknown(name: str, error: gymnasium.error.Error) -> str:
    """Why no environment has that name, and what was probably meant."""
    if isinstance(error, gymnasium.error.NamespaceNotFound):
        namespace = name.partition("/")[0]
        if namespace == "ALE":
            is_installed = importlib.util.find_spec("ale_py") is not None
            return f"the module ale_py registers it: gymnasium:ale_py:{name}" if is_installed else _missing("ale_py")
        return (
            f"no module has registered {namespace}. Put the one that does before the id, as in gymnasium:MODULE:{name}"
        )
    if isinstance(error, gymnasium.error.VersionNotFound | gymnasium.error.DeprecatedEnv):
        return re.sub(r"^Environment `\S+` doesn't exist", "no such Gymnasium environment", str(error))
    near = closest(name, gymnasium.registry)
    return f"no such Gymnasium environment{f'. Did you mean gymnasium:{near}?' if near else ''}"


def _missing(entry_point: str) -> str:
    """What is not installed, and the command that installs it; "" for an unknown module."""
    needed = _needed(entry_point)
    return "" if needed is None else _how_to_install(needed)


def _needed(entry_point: str) -> Needed | None:
    return next((needed for module, needed in NEEDED.items() if entry_point.startswith(module)), None)


def _how_to_install(needed: Needed) -> str:
    command = command_for_extra(needed.extra) if needed.extra else command_for(needed.package)
    return f"it needs {needed.name}, which is not installed. Install it with: {command}"
