"""Memory that is freed is reused, and replay buffers must fit into what is free."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.machine.memory import MemoryBudget, size_text

COUNT_FAULTS = """
import resource, sys
import numpy as np
from rl_tui.engine.running.machine.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        [np.ones(1 << 18) for _ in range(40)]  # 2 MiB each, all freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
if sys.argv[1] == "kept":
    assert keep_freed_memory()
    faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_temporaries_cost_no_more_page_faults() -> None:
    returned, kept = (
        int(
            subprocess.run([sys.executable, "-c", COUNT_FAULTS, how], check=True, capture_output=True, text=True).stdout
        )
        for how in ("returned", "kept")
    )
    assert returned > 5000
    assert kept < 500


def test_memory_is_claimed_for_all_behaviors_together_and_twice_where_it_is_copied() -> None:
    budget = MemoryBudget(1000 << 20)
    budget.claim("Walker", 100, 300 << 20, num_copies=1)
    budget.claim("Runner", 100, 300 << 20, num_copies=0)
    with pytest.raises(ConfigError) as caught:
        budget.claim("Jumper", 5000, 200 << 20, num_copies=0)
    assert str(caught.value) == (
        "behaviors.Jumper.hyperparameters.buffer_size: must be smaller: 5000 steps take 200.0 MiB, and 1000.0 MiB of"
        " memory is free, 900.0 MiB of that reserved for other behaviors"
    )
    with pytest.raises(ConfigError, match=r"take 60\.0 MiB, twice that while save_replay_buffer copies them, and"):
        budget.claim("Jumper", 5000, 60 << 20, num_copies=1)
    with pytest.raises(ConfigError, match=r"take 30\.0 MiB, 5 times that while save_replay_buffer copies them, and"):
        budget.claim("Jumper", 5000, 30 << 20, num_copies=4)
    budget.claim("Jumper", 5000, 100 << 20, num_copies=0)


@pytest.mark.parametrize(
    ("num_bytes", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (12_900_000, "12.3 MiB")]
)
def test_sizes_have_a_unit_that_suits_them(num_bytes: int, text: str) -> None:
    assert size_text(num_bytes) == text
