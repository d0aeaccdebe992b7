"""Whether the text that names an environment leads to one, without making it."""

from __future__ import annotations

from rl_tui.engine import registry
from rl_tui.engine.sampling.environments.factory import find_factory


def require_environment(env: str) -> None:
    """An environment of that name can be looked up; its module is imported, nothing of it is called.

    Raises ConfigError as making it would. A kind of environment that was installed is believed.
    """
    kind, _, name = env.partition(":")
    if kind == "gymnasium":
        from rl_tui.engine.sampling.environments.gymnasium import find

        find(name)
    elif kind == "toy":
        from rl_tui.engine.sampling.environments.toys.factory import find_task

        find_task(name)
    elif kind not in registry.names("environments"):
        find_factory(env, kind, name)
