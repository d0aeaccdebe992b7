"""An encoder of images that an installed package brings: from YAML to a trained, saved and exported policy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.schema import json_schema
from rl_tui.engine.errors import ConfigError, PluginError
from rl_tui.engine.export.onnx_graph import OnnxGraph
from rl_tui.engine.learning.encoders.images import image_encoder
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from tests.export.exporters import actor_exporter
from tests.packages import PATCHES, Packages

CAMERA = ObservationSpec("camera", (8, 12, 3), "uint8")
UNITS = 8
LISTED = "`rl-tui plugins` lists what is installed"
KNOWN = "simple, nature_cnn, resnet, match3, fully_connected"
MUST = "must return float32[2, 8] (images, hidden_units) of uint8[2, 8, 12, 3], got"
YAML = "behaviors: {A: {network_settings: {vis_encode_type: %s}}}"


@pytest.fixture(autouse=True)
def installed(packages: Packages) -> None:
    packages.install("patches", PATCHES, encoders="patches = patches:PatchSettings")


def read(text: str) -> RunConfig:
    return parse_config(text.encode(), "c.yaml")


def refusals(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        read(text)
    return [line.split(": ", 1)[1] for line in str(refusal.value).splitlines()]


def network(**settings: Any) -> NetworkSettings:
    return NetworkSettings(vis_encode_type="patches", hidden_units=UNITS, **settings)


def test_its_settings_are_read_as_strictly_as_any() -> None:
    config = read(YAML % "patches, encoder_settings: {side: 2}")
    settings = config.behaviors["A"].network_settings.encoder_settings
    assert settings.model_dump() == {"side": 2}
    assert read(effective_yaml(config)).model_dump() == config.model_dump()
    assert read(YAML % "patches").behaviors["A"].network_settings.encoder_settings.model_dump() == {"side": 4}
    place = "behaviors.A.network_settings."
    for wrong, words in [
        ("patches, encoder_settings: {size: 2}", "encoder_settings.size: unknown key. Did you mean side?"),
        ("patches, encoder_settings: {side: 0}", "encoder_settings.side: must be at least 1, got 0"),
        ("simple, encoder_settings: {side: 2}", "encoder_settings.side: unknown key. There are none here"),
        (
            "patchesx, encoder_settings: {a: 1}",
            f'vis_encode_type: must be {KNOWN} or patches, got "patchesx". Did you mean patches? {LISTED}',
        ),
    ]:
        assert refusals(YAML % wrong) == [place + words]


def test_its_settings_in_default_settings_are_not_those_of_another_encoder() -> None:
    default = "default_settings: {network_settings: {vis_encode_type: patches, encoder_settings: {side: 2}}}\n"
    config = read(default + "behaviors: {A: {}, B: {network_settings: {vis_encode_type: simple}}}")
    settings = {name: behavior.network_settings.encoder_settings for name, behavior in config.behaviors.items()}
    assert {name: own.model_dump() for name, own in settings.items()} == {"A": {"side": 2}, "B": {}}


def test_schema_has_its_settings() -> None:
    definitions: Any = json_schema()["$defs"]
    keys = definitions["NetworkSettings"]["properties"]
    assert keys["vis_encode_type"]["enum"][-1] == "patches"
    assert {"$ref": "#/$defs/PatchSettings"} in keys["encoder_settings"]["anyOf"]
    assert definitions["PatchSettings"]["properties"]["side"]["minimum"] == 1


def test_its_weights_are_those_of_the_seed_and_no_other_generator_is_drawn_from() -> None:
    before = torch.get_rng_state()
    one, other = (image_encoder(np.random.default_rng(3), CAMERA, network()) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert one(torch.ones(5, *CAMERA.shape, dtype=torch.uint8)).shape == (5, UNITS)


def test_policy_with_it_is_exported_and_computes_the_same(tmp_path: Path) -> None:
    spec, settings = BehaviorSpec("Eye", (CAMERA,), ActionSpec(0, (3,))), network(encoder_settings={"side": 2})
    actor = Actor(np.random.default_rng(0), FeatureLayout(spec.observations), spec.actions, settings, False)
    weights = Weights(1, {name: parameter.detach().numpy() for name, parameter in actor.named_parameters()})
    assert any("images.0.embed.weight" in name for name in weights.arrays)
    folder = BehaviorFolder(spec.name, tmp_path)
    assert actor_exporter(spec, settings, False).export(weights, 7, folder) < 1  # of what is allowed
    assert OnnxGraph(folder.export(7).read_bytes()).inputs["obs_0"][1:] == [3, 8, 12]


def test_image_that_is_too_small_for_it_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least 4x4 pixels for vis_encode_type: patches, got 3x9\. It is large e"):
        image_encoder(np.random.default_rng(0), ObservationSpec("eye", (3, 9, 1), "uint8"), network())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("return images.float().mean((1, 2))", f"{MUST} float32[2, 3]"),
        ("return images.mean()", "mean(): could not infer output dtype."),
        ("return None", f"{MUST} NoneType"),
        ("return torch.zeros(2, 8).double()", f"{MUST} float64[2, 8]"),
    ],
)
def test_one_that_does_not_encode_is_refused_with_its_package(packages: Packages, line: str, reason: str) -> None:
    code = PATCHES.replace("patches:", "broken:").replace(
        "            pixels =", f"            {line}\n            pixels ="
    )
    packages.install("broken", code, encoders="broken = broken:PatchSettings")
    with pytest.raises(PluginError) as refusal:
        image_encoder(np.random.default_rng(0), CAMERA, NetworkSettings(vis_encode_type="broken", hidden_units=UNITS))
    start = r"broken of broken 1\.0 \(encoders: broken:PatchSettings\) cannot be used: \w+Error: "
    assert re.match(start + re.escape(reason), str(refusal.value)), refusal.value


def test_state_that_no_checkpoint_would_hold_is_refused(packages: Packages) -> None:
    code = PATCHES.replace("patches:", "keeps:").replace(", persistent=False", "")
    packages.install("keeps", code, encoders="keeps = keeps:PatchSettings")
    with pytest.raises(PluginError, match="scale must be a parameter, or a buffer with persistent=False"):
        image_encoder(np.random.default_rng(0), CAMERA, NetworkSettings(vis_encode_type="keeps", hidden_units=UNITS))


def test_one_that_raises_later_is_named_with_the_line(packages: Packages) -> None:
    code = PATCHES.replace("patches:", "late:").replace("pixels =", "assert len(images) < 5, 'too many'; pixels =")
    packages.install("late", code, encoders="late = late:PatchSettings")
    settings = NetworkSettings(vis_encode_type="late", hidden_units=UNITS)
    encoder = ObservationEncoder(np.random.default_rng(0), FeatureLayout([CAMERA]), settings)
    with pytest.raises(PluginError) as failure:
        encoder((torch.zeros(5, *CAMERA.shape, dtype=torch.uint8),))
    about = r"late of late 1\.0 \(encoders: late:PatchSettings\)"
    start = rf"{about}: forward raised AssertionError: too many, at .*late\.py:\d+"
    assert re.match(start, str(failure.value)), failure.value
    assert "Traceback" in failure.value.detail
