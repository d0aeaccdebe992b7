"""What a run logs about behaviors before they train, and about what fails in an environment."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rl_tui.engine.config.naming import set_to
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.specs import BehaviorSpec

_NO_CONDITIONING = "network_settings.goal_conditioning_type: none"


def describe(spec: BehaviorSpec) -> str:
    """Its spaces: `observations: joints (3,) float32; actions: 2 continuous, branches of 3 and 2`."""
    seen = ", ".join(f"{one.name} {one.shape} {one.dtype}{' as goal' * one.is_goal}" for one in spec.observations)
    numbers = [f"{spec.actions.continuous} continuous"] if spec.actions.continuous else []
    branches = [f"branches of {' and '.join(map(str, spec.actions.branches))}"] if spec.actions.branches else []
    return f"observations: {seen}; actions: {', '.join(numbers + branches)}"


def max_steps_reached(key: str, step: int, max_steps: int) -> str:
    """Why a resumed behavior does not train. key: of its settings in the file."""
    reached = f"has reached max_steps ({step} of {max_steps}) and learns no more"
    more = max_steps * (step // max_steps + 1)
    return f"{reached}; to continue, raise max_steps in the file or with {set_to(f'{key}.max_steps', more)}"


def goal_note(
    spec: BehaviorSpec, network: NetworkSettings, num_parameters: int, is_chosen: bool
) -> tuple[LogLevel, str] | None:
    """What a user should know about a behavior's goals, if anything. is_chosen: the file sets how they are used."""
    goals = [seen for seen in spec.observations if seen.is_goal]
    if not goals or network.goal_conditioning_type == "none":
        return None
    names = ", ".join(goal.name for goal in goals)
    if all(goal.kind == "entities" for goal in goals):  # as in ML-Agents
        text = "a set of entities cannot compute the weights of a layer and is used as an ordinary observation"
        return "warning" if is_chosen else "info", f"goal {names}: {text}, as under {_NO_CONDITIONING}"
    if is_chosen:
        return None
    return "warning", (
        f"goal {names}: the default goal_conditioning_type, hyper, computes the weights of a layer from it:"
        f" {num_parameters:,} parameters in all, and training is many times slower. Write {_NO_CONDITIONING} to make"
        " it an ordinary observation, or goal_conditioning_type: hyper to keep it without this warning"
    )


def small_images_note(spec: BehaviorSpec, network: NetworkSettings) -> str | None:
    """Which images are read as vectors, and why, if there are any."""
    layout = FeatureLayout.of(spec.observations, network)
    small = [seen for seen in spec.observations if layout.is_small_image(seen)]
    if not small:
        return None
    side, names = network.encoder_settings.smallest, [f"{s.name} ({s.shape[0]}x{s.shape[1]})" for s in small]
    is_scaled = network.normalize or all(seen.dtype != "uint8" for seen in small)
    advice = "" if is_scaled else ". Large numbers need network_settings.normalize: true"
    reason = f"vis_encode_type: {network.vis_encode_type} needs {side}x{side} pixels"
    return f"read as a vector, since {reason}: {', '.join(names)}{advice}"


def not_there_yet(missing: Sequence[str], *, has_any: bool) -> str:
    """That an environment lacks these behaviors of the file at the start. has_any: it has others."""
    names, trained = ", ".join(missing), f"{'it is' if len(missing) == 1 else 'each is'} trained from when it appears"
    return f"has no behavior {names} yet; {trained}" if has_any else f"has no behaviors yet; {names}: {trained}"


class LoggedWarnings(logging.Handler):
    """While it is entered, what pools log is a warning of the run, such as an environment that raises in `close`."""

    def __init__(self, bus: EventBus):
        super().__init__(logging.WARNING)
        self._bus = bus
        self._logger = logging.getLogger("rl_tui.engine.sampling")

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Any thread."""
        self._bus.log("warning", "run", record.getMessage())


def save_traceback(bus: EventBus, source: str, name: str, output: Path, title: str, detail: str) -> None:
    """Append the whole traceback to the output file, and log where it is, or why it could not be written."""
    try:
        with open(output, "a", encoding="utf-8", errors="backslashreplace", opener=open_regular) as log:
            log.write(f"{title}\n{detail.rstrip()}\n")
    except OSError as refused:
        bus.log("warning", source, f"{output}: not written ({refused.strerror})")
    else:
        bus.log("info", source, f"the whole traceback of {name} is in {output}")
