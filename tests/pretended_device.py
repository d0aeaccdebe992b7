"""A CUDA device where there is none: tensors that are marked as being on it, and stay in the host's memory.

On such a device arithmetic gives the CPU's numbers to the bit, and what a real one refuses is refused: a tensor of the
device given to numpy, and an operation on tensors of both places. So every machine can find these mistakes, which show
on a GPU only. Speed, rounding and memory are not like a GPU's.

What is on the device is a property of a tensor's memory, so that views, parameters and gradients share it. Every
operation passes through two hooks of torch: its functions and attributes (`device=`, `to`, `device`, `numpy`) through
`_Functions`, the arithmetic below them, that of a backward pass included, through `_Operations`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("cuda", 99)  # which no real one is

TO_NUMPY = {Tensor.numpy, Tensor.__array__, Tensor.__dlpack__}
WAITING = {"aten::_local_scalar_dense", "aten::nonzero"}  # the host waits for numbers of the device, as in `tolist`
WITH_HOST_INDICES = {"aten::index", "aten::index_put_", "aten::_index_put_impl_"}  # of a tensor of the device
PACKING = "aten::_pack_padded_sequence"  # how many rows each step has is given and returned on the host
TRACING_THREADS = {"saver"}  # torch cannot trace graphs for an export below `_Operations`
WITHOUT_NUMBERS = {"aten::cat", "aten::stack", "aten::_fused_adam_"}  # not even a host's number may be among theirs


class PretendedDevice:
    """Counts what a GPU would have to wait for. Enter `everywhere` to have it.

    num_waits: how often the host waited for numbers of the device. num_arrivals: tensors copied to it.
    """

    def __init__(self) -> None:
        self.num_waits = 0
        self.num_arrivals = 0
        self._lock = threading.Lock()
        self._memories: dict[int, StorageWeakRef] = {}  # by address, which a reference keeps from being used again

    @contextmanager
    def everywhere(self) -> Iterator[PretendedDevice]:
        """The device is there, for this thread and those that it starts."""
        with ExitStack() as leaving:
            self._enter(leaving)
            main = threading.Thread.run

            def run(thread: threading.Thread) -> None:
                with ExitStack() as own:
                    self._enter(own, is_tracing=thread.name in TRACING_THREADS)
                    main(thread)

            leaving.enter_context(patch.object(threading.Thread, "run", run))
            # asked about every memory's weights, a build without CUDA would warn that it has no cuDNN
            leaving.enter_context(patch.object(torch.backends.cudnn, "is_acceptable", lambda _: False))
            yield self

    def _enter(self, leaving: ExitStack, is_tracing: bool = False) -> None:
        operations = _Operations(self)
        if not is_tracing:
            leaving.enter_context(operations)
        leaving.enter_context(_Functions(self, operations))

    def has(self, tensor: object) -> bool:
        """Whether the tensor is on the device."""
        return isinstance(tensor, Tensor) and _address(tensor) in self._memories

    def put(self, tensor: Tensor) -> Tensor:
        """The same tensor, now on the device."""
        memory = StorageWeakRef(tensor.untyped_storage())
        with self._lock:
            self._memories[memory.cdata] = memory
            if len(self._memories) % 1000 == 0:
                self._memories = {address: kept for address, kept in self._memories.items() if not kept.expired()}
        return tensor

    def take(self, tensor: Tensor) -> Tensor:
        """The same tensor, now on the host."""
        with self._lock:
            self._memories.pop(_address(tensor), None)
        return tensor


class _Functions(TorchFunctionMode):
    """Functions and attributes, of one thread."""

    def __init__(self, device: PretendedDevice, operations: _Operations):
        super().__init__()
        self._device = device
        self._operations = operations

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        device, kwargs = self._device, dict(kwargs or {})
        is_there = bool(args) and device.has(args[0])
        if is_there and func in ATTRIBUTES:
            return ATTRIBUTES[func]
        if is_there and func in TO_NUMPY:
            raise TypeError(f"can't convert {DEVICE} device type tensor to numpy. Use Tensor.cpu() first.")
        device.num_waits += is_there and func is Tensor.tolist
        if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
            return self._moved(*self._target(func, args, kwargs))
        if _is_ours(kwargs.get("device")):
            made = func(*args, **kwargs | {"device": "cpu"})
            return device.put(made.clone() if func is torch.as_tensor else made)
        if func is Tensor.backward:
            with self, self._operations.making(is_there):  # functions of Python that autograd calls pass here, too
                return torch.autograd.backward(args[0], kwargs.pop("gradient", None), **kwargs)
        with self._operations.making(not isinstance(func, FunctionType) and any(map(device.has, _tensors(args)))):
            result = func(*args, **kwargs)
        if getattr(func, "__name__", "") == "_pad_packed_sequence":
            device.take(result[1])
        return device.put(result) if is_there and func is Tensor.__deepcopy__ else result

    def _target(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Tensor, bool, torch.dtype, bool]:
        """What is moved, whether to the device, the type it gets, and whether it is copied in any case."""
        tensor, *where = args
        if func is not Tensor.to:
            return tensor, func is Tensor.cuda, tensor.dtype, False
        is_copied = bool(kwargs.get("copy"))
        if where and isinstance(where[0], Tensor):
            return tensor, self._device.has(where[0]), where[0].dtype, is_copied
        words = {name: value for name, value in kwargs.items() if name != "copy"}
        target, dtype = torch._C._nn._parse_to(*where, **words)[:2]
        goes_there = self._device.has(tensor) if target is None else _is_ours(target)
        return tensor, goes_there, dtype or tensor.dtype, is_copied

    def _moved(self, tensor: Tensor, goes_there: bool, dtype: torch.dtype, is_copied: bool) -> Tensor:
        device, was_there = self._device, self._device.has(tensor)
        if goes_there == was_there:
            return tensor.to(dtype, copy=is_copied)
        copied = tensor.to(dtype, copy=True)
        device.num_waits += was_there
        device.num_arrivals += goes_there
        return device.put(copied) if goes_there else device.take(copied)


ATTRIBUTES: dict[Any, Any] = {
    Tensor.device.__get__: DEVICE,  # type: ignore[attr-defined]  # of a property
    Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
}


class _Operations(TorchDispatchMode):
    """Arithmetic, of one thread."""

    def __init__(self, device: PretendedDevice):
        super().__init__()
        self._device = device
        self._is_making = False

    @contextmanager
    def making(self, is_there: bool) -> Iterator[None]:
        """Inside a function of tensors of the device, what is made from nothing is made there."""
        before, self._is_making = self._is_making, is_there
        try:
            yield
        finally:
            self._is_making = before

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        with torch._C.DisableTorchFunction():
            name, kwargs = func._schema.name, dict(kwargs or {})
            given = _tensors([*args, *kwargs.values()])
            is_there = any(map(self._device.has, given))
            if is_there:
                self._check(name, given)
            result = func(*args, **kwargs)
            if (is_there and name != "aten::copy_") or (not given and self._is_making):
                self._put_new(name, given, _tensors([result]))
            return result

    def _check(self, name: str, given: list[Tensor]) -> None:
        """Count waits and arrivals. Raise what CUDA raises where tensors of both places are given."""
        device = self._device
        device.num_waits += name in WAITING
        strangers = [tensor for tensor in given if not device.has(tensor)]
        is_first_there = device.has(given[0])
        if name == "aten::copy_" and strangers:
            device.num_arrivals += is_first_there
            device.num_waits += not is_first_there
        elif name == PACKING or (name in WITH_HOST_INDICES and is_first_there):
            return
        elif any(name in WITHOUT_NUMBERS or tensor.dim() for tensor in strangers):
            found = f"{DEVICE} and {strangers[0].device}"
            raise RuntimeError(f"Expected all tensors to be on the same device, but found {found}, in {name}")

    def _put_new(self, name: str, given: list[Tensor], results: list[Tensor]) -> None:
        """Results with memory of their own are on the device."""
        known = {_address(tensor) for tensor in given}
        for tensor in results[:1] if name == PACKING else results:
            if _address(tensor) not in known:
                if tensor.dtype == torch.float64:  # GPUs compute slowly in it, and some cannot at all
                    raise TypeError(f"float64 on the device, made by {name}")
                self._device.put(tensor)


def _is_ours(device: object) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type  # type: ignore[call-overload]


def _address(tensor: Tensor) -> int:
    with torch._C.DisableTorchFunction():
        address: int = tensor.untyped_storage()._cdata
        return address


def _tensors(values: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples and mappings."""
    found: list[Tensor] = []
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple, dict)):
            found += _tensors(value)
    return found
