"""What an environment looks like now, as its worker process sends it: pixels, text, or why there are neither.

Shapes: H rows, W columns of pixels.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.base import Environment, Paced, Rendered
from rl_tui.engine.sampling.environments.rendering import Frame, fitted
from rl_tui.engine.sampling.failures import Guard, InstanceFailure
from rl_tui.engine.specs import Json


@dataclass(frozen=True, slots=True)
class Picture:
    """pixels: u8[H, W, 3], no larger than requested; None if it is text. reason: why there is neither.

    detail: the traceback of the reason. hz: the environment's own steps per second, if it has any.
    """

    pixels: Frame | None = None
    text: str = ""
    reason: str = ""
    detail: str = ""
    hz: float | None = None


def picture_of(environment: Environment, guard: Guard, width: int, height: int) -> Picture:
    """A picture of at most so many pixels; if drawing raises, that is its reason."""
    if not isinstance(environment, Rendered):
        return Picture(reason="the environment has no method `render`")
    try:
        with guard:
            drawn = environment.render()
    except InstanceFailure as failure:
        return Picture(reason=str(failure), detail=failure.detail)
    except ConfigError as error:
        return Picture(reason=str(error))
    hz = environment.render_hz if isinstance(environment, Paced) else None
    if drawn is None:
        return Picture(reason="it has no render mode that gives pixels or text", hz=hz)
    if isinstance(drawn, str):
        return Picture(text=drawn, hz=hz)
    return Picture(fitted(drawn, width, height), hz=hz)


def picture_to_json(picture: Picture) -> Json:
    """The picture as `picture_from_json` reads it."""
    fields: dict[str, Json] = {
        "text": picture.text, "reason": picture.reason, "detail": picture.detail, "hz": picture.hz,
    }  # fmt: skip
    if picture.pixels is not None:
        fields["shape"] = list(picture.pixels.shape)
        fields["pixels"] = base64.b64encode(picture.pixels.tobytes()).decode()
    return fields


def picture_from_json(fields: Json) -> Picture:
    """The picture that was encoded."""
    assert isinstance(fields, dict)
    pixels: NDArray[np.uint8] | None = None
    if "pixels" in fields:
        shape = fields["shape"]
        assert isinstance(shape, list)
        pixels = np.frombuffer(base64.b64decode(str(fields["pixels"])), np.uint8).reshape([int(str(n)) for n in shape])
    hz = fields["hz"]
    return Picture(
        pixels,
        str(fields["text"]),
        str(fields["reason"]),
        str(fields["detail"]),
        None if hz is None else float(str(hz)),
    )
