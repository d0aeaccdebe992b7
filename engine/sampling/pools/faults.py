"""What went wrong in a worker process, from its side of the pipe to the pool's."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.errors import ConfigError, NotSupportedError, PluginError, RlTuiError
from rl_tui.engine.sampling.failures import InstanceFailure, InstanceStopped, NonFiniteAnswer
from rl_tui.engine.specs import Json

_DETAIL_LENGTH = 20_000  # characters of a traceback that are sent; the end says most
_ABOUT_CONFIGURATION = {kind.__name__: kind for kind in (ConfigError, NotSupportedError, PluginError)}
_ABOUT_INSTANCES = {kind.__name__: kind for kind in (InstanceFailure, InstanceStopped, NonFiniteAnswer)}


def fault_to_json(error: RlTuiError) -> Json:
    """The error as `fault_from_json` reads it."""
    return {"error": type(error).__name__, "message": str(error), "detail": error.detail[-_DETAIL_LENGTH:]}


def fault_from_json(fault: Mapping[str, str], instance: int | None, worker: int) -> RlTuiError:
    """The error that was encoded. instance: the pool's number of where it was raised, if it is known."""
    name, message = fault["error"], fault["message"]
    if name in _ABOUT_CONFIGURATION:
        return _ABOUT_CONFIGURATION[name](message)
    return _ABOUT_INSTANCES.get(name, InstanceFailure)(message, instance, worker, fault["detail"])
