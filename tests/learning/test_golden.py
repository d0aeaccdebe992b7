"""What trainers report and learn, and what their exported policies give, is what it was when golden.json was written.

Every number holds to 1e-6 of itself, or to 1e-6 where it is smaller than one. Rounding alone took a third of that,
among vector units from SSE4 to AVX-512, several kernels of BLAS and one thread or two, all on one x86 processor; the
bonus for entropy, its target or the clip range one percent off took more. What is clipped or drawn is decided row by
row, though: on some processor rounding may tip a row that lies at the very limit, and every number after it. Only on
one machine are all numbers the same to the bit, and `python -m tests.learning.golden --compare` asks for that.

A change that is meant to alter the numbers writes them again, and its commit says why:

    python -m tests.learning.golden --write tests/learning/golden.json
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.learning.golden import CASES, FINGERPRINT, compute

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


# What torch computes for PPO is compared with what numpy does, in ppo/test_kinds.py and networks/test_memory.py.
AGAIN = "ppo memory in torch", "ppo hybrid in torch"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in AGAIN else name for name in CASES]
)
def test_every_number_is_what_it_was(name: str) -> None:
    expected, found = GOLDEN[name], compute(name)
    assert found.keys() == expected.keys()
    wrong = {
        key: f"expected {expected[key]}, found {values}"
        for key, values in found.items()
        if key != FINGERPRINT and values != pytest.approx(expected[key], rel=1e-6, abs=1e-6)
    }
    assert not wrong, "\n".join(f"{key}: {text}" for key, text in wrong.items())


def test_no_case_is_left_out() -> None:
    assert GOLDEN.keys() == CASES.keys()
