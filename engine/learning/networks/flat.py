"""All parameters of a module as views of one array, which is stepped, copied and averaged as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

Array: TypeAlias = Any  # numpy array or torch tensor
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]  # of every parameter by name, in the order of the flat array
LARGE_BYTES = 1 << 20  # to put more than that beside others takes longer than one more copy to a GPU
ALIGNMENT = 16  # bytes: more than a number of any type has


def views(flat: Array, shapes: Shapes) -> dict[str, Array]:
    """The parts of a flat array by name, without a copy."""
    parts, start = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        parts[name] = flat[start : start + size].reshape(shape)
        start += size
    return parts


def placed(array: np.ndarray[Any, Any], device: torch.device, precision: torch.dtype | None = None) -> Tensor:
    """The array as a tensor on a device, numbers that are not whole in that precision.

    CUDA reads the array before it returns, and the copy need not wait until the GPU has done what it was given before.
    """
    tensor = torch.from_numpy(array)
    dtype = precision if precision is not None and tensor.is_floating_point() else tensor.dtype
    return tensor.to(device, dtype, non_blocking=device.type == "cuda")


def placed_together(
    arrays: Sequence[np.ndarray[Any, Any]], device: torch.device, precision: torch.dtype | None = None
) -> list[Tensor]:
    """`placed` of each; on a GPU all that are not large arrive in one copy, and share its memory."""
    together = [array for array in arrays if array.nbytes <= LARGE_BYTES] if device.type == "cuda" else []
    if len(together) < 2:
        return [placed(array, device, precision) for array in arrays]
    host = [placed(array, torch.device("cpu"), precision) for array in together]
    ends = list(accumulate(-(-tensor.nbytes // ALIGNMENT) * ALIGNMENT for tensor in host))
    packed = torch.empty(ends[-1], dtype=torch.uint8)
    for tensor, start in zip(host, [0, *ends], strict=False):
        _numbers(packed, start, tensor).copy_(tensor)
    there = placed(packed.numpy(), device)
    arrived = (_numbers(there, start, tensor) for tensor, start in zip(host, [0, *ends], strict=False))
    return [next(arrived) if array.nbytes <= LARGE_BYTES else placed(array, device, precision) for array in arrays]


def on_host(numbers: Sequence[Array]) -> list[float]:
    """Numbers f32[] each, those of a device in one copy."""
    are_there = [isinstance(number, Tensor) and number.device.type != "cpu" for number in numbers]
    there = [number for number, is_there in zip(numbers, are_there, strict=True) if is_there]
    arrived = iter(torch.stack(there).tolist() if there else [])
    return [next(arrived) if is_there else float(number) for number, is_there in zip(numbers, are_there, strict=True)]


def _numbers(packed: Tensor, start: int, like: Tensor) -> Tensor:
    """What begins at that byte, with the type and shape of another tensor; the same memory."""
    return packed[start : start + like.nbytes].view(like.dtype).view(like.shape)


class FlatParameters:
    """The parameters of a module, moved into one tensor; autograd accumulates into `gradient`.

    only_trained: without those that require no gradient, which are moved to the device only, as buffers are.
    """

    def __init__(self, module: nn.Module, device: torch.device, only_trained: bool = False):
        everything = dict(module.named_parameters())
        named = {name: one for name, one in everything.items() if one.requires_grad or not only_trained}
        self.shapes: Shapes = {name: tuple(parameter.shape) for name, parameter in named.items()}
        flat = [parameter.detach().reshape(-1) for parameter in named.values()]
        self.parameters = torch.cat(flat).to(device)
        self.gradient = torch.zeros_like(self.parameters)
        values, gradients = views(self.parameters, self.shapes), views(self.gradient, self.shapes)
        for name, parameter in named.items():
            parameter.data, parameter.grad = values[name], gradients[name]
        others = [one for name, one in everything.items() if name not in named]
        for tensor in (*others, *module.buffers()):  # buffers: constants of an installed encoder
            tensor.data = tensor.data.to(device)

    def place(self, array: np.ndarray[Any, Any]) -> Tensor:
        """A tensor on the module's device, numbers that are not whole in its precision."""
        return placed(array, self.parameters.device, self.parameters.dtype)

    def place_all(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Tensor]:
        """`place` of each, see `placed_together`."""
        return placed_together(arrays, self.parameters.device, self.parameters.dtype)

    def load(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Load every parameter by name."""
        flat = np.concatenate([arrays[name].reshape(-1) for name in self.shapes])
        self.parameters.copy_(self.place(flat))

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every parameter by name."""
        return views(self.parameters.detach().cpu().numpy().copy(), self.shapes)


@dataclass(slots=True)
class FlatPart:
    """Adjacent parameters of a module, and their gradient. They share memory with those of the module.

    shapes: by their own names.
    """

    parameters: Tensor
    gradient: Tensor
    shapes: Shapes

    @staticmethod
    def of(parameters: Array, gradient: Array, shapes: Shapes, prefix: str = "") -> FlatPart:
        """Those of flat arrays whose names begin with `prefix`."""
        names = list(shapes)
        found = [index for index, name in enumerate(names) if name.startswith(prefix)]
        first, end = found[0], found[-1] + 1
        assert len(found) == end - first, f"the parameters of {prefix} are not adjacent"
        sizes = [math.prod(shape) for shape in shapes.values()]
        part = slice(sum(sizes[:first]), sum(sizes[:end]))
        own = {name.removeprefix(prefix): shapes[name] for name in names[first:end]}
        return FlatPart(torch.as_tensor(parameters)[part], torch.as_tensor(gradient)[part], own)

    def place(self, array: np.ndarray[Any, Any]) -> Tensor:
        """A tensor on their device, numbers that are not whole in their precision."""
        return placed(array, self.parameters.device, self.parameters.dtype)
