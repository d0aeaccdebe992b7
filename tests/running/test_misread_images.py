"""Runs that learned from images in the wrong order, before the order of every package was known."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun
from rl_tui.engine.sampling.environments.unity.wire.packages import misread_before, package_of
from rl_tui.engine.session.messages import LogEmitted
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, UnityPackage
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.running.environments import Filmed
from tests.running.runs import behavior, configuration, run_to_end

RAW = ObservationSpec("Raw", (20, 24, 3))
OTHERS = (
    ObservationSpec("Gray", (20, 24, 1)),
    ObservationSpec("Color", (20, 24, 3), "uint8"),
    ObservationSpec("x", (3,)),
)


def spec_of(version: str | None, *observations: ObservationSpec) -> BehaviorSpec:
    return BehaviorSpec(
        "Eye", observations, ActionSpec(1), unity_package=None if version is None else package_of(version)
    )


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("3.0.0", "learned from pixels in the wrong order"),
        ("3.0.0-pre.1", "learned from pixels in the wrong order"),
        ("4.0.0", "this player has 4.0.0"),
        ("4.0.1", "may have learned from pixels in the wrong order"),
        ("", "did not save which one the player had"),
        ("3.0.0-exp.1", ""),
        (None, ""),
    ],
)
def test_what_was_trained_before_the_order_was_known_is_named_by_what_the_player_has_now(
    version: str | None, said: str
) -> None:
    found = misread_before(spec_of(None, RAW, *OTHERS), spec_of(version, RAW, *OTHERS))
    assert (said in found, bool(found)) == (True, bool(said))
    assert not found or found.startswith("'Raw' [20, 24, 3]: ")


def test_images_of_one_channel_or_bytes_and_those_whose_order_was_known_are_not() -> None:
    assert misread_before(spec_of(None, *OTHERS), spec_of("3.0.0", *OTHERS)) == ""
    assert misread_before(spec_of("3.0.0", RAW), spec_of("3.0.0", RAW)) == ""
    assert misread_before(spec_of("3.0.0", RAW), spec_of("4.0.1", RAW)) == ""


def test_a_policy_that_learned_from_images_in_the_wrong_order_is_named_until_the_order_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(steps: int, **settings: object) -> list[str]:
        """What its log says of the order; without an update, which takes longest."""
        walker = behavior(max_steps=steps, hyperparameters__buffer_size=1024)
        env = "tests.running.environments:Filmed"
        run = run_to_end(configuration(tmp_path, {"Walker": walker}, env, checkpoint_settings=settings))
        return [event.message for event in run.of(LogEmitted) if "order" in event.message]

    def evaluated() -> list[str]:
        said: list[str] = []
        request = EvaluationRequest(episodes=1, seed=1, ways=("greedy",))
        SavedRun(tmp_path / "results/run").play(request, on_note=lambda _, text: said.append(text))
        return said

    def package_saved() -> UnityPackage | None:
        newest = CheckpointStore(tmp_path / "results/run/Walker/checkpoints", "Walker", 0).list()[-1]
        assert newest.spec is not None
        return newest.spec.unity_package

    learned = "'Raw' [20, 20, 3]: this policy learned from pixels in the wrong order"
    assert trained(64) == []
    assert package_saved() is None
    monkeypatch.setattr(Filmed, "package", package_of("3.0.0"))
    assert [text.startswith(f"Walker: {learned}") for text in evaluated()] == [True]
    assert [text.startswith(learned) for text in trained(128, resume=True)] == [True]
    assert package_saved() == UnityPackage("3.0.0", "HWC")
    assert trained(192, resume=True) == evaluated() == []
