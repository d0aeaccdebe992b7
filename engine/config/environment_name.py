"""How `env` names an environment, and what is wrong with a name."""

import re

from rl_tui.engine.config.diagnostics import must_be, visible
from rl_tui.engine.config.environments import environment_names, kind_of, near_kind
from rl_tui.engine.config.types import refusal
from rl_tui.engine.errors import PluginError

UNITY = "unity"
DEMONSTRATIONS = "demonstrations"
EDITOR = f"{UNITY}:editor"  # a player of that name is unity:./editor
_GYMNASIUM_ID = re.compile(r"([\w:.-]+/)?[\w.-]+-v[0-9]+")
_VERSION = re.compile(r"[-_]v[0-9]+$")
_FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_FOLDER = re.compile(r"~|\.\.?[/\\]|[/\\]|[A-Za-z]:[/\\]|[^:]*[/\\][^:]*:")  # what only a path begins with


def read_environment(value: object) -> object:
    """The value of `env`, with the path of a player as unity:PATH. Refuses what names no environment."""
    if isinstance(value, str):
        return _read_name(value)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise refusal(must_be(environment_names(), value))
    if not value:
        raise refusal(must_be("a mapping of behaviors to environments", value))
    return {behavior: _read_name(name, behavior) for behavior, name in value.items()}


def short_name(env: str) -> str:
    """What a behavior or a run is called after its environment: Pong for gymnasium:ale_py:ALE/Pong-v5, Corridor for
    my.worlds:Corridor, simple_spread for pettingzoo:mpe2.simple_spread_v3."""
    kind, _, path = env.strip().partition(":")
    last = re.split("[:/]", path)[-1]
    if kind != "gymnasium":  # whose ids may have dots
        last = last.rpartition(".")[2]
    return _VERSION.sub("", last) or last


def is_of_unity(env: str) -> bool:
    """Whether this is a player or the Editor."""
    return env.strip().partition(":")[0] == UNITY


def _read_name(name: object, *at: str) -> str:
    """A name with its kind, or package.module:factory."""
    if not isinstance(name, str):
        raise refusal(must_be(environment_names(), name), *at)
    name = full_name(name)
    try:
        is_known = kind_of(name) is not None
    except PluginError as error:
        raise refusal(str(error), *at) from error
    scheme, _, rest = name.strip().partition(":")
    if not (rest.strip() if is_known else _FACTORY.fullmatch(name)):
        raise refusal(_refused(name, scheme, rest, is_known), *at)
    return name


def _refused(name: str, scheme: str, rest: str, is_known: bool) -> str:
    refused = must_be(environment_names(), name)
    if _GYMNASIUM_ID.fullmatch(name.strip()):
        player = f"{UNITY}:{visible(name.strip())}"
        return f"{refused}. Did you mean gymnasium:{visible(name.strip())}, or {player} for a Unity player?"
    kind = near_kind(scheme) if rest and not is_known else None
    return f"{refused}. Did you mean {visible(f'{kind}:{rest}')}?" if kind else refused


def full_name(env: str) -> str:
    """The name with its kind, which the path of a player may leave out."""
    path = env.strip()
    if not is_path(path):
        return env
    return f"{UNITY}:./{path}" if f"{UNITY}:{path}" == EDITOR else f"{UNITY}:{path}"


def is_path(name: str) -> bool:
    """Whether it can only be the path of a player, as ML-Agents' --env is: `builds/3DBall`, `C:\\Ball.exe`."""
    if _FOLDER.match(name):
        return True
    return bool(name) and ":" not in name and not _GYMNASIUM_ID.fullmatch(name)
