"""A behavior's spec on its way from a worker."""

from __future__ import annotations

import json
from dataclasses import astuple, replace

from rl_tui.engine.sampling.pools.wire import spec_from_json, spec_to_json
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, UnityPackage


def test_spec_survives_its_json() -> None:
    observations = (
        ObservationSpec("speed", (3,)),
        ObservationSpec("others", (8, 4)),
        ObservationSpec("eye", (84, 84, 3), "uint8"),
        ObservationSpec("target", (2,), is_goal=True),
    )
    plain = BehaviorSpec("Walker", observations, ActionSpec(2, (3, 2)), {"observation": [1, "inf"]}, None, 475.0)
    named = replace(plain, actions=ActionSpec(0, (2,)), choice_names=("stick", "hit"))
    for spec in (plain, named, replace(plain, spaces=None, unity_package=UnityPackage("4.0.1", "CHW"))):
        found = spec_from_json(json.loads(json.dumps(spec_to_json(spec))))
        assert astuple(found) == astuple(spec), "also what no comparison looks at"
