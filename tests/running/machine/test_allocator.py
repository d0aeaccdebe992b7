"""What is freed is used again, without asking the kernel for it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource, sys
import numpy as np
from rl_tui.engine.running.machine.allocator import keep_freed_memory

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have rules of their own")
def test_temporaries_cost_no_page_faults_any_more() -> None:
    given_back, kept = (
        int(
            subprocess.run([sys.executable, "-c", COUNT_FAULTS, how], check=True, capture_output=True, text=True).stdout
        )
        for how in ("given back", "kept")
    )
    assert given_back > 5000
    assert kept < 500
