"""What is known of groups whose last agents have ended, against a world that knows every agent's episode."""

from __future__ import annotations

import numpy as np
import pytest

from tests.learning.poca.group_episodes import Groups, Life


@pytest.mark.parametrize("seed", [0, 1])
def test_returns_and_sizes_of_groups_are_those_of_their_agents(seed: int) -> None:
    world = Groups(seed, num_groups=10)
    block = world.experience(num_steps=200)
    found = sorted(
        zip(block.group_returns.tolist(), block.group_sizes.tolist(), block.early_ends.tolist(), strict=True)
    )
    acted = [[life for life in lives if life.acts] for lives in world.lives.values()]  # the others leave nothing
    expected = sorted(summary(lives) for lives in acted if lives)
    assert len(found) == len(expected) > 50
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    sizes, early = block.group_sizes, block.early_ends
    assert (early > 0).mean() > 0.2
    assert (sizes > early).all()


def summary(lives: list[Life]) -> tuple[float, int, int]:
    """What those earned for the group who ended with it, on average; how many agents there were, and how many ended
    before."""
    end = max(life.end for life in lives)
    last = [life for life in lives if life.end == end]
    earned = [sum(act.shared for act in life.acts) for life in last]
    return sum(earned) / len(last), len(lives), len(lives) - len(last)
