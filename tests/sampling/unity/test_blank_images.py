"""Images that never change, as players without graphics send them."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.environments.unity.blank_images import BlankImages
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Steps

SPECS = {"Eye": BehaviorSpec("Eye", (ObservationSpec("Camera", (4, 4, 3), "uint8"),), ActionSpec(1))}


def lines_after(brightness: list[list[int]]) -> list[str]:
    """Warnings after steps with an agent for each number."""
    lines: list[str] = []
    watch = BlankImages(lines.append)
    for numbers in brightness:
        images = np.ones((len(numbers), 4, 4, 3), np.uint8) * np.array(numbers, np.uint8)[:, None, None, None]
        ids = np.arange(len(numbers))
        watch.look(SPECS, {"Eye": Steps(DecisionSteps(ids, (images,), np.zeros(len(ids), np.float32)))})
    return lines


def test_images_that_never_change_are_named_once() -> None:
    (line,) = lines_after([[7, 7]] * 100)
    assert line.startswith("Eye: every image of 'Camera' is the same so far. Without graphics cameras see nothing")


def test_one_image_that_differs_is_enough_to_say_nothing() -> None:
    assert lines_after([[7, 7]] * 10 + [[7, 8]] + [[7, 7]] * 100) == []


def test_steps_without_agents_say_nothing_about_images() -> None:
    assert lines_after([[]] * 100 + [[7]] * 19) == []
