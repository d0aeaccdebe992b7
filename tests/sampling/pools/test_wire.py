"""A behavior's spec on its way from a worker."""

from __future__ import annotations

import json

from rl_tui.engine.sampling.pools.wire import spec_from_json, spec_to_json
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec


def test_spec_survives_its_json() -> None:
    observations = (
        ObservationSpec("speed", (3,)),
        ObservationSpec("others", (8, 4)),
        ObservationSpec("eye", (84, 84, 3), "uint8"),
        ObservationSpec("target", (2,), is_goal=True),
    )
    spec = BehaviorSpec("Walker", observations, ActionSpec(2, (3, 2)), {"observation": [1, "inf"]})
    found = spec_from_json(json.loads(json.dumps(spec_to_json(spec))))
    assert (found, found.spaces) == (spec, spec.spaces)
