"""Any Gymnasium spaces: one update is learned from them and the policy exported, or they are refused by name."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.learning.trainer import make_trainer
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.export.exporters import actor_exporter
from tests.sampling.worlds import Recording

REFUSED = re.compile(r"B: (observation|action) '.*'(:| is) .+|B: the (observation|action) space is empty")
FLOATS, INTEGERS = (np.float16, np.float32, np.float64), (np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_)


class Ending(Recording):
    """Episodes of five steps."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        shown, _, _, _, infos = super().step(action)
        return shown, float(len(self.taken) % 3), len(self.taken) % 5 == 0, False, infos


@st.composite
def boxes(draw: st.DrawFn) -> spaces.Box:
    """Any number of axes and bounds, infinite ones too."""
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    dtype: Any = draw(st.sampled_from(FLOATS + INTEGERS))
    if dtype is np.bool_:
        return spaces.Box(0, 1, shape, dtype)
    if dtype in INTEGERS:
        # beyond a million, what is learned without normalization may not be finite
        low, high = draw(st.sampled_from([(0, 1), (0, 100), (3, 120), (0, min(np.iinfo(dtype).max - 1, 10**6))]))
        return spaces.Box(low, high, shape, dtype)
    bounds = [(-1, 1), (-2, 3), (0, 0), (0, np.inf), (-np.inf, 5), (-np.inf, np.inf)]
    low, high = draw(st.sampled_from(bounds))
    return spaces.Box(low, high, shape, dtype)


@st.composite
def choices(draw: st.DrawFn) -> spaces.MultiDiscrete[Any]:
    """One or two axes, with a start."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    count = int(np.prod(shape))
    sizes = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    starts = draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))
    return spaces.MultiDiscrete(np.reshape(sizes, shape), start=np.reshape(starts, shape))


LEAVES: st.SearchStrategy[Any] = st.one_of(
    boxes(),
    choices(),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.sampled_from([1, 2, 7, 10**6]), st.integers(-2, 2)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiBinary),
)
UNUSABLE: st.SearchStrategy[Any] = st.sampled_from(
    [
        spaces.Text(4),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1, (2,))]),
    ]
)
KEYS = st.sampled_from(["a", "b", "a.b", "0", "desired_goal", "obs 0", "größe"])


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Dicts and tuples of these, in each other."""

    def inside(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(children, max_size=3).map(spaces.Tuple) | st.dictionaries(KEYS, children, max_size=3).map(
            spaces.Dict
        )

    return st.recursive(leaves, inside, max_leaves=4)


ANY = nested(st.one_of(*[LEAVES] * 9, UNUSABLE))
CONFIGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "trainer_type": st.sampled_from(["ppo", "sac"]),
        "encoder": st.sampled_from(["simple", "match3", "fully_connected"]),
        "normalize": st.booleans(),
        "memory": st.sampled_from([None, None, None, {"memory_size": 4, "sequence_length": 4}]),
        "goals": st.sampled_from(["hyper", "none"]),
    }
)


def config_of(chosen: dict[str, Any]) -> BehaviorConfig:
    """A small network and an update after 16 steps."""
    hyper = {"batch_size": 8, "buffer_size": 16} | (
        {"buffer_init_steps": 8, "steps_per_update": 16} if chosen["trainer_type"] == "sac" else {"num_epoch": 1}
    )
    network = {
        "hidden_units": 8,
        "num_layers": 1,
        "vis_encode_type": chosen["encoder"],
        "normalize": chosen["normalize"],
        "memory": chosen["memory"],
        "goal_conditioning_type": chosen["goals"],
    }
    return BehaviorConfig.model_validate(
        {
            "trainer_type": chosen["trainer_type"],
            "hyperparameters": hyper,
            "network_settings": network,
            "time_horizon": 8,
        }
    )


def learn_and_export(observation: Any, action: Any, config: BehaviorConfig, folder: Path) -> None:
    """One update with experience of two copies. Raises NotSupportedError."""
    copies = [GymnasiumLoop("B", [Ending(observation, action), Ending(observation, action)])]
    pool = SerialPool("test", lambda first, count: copies, 1)
    pool.start()
    trainer = make_trainer(pool.specs["B"], config, 1, torch.device("cpu"))
    collector = Collector(pool, {"B": trainer.make_policy(1)}, {"B": trainer.time_horizon})
    pool.reset(1)
    while trainer.num_updates == 0:
        collector.receive(0.0)
        while collector.is_due("B", 1):
            trainer.add(collector.drain("B"))
        if trainer.is_ready():
            trainer.update(16)
        collector.act()
    hyper = config.hyperparameters
    exporter = actor_exporter(pool.specs["B"], config.network_settings, hyper.squashes_actions)
    exporter.export(trainer.weights(), 16, BehaviorFolder("B", folder))  # raises where the graph acts otherwise
    pool.close()


def check(observation: Any, action: Any, chosen: dict[str, Any]) -> None:
    """It is learned from and exported, or refused by name."""
    with tempfile.TemporaryDirectory(prefix="any-space-") as folder:
        refusal = ""
        try:
            learn_and_export(observation, action, config_of(chosen), Path(folder))
        except NotSupportedError as error:
            refusal = str(error)
    assert not refusal or REFUSED.fullmatch(refusal), refusal


def examples(count: int) -> Callable[[Any], Any]:
    """That many of them, without a time limit for each."""
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@examples(25)
@given(ANY, ANY, CONFIGS)
@pytest.mark.slow
def test_any_spaces_are_learned_from_and_exported_or_refused_by_name(a: Any, b: Any, chosen: dict[str, Any]) -> None:
    check(a, b, chosen)


@pytest.mark.faults
@examples(2000)
@given(ANY, ANY, CONFIGS)
def test_two_thousand_spaces_are_learned_from_and_exported_or_refused(a: Any, b: Any, chosen: dict[str, Any]) -> None:
    check(a, b, chosen)
