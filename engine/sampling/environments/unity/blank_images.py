"""Finds images that never change, as players without graphics send them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rl_tui.engine.specs import BehaviorSpec, Observation, Steps

_STEPS = 20  # after which images that were all alike are named


class BlankImages:
    """Looks at the first steps of each behavior. Owned by one environment.

    warn: called once for each observation that stays the same.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._watched: dict[tuple[str, int], tuple[Observation, int]] = {}  # an image that all others equal; how many
        self._done: set[tuple[str, int]] = set()

    def look(self, specs: Mapping[str, BehaviorSpec], answer: Mapping[str, Steps]) -> None:
        """See what one message showed."""
        for behavior, steps in answer.items():
            for index, observation in enumerate(specs[behavior].observations):
                key = behavior, index
                if observation.kind == "image" and key not in self._done and len(steps.decisions.agent_ids):
                    self._look(key, observation.name, steps.decisions.observations[index])

    def _look(self, key: tuple[str, int], name: str, images: Observation) -> None:
        first, count = self._watched.setdefault(key, (images[0].copy(), 0))
        if (images != first).any():
            self._done.add(key)
            del self._watched[key]
            return
        self._watched[key] = first, count + 1
        if count + 1 == _STEPS:
            self._done.add(key)
            self._warn(
                f"{key[0]}: every image of {name!r} is the same so far. Without graphics cameras see nothing: "
                "train with graphics, on a machine without a screen under a virtual one (xvfb-run)"
            )
