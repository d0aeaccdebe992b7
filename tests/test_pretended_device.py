"""The pretended device refuses what a GPU refuses, and changes no number."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from tests.pretended_device import DEVICE, PretendedDevice

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
MISTAKES: dict[str, tuple[type[Exception], Callable[[Tensor, Tensor], Any]]] = {  # of a device's tensor and a host's
    "numpy": (TypeError, lambda there, here: there.numpy()),
    "asarray": (TypeError, lambda there, here: np.asarray(there)),
    "numpy of a view": (TypeError, lambda there, here: there[1:].t().numpy()),
    "numpy of a result": (TypeError, lambda there, here: (there * 2 + 1).numpy()),
    "sum": (RuntimeError, lambda there, here: there + here),
    "product": (RuntimeError, lambda there, here: there @ here.t()),
    "indices": (RuntimeError, lambda there, here: there.index_select(0, torch.tensor([0, 2]))),
    "a host's tensor by indices": (RuntimeError, lambda there, here: here[torch.tensor([0, 2], device=DEVICE)]),
    "joined": (RuntimeError, lambda there, here: torch.cat([there, here])),
    "stacked numbers": (RuntimeError, lambda there, here: torch.stack([there.sum(), here.sum()])),
    "in place": (RuntimeError, lambda there, here: there.addcmul_(there, here)),
    "into a host's tensor": (RuntimeError, lambda there, here: torch.mm(there, there.t(), out=torch.empty(3, 3))),
    "a layer of the host": (RuntimeError, lambda there, here: nn.Linear(2, 2)(there)),
    "a loss of both": (RuntimeError, nn.functional.mse_loss),
    "Adam": (RuntimeError, lambda there, here: _adam(there, torch.tensor(1.0))),
    "double precision": (TypeError, lambda there, here: there.double()),
}


def _adam(rows: Tensor, step: Tensor) -> None:
    moments = [rows.clone() for _ in range(3)]
    options = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8}
    torch._fused_adam_([rows], *([one] for one in moments), [], [step], **options, amsgrad=False, maximize=False)


@pytest.fixture
def pretended() -> Iterator[PretendedDevice]:
    with PretendedDevice().everywhere() as device:
        yield device


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused(pretended: PretendedDevice, mistake: str) -> None:
    expected, make = MISTAKES[mistake]
    with pytest.raises(expected):
        make(torch.from_numpy(ROWS).to(DEVICE), torch.from_numpy(ROWS))


def test_what_a_gpu_takes_is_taken(pretended: PretendedDevice) -> None:
    there, here = torch.from_numpy(ROWS).to(DEVICE), torch.from_numpy(ROWS)
    taken = [
        there[torch.tensor([0, 2])],
        there * torch.tensor(2.0),
        torch.where(there > 1, there, 0.0),
        torch.zeros_like(there).copy_(here),
        torch.full((2,), 3.0, device=DEVICE),
        nn.Linear(2, 2).to(DEVICE)(there),
        copy.deepcopy(there),
        there.new_zeros(3),
        here.to(there),
    ]
    for tensor in taken:
        assert tensor.device == DEVICE
    _adam(there, torch.tensor(1.0, device=DEVICE))
    packed = rnn.pack_padded_sequence(there.view(3, 2, 1), torch.tensor([1, 2, 1]), True, enforce_sorted=False)
    assert [tensor.device.type for tensor in packed] == ["cuda", "cpu", "cuda", "cuda"]
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert (padded.device.type, lengths.device.type) == ("cuda", "cpu")
    np.testing.assert_array_equal(torch.from_numpy(ROWS).to(DEVICE).cpu().numpy(), ROWS)


def test_a_copy_shares_no_memory_with_the_host(pretended: PretendedDevice) -> None:
    rows = ROWS.copy()
    there = [torch.from_numpy(rows).to(DEVICE), torch.as_tensor(rows, device=DEVICE)]
    back = there[0].cpu()
    rows += 1
    back += 1
    for tensor in there:
        np.testing.assert_array_equal(tensor.cpu().numpy(), ROWS)


def test_gradients_are_on_the_device_and_have_the_same_numbers(pretended: PretendedDevice) -> None:
    gradients = []
    for device in (DEVICE, torch.device("cpu")):
        torch.manual_seed(0)
        memory = nn.LSTM(2, 3, batch_first=True).to(device)
        memory(torch.from_numpy(ROWS).to(device)[None])[0].square().sum().backward()
        assert {parameter.grad.device for parameter in memory.parameters()} == {device}  # type: ignore[union-attr]
        gradients.append([parameter.grad.cpu().numpy() for parameter in memory.parameters()])  # type: ignore[union-attr]
    for there, here in zip(*gradients, strict=True):
        np.testing.assert_array_equal(there, here)


def test_waits_and_arrivals_are_counted(pretended: PretendedDevice) -> None:
    there = torch.from_numpy(ROWS).to(DEVICE)
    assert (pretended.num_arrivals, pretended.num_waits) == (1, 0)
    total = (there * 2).sum() + 1
    assert pretended.num_waits == 0
    assert (float(total), bool(total > 3), there.cpu().numel(), total.item()) == (31.0, True, 6, 31.0)
    assert pretended.num_waits == 4


def test_it_is_there_in_threads_that_start_while_it_is(pretended: PretendedDevice) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="cuda").device))
    thread.start()
    thread.join()
    assert found == [DEVICE]


def test_memory_that_was_the_devices_is_forgotten() -> None:
    with PretendedDevice().everywhere() as device:
        for _ in range(3000):
            torch.ones(2, device=DEVICE)
        assert len(device._memories) <= 1000
    assert torch.ones(2).device == torch.device("cpu")
