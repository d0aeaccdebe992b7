"""Runs recorded by the real library without a network, read back from the files that `wandb sync` uploads."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.writers import guarded
from rl_tui.engine.running.writers.settings import WandbSettings
from rl_tui.engine.session.messages import AddNote, LogEmitted, MetricsReported, SetHyperparameter, Stop
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, live
from tests.running.writers.contexts import context_in

pytestmark = [
    pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # in the code of libraries
]
NAME = "Walker.v2"  # dots separate nested values in W&B


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user's is read, nothing is sent, and no slow disk ends the library early."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(guarded, "CLOSING_SECONDS", 60.0)


def records(path: Path) -> Iterator[Any]:
    """The records of a file of W&B: after seven bytes, blocks of a log as LevelDB writes it."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, place, body = path.read_bytes(), 7, b""
    while place + 7 <= len(content):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        place += 7 + length
        body += content[place - length : place]
        if kind in (1, 4):  # a whole record, or the last part of one
            yield Record.FromString(body)
            body = b""


def recorded(folder: Path) -> dict[str, Any]:
    """Of the newest process: the run as described first and last, its configuration, history and x axes."""
    newest = max((folder / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    found: dict[str, Any] = {"config": {}, "history": [], "axes": {}, "exit": None, "runs": []}
    for record in records(newest):
        match record.WhichOneof("record_type"):
            case "run":
                found["runs"].append(record.run)
                found["config"] |= _items(record.run.config.update)
            case "config":
                found["config"] |= _items(record.config.update)
            case "history":
                found["history"].append(_items(record.history.item))
            case "metric":
                found["axes"][record.metric.glob_name or record.metric.name] = record.metric.step_metric
            case "exit":
                found["exit"] = record.exit.exit_code
    return found


def _items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def config(folder: Path, **changes: Any) -> RunConfig:
    wandb = {"project": "walking", "tags": ["a", "b"], "group": "g", "mode": "offline"}
    return configuration(folder, {NAME: behavior(max_steps=ENDLESS)}, writers={"wandb": wandb}, **changes)


def train(folder: Path, **changes: Any) -> LiveRun:
    """A run of a few summaries, in which a hyperparameter is changed and a note is written."""
    with live(config(folder, **changes)) as run:
        run.wait_for(MetricsReported)
        assert run.send(SetHyperparameter(NAME, "beta", 0.25)).ok
        assert run.send(AddNote("it limps")).ok
        run.wait_for(MetricsReported, after=len(run.mail))
        run.send(Stop())
        assert run.wait() == 0
    assert [event for event in run.of(LogEmitted) if event.source == "writer wandb" and event.level != "info"] == []
    return run


@pytest.mark.slow
def test_run_and_its_resumed_rest_are_one_run(tmp_path: Path) -> None:
    run = train(tmp_path)
    first = recorded(run.folder)
    described = first["runs"][-1]
    assert (described.project, described.display_name, described.run_group) == ("walking", "run", "g")
    assert list(described.tags) == ["a", "b"]
    assert first["config"]["behaviors"][NAME]["hyperparameters"]["buffer_size"] == 64
    assert first["exit"] == 0
    assert first["axes"]["Walker_v2/*"] == "Walker_v2/step"
    history = [row for row in first["history"] if "Walker_v2/Losses/Policy Loss" in row]
    for event, row in zip(run.of(MetricsReported), history, strict=True):
        assert row["Walker_v2/step"] == event.step
        shown = {
            f"Walker_v2/{tag}": value for tag, value in event.metrics.items() if tag not in ("Step", "Is Training")
        }
        assert {key: row[key] for key in shown} == pytest.approx(shown)
        if event.returns is not None:
            histogram = "Walker_v2/Environment/Cumulative Reward_hist"
            assert row[f"{histogram}/values"] == list(event.returns.counts)
            assert row[f"{histogram}/bins"] == [event.returns.minimum, *event.returns.limits]
    assert [
        row["Walker_v2/Hyperparameters/beta"] for row in first["history"] if "Walker_v2/Hyperparameters/beta" in row
    ] == [0.25]
    notes = described.notes.splitlines()
    assert [line for line in notes if "it limps" in line] == ["- Note: it limps"]
    assert any(" saved" in line for line in notes)
    assert any("beta" in line and "-> 0.25" in line for line in notes)

    again = recorded(train(tmp_path, checkpoint_settings={"resume": True}).folder)
    assert again["runs"][0].run_id == described.run_id
    assert again["runs"][-1].notes.splitlines()[: len(notes)] == notes
    assert again["history"][0]["Walker_v2/step"] > first["history"][0]["Walker_v2/step"]
    assert len(list((run.folder / "wandb").glob("offline-run-*"))) == 2

    other = recorded(train(tmp_path, checkpoint_settings={"force": True}).folder)
    assert other["runs"][0].run_id != described.run_id
    assert other["runs"][-1].notes.count("it limps") == 1


def test_without_a_login_nothing_is_asked_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    from rl_tui.engine.running.writers.wandb import WandbWriter

    threads = threading.active_count()
    with pytest.raises(ConfigError, match="run `wandb login`"):
        WandbWriter(WandbSettings(), context_in(tmp_path))
    assert threading.active_count() == threads
