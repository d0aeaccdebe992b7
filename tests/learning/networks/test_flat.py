"""Arrays that reach a device together."""

from __future__ import annotations

import numpy as np
import torch

from rl_tui.engine.learning.networks.flat import LARGE_BYTES, placed_together
from tests.pretended_device import DEVICE, PretendedDevice

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "numbers": RANDOM.standard_normal((5, 3)).astype(np.float32),
    "bytes": RANDOM.integers(0, 256, (3, 5, 1), np.uint8),
    "rows": np.arange(7),
    "double": RANDOM.standard_normal(4),
    "flags": np.array([True, False, True]),
    "nothing": np.empty((4, 0), np.float32),
    "columns": RANDOM.standard_normal((4, 6)).astype(np.float32).T[1:3],
}


def test_they_have_the_numbers_types_and_shapes_that_they_had(device: torch.device) -> None:
    """Numbers that are not whole in the precision."""
    for found, (name, array) in zip(
        placed_together(list(ARRAYS.values()), device, torch.float32), ARRAYS.items(), strict=True
    ):
        assert found.device.type == device.type
        expected = array.astype(np.float32) if name == "double" else array
        here = found.cpu().numpy()
        assert here.dtype == expected.dtype
        np.testing.assert_array_equal(here, expected, err_msg=name)


def test_they_are_one_copy_and_large_ones_another_each() -> None:
    large = np.zeros(LARGE_BYTES + 1, np.uint8)
    with PretendedDevice().everywhere() as device:
        placed_together(list(ARRAYS.values()), DEVICE)
        assert device.num_arrivals == 1
        found = placed_together([large, *ARRAYS.values(), large], DEVICE)
        assert device.num_arrivals == 4
        assert [len(found[0]), len(found[-1])] == [len(large)] * 2
        placed_together([], DEVICE)
        assert device.num_arrivals == 4


def test_on_the_cpu_they_are_the_same_memory() -> None:
    (numbers, rows) = placed_together([ARRAYS["numbers"], ARRAYS["rows"]], torch.device("cpu"))
    assert numbers.data_ptr() == ARRAYS["numbers"].ctypes.data
    assert rows.data_ptr() == ARRAYS["rows"].ctypes.data
