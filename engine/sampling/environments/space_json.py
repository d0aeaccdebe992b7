"""Gymnasium spaces as JSON and back, so that a policy's file knows what its environment gives and takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.spaces import Space
from rl_tui.engine.specs import Json


def spaces_to_json(observation: Space, action: Space) -> Json:
    """Both spaces of an environment; each must be one that observations and actions may have."""
    return {"observation": space_to_json(observation), "action": space_to_json(action)}


def space_to_json(space: Space) -> Json:
    """The space as `space_from_json` reads it."""
    match space:
        case spaces.Dict():
            return {"kind": "Dict", "spaces": [[key, space_to_json(child)] for key, child in space.spaces.items()]}
        case spaces.Tuple():
            return {"kind": "Tuple", "spaces": [space_to_json(child) for child in space.spaces]}
        case spaces.Box():
            bounds = {"low": _bounds(space.low), "high": _bounds(space.high)}
            return {"kind": "Box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
        case spaces.Discrete():
            return {"kind": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
        case spaces.MultiDiscrete():
            sizes = {"sizes": space.nvec.tolist(), "start": space.start.tolist()}
            return {"kind": "MultiDiscrete", **sizes, "dtype": str(space.dtype)}
        case spaces.MultiBinary():
            return {"kind": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.shape)}
        case _:
            raise TypeError(f"{type(space).__name__} spaces are neither numbers nor choices")


def space_from_json(fields: Any) -> Space:  # Any: JSON, of which only what is written is read
    """The space that was written. Raises KeyError, TypeError or ValueError for anything else."""
    match fields["kind"]:
        case "Dict":
            return spaces.Dict([(key, space_from_json(child)) for key, child in fields["spaces"]])
        case "Tuple":
            return spaces.Tuple([space_from_json(child) for child in fields["spaces"]])
        case "Box":
            shape, dtype = tuple(fields["shape"]), np.dtype(fields["dtype"])
            low, high = (_array(fields[bound], shape, dtype) for bound in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        case "Discrete":
            return spaces.Discrete(fields["n"], start=fields["start"], dtype=np.dtype(fields["dtype"]).type)
        case "MultiDiscrete":
            return spaces.MultiDiscrete(
                fields["sizes"], dtype=np.dtype(fields["dtype"]).type, start=np.array(fields["start"])
            )
        case "MultiBinary":
            return spaces.MultiBinary(fields["n"])
        case kind:
            raise ValueError(f"no kind of spaces is called {kind!r}")


def _bounds(values: NDArray[Any]) -> Json:
    """One number where all are equal, as of an image; infinities, which JSON has not, as text."""
    flat: list[Any] = [_number(value) for value in values.ravel().tolist()]
    return flat[0] if len(set(flat)) == 1 else flat


def _number(value: float) -> Json:
    return str(value) if np.isinf(value) else value


def _array(bounds: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    values = bounds if isinstance(bounds, list) else [bounds]
    array = np.array([float(value) if isinstance(value, str) else value for value in values], dtype)
    return np.full(shape, array[0], dtype) if len(array) == 1 else array.reshape(shape)
