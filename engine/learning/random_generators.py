"""Saving and restoring random generators."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.specs import State


def generator_state(random: np.random.Generator) -> State:
    """The state for `load_generator`; 128-bit integers as text, which every JSON parser keeps exactly."""
    generator = random.bit_generator.state
    words = {key: str(word) for key, word in generator["state"].items()}
    return State({}, {**words, "has_uint32": generator["has_uint32"], "uinteger": generator["uinteger"]})


def load_generator(random: np.random.Generator, state: State, rank: int = 0) -> None:
    """Restore `state`, which a rank 0 saved: other ranks continue far from it. The generator must be a PCG64."""
    values = {key: int(str(value)) for key, value in state.values.items()}
    words = {key: values.pop(key) for key in ("state", "inc")}
    random.bit_generator.state = {"bit_generator": "PCG64", "state": words, **values}
    if rank and isinstance(random.bit_generator, np.random.PCG64):
        random.bit_generator.state = random.bit_generator.jumped(rank).state
