"""From a configuration to a run: resuming, starting from another run, playing only, and what is refused how."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.run import RunConfig, TorchSettings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.run_setup import device_of
from rl_tui.engine.session.messages import (
    OWN_FILE,
    BehaviorStarted,
    CheckpointSaved,
    EpisodesFinished,
    ExportPolicy,
    LogEmitted,
    MetricsReported,
    Pause,
    PolicyExported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
    WarningRaised,
)
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.run_summary import summarize
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, ending, equal, live, run_to_end

SCHEDULED: dict[str, Any] = {"network_settings__normalize": True, "normalize_reward": True}


def first_run(folder: Path) -> Path:
    """The last checkpoint of a finished run called `run`, which left several."""
    settings = behavior(checkpoint_interval=100, keep_checkpoints=9, **SCHEDULED)
    run = run_to_end(configuration(folder, {"Walker": settings}))
    assert run.launch.exit_code == 0
    return Path(run.of(CheckpointSaved)[-1].path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one that tests share."""
    return first_run(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def last(finished: Path, tmp_path: Path) -> Path:
    """The last checkpoint of a copy of that run in the test's folder."""
    shutil.copytree(finished.parents[2], tmp_path / "results" / "run")
    return tmp_path / "results" / finished.relative_to(finished.parents[3])


def walker(folder: Path, settings: dict[str, Any] | None = None, **checkpoint_settings: Any) -> Any:
    """A run of the same behavior, longer."""
    settings = settings or behavior(max_steps=1024, **SCHEDULED)
    return configuration(folder, {"Walker": settings}, checkpoint_settings=checkpoint_settings)


def warnings(run: LiveRun) -> str:
    return "\n".join(event.message for event in run.of(LogEmitted) if event.level == "warning")


def logged(run: LiveRun, text: str) -> list[str]:
    return [event.message for event in run.of(LogEmitted) if text in event.message]


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of a run but its lock."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "run.lock"}


def saved_before_the_first_step(config: Any) -> tuple[LiveRun, CheckpointSaved]:
    """A checkpoint of what the run starts from."""
    with live(config, Pause()) as run:
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        shutil.rmtree(run.folder / "Walker" / "checkpoints")
        (run.folder / "Walker" / "checkpoints").mkdir()
        assert run.send(SaveCheckpoint()).ok
    return run, run.of(CheckpointSaved)[0]


def test_resumed_run_starts_with_everything_that_was_saved(tmp_path: Path, last: Path) -> None:
    before, described = read(last)
    run, saved = saved_before_the_first_step(walker(tmp_path, resume=True))
    assert run.of(RunStarted)[0].resumed
    assert run.of(BehaviorStarted)[0].step == saved.step == described.step
    after, _ = read(Path(saved.path))
    assert equal(before.tensors, after.tensors)
    assert before.values == after.values  # generators, counters
    assert any("normalizer" in name for name in before.tensors)
    assert before.values["policy"] != {}


def test_resumed_run_goes_on_to_a_larger_max_steps(tmp_path: Path, last: Path) -> None:
    step = read(last)[1].step
    run = run_to_end(walker(tmp_path, resume=True))
    assert run.launch.exit_code == 0
    summaries = run.of(MetricsReported)
    assert [event.step for event in summaries] == list(range(step - step % 100 + 100, 1001, 100))
    rates = [event.metrics["Policy/Learning Rate"] for event in summaries]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] < 3e-4 * (1 - step / 1024) + 1e-9, "the schedule continues where it was"
    assert run.of(ProgressReported)[-1].num_updates > step // 64
    assert run.of(CheckpointSaved)[-1].step >= 1024


def test_run_resumed_from_its_own_file_says_that_its_settings_are_from_there(tmp_path: Path, last: Path) -> None:
    own = tmp_path / "results" / "run" / "configuration.yaml"
    overrides = {
        "checkpoint_settings.resume": True,
        "checkpoint_settings.results_dir": str(tmp_path / "results"),
        "behaviors.Walker.max_steps": 1024,
    }
    (started,) = run_to_end(load_config(own, overrides)).of(RunStarted)
    assert {*started.sources} == {OWN_FILE, "--set", "--resume", "--results-dir"}
    assert ("behaviors", "Walker", "max_steps") in started.sources["--set"]
    assert ("behaviors", "Walker", "summary_freq") in started.sources[OWN_FILE]


def test_run_that_had_reached_its_end_resumes_to_nothing(tmp_path: Path) -> None:
    folder = first_run(tmp_path).parents[2]  # not moved: a file has paths
    before = contents(folder)
    run = run_to_end(walker(tmp_path, behavior(checkpoint_interval=100, **SCHEDULED), resume=True))
    assert run.launch.exit_code == 0
    after = contents(folder)
    changed = {path.name for path in before.keys() | after if before.get(path) != after.get(path)}
    assert changed == {"events.jsonl", "configuration.yaml"}, "of this start, and no other file"
    assert not logged(run, "new episodes")
    assert "has reached max_steps (512 of 512)" in warnings(run)
    assert "--set behaviors.Walker.max_steps=1024" in warnings(run)


def test_soft_actor_critic_that_had_reached_its_end_is_not_warned_of_updates_that_never_come(tmp_path: Path) -> None:
    walker = behavior(trainer_type="sac", hyperparameters={"batch_size": 16, "buffer_init_steps": 100}, max_steps=200)
    run_to_end(configuration(tmp_path, {"Walker": walker}))
    run = run_to_end(configuration(tmp_path, {"Walker": walker}, checkpoint_settings={"resume": True}))
    assert run.of(WarningRaised) == []
    assert "has reached max_steps" in warnings(run)


@pytest.mark.usefixtures("last")
def test_what_is_not_gone_on_with_is_said(tmp_path: Path) -> None:
    run = run_to_end(walker(tmp_path, resume=True), Stop("now"))
    reported = [event.message for event in run.of(LogEmitted)]
    (line,) = [message for message in reported if "resumed at step 512" in message]
    assert "environments begin new episodes" in line


def test_checkpoint_that_is_damaged_is_skipped_with_a_warning(tmp_path: Path, last: Path) -> None:
    damage(last)
    before = sorted(last.parent.iterdir(), key=lambda path: int(path.name.rpartition("-")[2]))[-2]
    run = run_to_end(walker(tmp_path, resume=True), Stop("now"))
    assert run.of(BehaviorStarted)[0].step == read(before)[1].step
    assert str(last) in warnings(run)


def test_nothing_but_damaged_checkpoints_is_refused(tmp_path: Path, last: Path) -> None:
    for checkpoint in last.parent.iterdir():
        damage(checkpoint)
    before = sorted(last.parent.rglob("*"))
    run = run_to_end(walker(tmp_path, resume=True))
    assert run.launch.exit_code == 7
    assert "--force" in ending(run).reason
    assert sorted(last.parent.rglob("*")) == before


@pytest.mark.usefixtures("last")
@pytest.mark.parametrize("flag", ["resume", "initialize_from"])
def test_network_of_another_size_is_refused_by_name(tmp_path: Path, flag: str) -> None:
    settings = behavior(network_settings__hidden_units=16, **SCHEDULED)
    flags = {"resume": True} if flag == "resume" else {"initialize_from": "run", "run_id": "b"}
    run = run_to_end(walker(tmp_path, settings, **flags))
    assert run.launch.exit_code == 7
    assert "weights.0: must be float32[16, 2], got float32[8, 2]" in ending(run).reason
    assert not run.of(CheckpointSaved)


@pytest.mark.parametrize("flag", ["initialize_from", "init_path"])
def test_run_that_starts_from_another_has_its_weights_at_step_0(tmp_path: Path, last: Path, flag: str) -> None:
    settings = behavior(**SCHEDULED) | ({"init_path": str(last)} if flag == "init_path" else {})
    flags = {"initialize_from": "run"} if flag == "initialize_from" else {}
    run, saved = saved_before_the_first_step(walker(tmp_path, settings, run_id="b", **flags))
    assert run.of(BehaviorStarted)[0].step == saved.step == 0
    before, after = (read(path)[0].part("trainer") for path in (last, Path(saved.path)))
    assert equal(before.tensors, after.tensors)


@pytest.mark.parametrize(
    ("flags", "exit_code", "reason"),
    [
        ({}, 2, "--resume"),
        ({"run_id": "b", "resume": True}, 2, "checkpoint_settings.resume: no run in"),
        ({"run_id": "b", "initialize_from": "c"}, 2, "--initialize-from: no run in"),
    ],
)
def test_flags_that_do_not_fit_the_folder_are_refused(
    tmp_path: Path, flags: dict[str, Any], exit_code: int, reason: str
) -> None:
    (tmp_path / "results/run/Walker/checkpoints/Walker-1").mkdir(parents=True)
    (tmp_path / "results/run/events.jsonl").write_text('{"v": 1}\n')
    run = run_to_end(walker(tmp_path, **flags))
    assert run.launch.exit_code == exit_code
    assert run.launch.error is not None
    assert reason in str(run.launch.error)
    assert ending(run).reason == str(run.launch.error)
    assert not (tmp_path / "results/b").exists()


def test_forced_run_starts_over(tmp_path: Path, last: Path) -> None:
    run = run_to_end(walker(tmp_path, force=True))
    assert run.launch.exit_code == 0
    assert run.of(BehaviorStarted)[0].step == 0
    assert not last.exists() or read(last)[1].created_at > run.mail[0].time
    assert "checkpoints.previous" in warnings(run)


def test_inference_acts_and_trains_and_saves_nothing(tmp_path: Path, last: Path) -> None:
    before, listed = contents(last.parents[2]), summarize(last.parents[2])
    with live(walker(tmp_path, behavior(summary_freq=200, **SCHEDULED), resume=True, inference=True)) as run:
        for _ in range(3):
            summary = run.wait_for(MetricsReported, after=len(run.mail))
            assert not summary.is_training
            assert not [tag for tag in summary.metrics if tag.startswith(("Losses/", "Policy/"))]
        assert summary.step > 512, "max_steps does not end it"
        assert not run.send(SaveCheckpoint()).ok
        assert not run.send(ExportPolicy()).ok
        assert run.send(Stop(exit_code=130)).ok
        assert run.wait() == 130
    assert run.of(EpisodesFinished)
    assert run.of(ProgressReported)[-1].num_updates == read(last)[0].values["trainer"]["trainer"]["num_updates"]
    assert not run.of(CheckpointSaved)
    after = contents(run.folder)
    played = after.pop(run.folder / "inference.jsonl")
    assert b'"EpisodesFinished"' in played
    assert after == before
    assert summarize(run.folder) == listed


def test_a_run_that_only_plays_is_listed_as_such(tmp_path: Path) -> None:
    with live(walker(tmp_path, behavior(summary_freq=200), inference=True)) as run:
        assert run.wait_for(MetricsReported).step == 200
        assert run.wait_for(BehaviorStarted).max_steps == 0
    listed = summarize(run.folder)
    assert listed is not None
    assert (listed.state, listed.behaviors) == ("unknown", ())
    assert listed.note == "no events.jsonl: inference only, see inference.jsonl"


def test_second_writer_of_a_run_is_refused(tmp_path: Path) -> None:
    with live(walker(tmp_path, behavior(max_steps=ENDLESS))) as run:
        run.wait_for(MetricsReported)
        for flags in ({"resume": True}, {"force": True}, {}):
            other = run_to_end(walker(tmp_path, **flags))
            assert other.launch.exit_code == 6
        seen = len(run.mail)
        run.wait_for(MetricsReported, after=seen)
        assert run.send(Stop()).ok
    assert read(Path(run.of(CheckpointSaved)[-1].path))


@pytest.mark.parametrize(
    ("env", "names", "kwargs", "reason"),
    [
        ("toy:lime", ["Walker"], {}, "Did you mean toy:line"),
        ("tests.nowhere:make", ["Walker"], {}, "no module named"),
        ("tests.running.environments:Pair", ["Middle"], {}, "behaviors.Middle"),
        ("gymnasium:CartPole-v1", ["Left", "Right"], {}, "behaviors.Right"),
        ("tests.running.environments:Pair", ["Left"], {}, "'Right'"),
        ("gymnasium:CartPole-v1", ["Walker"], {"no": 1}, "no"),
    ],
)
def test_environment_that_does_not_fit_is_refused_and_leaves_no_folder(
    tmp_path: Path, env: str, names: list[str], kwargs: dict[str, Any], reason: str
) -> None:
    config = configuration(
        tmp_path, {name: behavior() for name in names}, env, env_settings={"env_kwargs": kwargs, "num_envs": 1}
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 2
    assert reason in ending(run).reason
    assert not run.folder.exists()


def test_environment_that_raises_while_it_is_made_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, "tests.running.environments:never_made"))
    assert run.launch.exit_code == 3
    assert "RuntimeError: no screen here" in ending(run).reason
    assert "no screen here" in (run.folder / "run_logs/output.log").read_text()


def test_name_that_is_no_file_name_stays_inside_the_folder(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"../Walker": behavior()}))
    assert run.launch.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["run"]
    assert len(list(run.folder.glob("Walker-*/checkpoints/*"))) == 1


def damage(checkpoint: Path) -> None:
    """One byte of the tensors is another."""
    (path,) = checkpoint.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("conditioning", [None, "hyper", "none"])
def test_a_goal_that_makes_weights_by_default_warns_with_what_it_costs(
    tmp_path: Path, conditioning: str | None
) -> None:
    written = {} if conditioning is None else {"network_settings__goal_conditioning_type": conditioning}
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(**written)}, env="toy:goal"), Stop("now"))
    if conditioning is not None:
        assert "goal" not in warnings(run)
        return
    parameters = f"{run.of(BehaviorStarted)[0].num_parameters:,}"
    assert "goal goal: the default goal_conditioning_type, hyper, computes" in warnings(run)
    assert f"from it: {parameters} parameters in all" in warnings(run)
    assert "Write network_settings.goal_conditioning_type: none to make it an ordinary observation" in warnings(run)


@pytest.mark.parametrize("is_normalized", [True, False])
def test_an_image_below_the_minimum_of_its_encoder_trains_as_a_vector_with_a_note(
    tmp_path: Path, is_normalized: bool
) -> None:
    settings = behavior(max_steps=128, network_settings__normalize=is_normalized)
    run = run_to_end(
        configuration(tmp_path, {"Walker": settings}, env="toy:pixels", env_settings={"env_kwargs": {"size": 9}})
    )
    assert run.launch.exit_code == 0
    (note,) = logged(run, "vis_encode_type")
    advice = "" if is_normalized else ". Large numbers need network_settings.normalize: true"
    assert note == f"read as a vector, since vis_encode_type: simple needs 20x20 pixels: image (9x9){advice}"


@pytest.mark.parametrize("conditioning", [None, "hyper"])
def test_a_set_of_entities_as_the_only_goal_trains_with_a_note_or_a_warning_where_the_file_wants_more(
    tmp_path: Path, conditioning: str | None
) -> None:
    written = {} if conditioning is None else {"network_settings__goal_conditioning_type": conditioning}
    settings = behavior(max_steps=128, **written)
    run = run_to_end(configuration(tmp_path, {"Walker": settings}, env="tests.running.environments:Wanted"))
    assert run.launch.exit_code == 0
    (note,) = logged(run, "goal wanted: a set of entities cannot compute the weights of a layer")
    assert note.endswith("as under network_settings.goal_conditioning_type: none")
    assert (note in warnings(run)) == (conditioning is not None)


LINES = {"Line": "toy:line", "Other": "toy:line"}


def test_a_resumed_run_exports_the_policy_that_its_checkpoint_lacks(tmp_path: Path) -> None:
    """The process before was killed between the two."""
    first = run_to_end(configuration(tmp_path, {"Line": behavior(), "Other": behavior()}, env=LINES))
    exports = sorted(first.folder.glob("*/*.onnx"))
    contents = [path.read_bytes() for path in exports]
    assert len(exports) == 2
    for path in (*exports, *first.folder.glob("*.onnx")):
        path.unlink()
    longer = {"Line": behavior(max_steps=1024), "Other": behavior(max_steps=1024)}
    run = run_to_end(configuration(tmp_path, longer, env=LINES, checkpoint_settings={"resume": True}))
    assert run.launch.exit_code == 0
    assert [path.read_bytes() for path in exports] == contents
    assert len(run.of(PolicyExported)) == 4
    again = run_to_end(configuration(tmp_path, longer, env=LINES, checkpoint_settings={"resume": True}))
    assert again.of(PolicyExported) == [], "what is there is not exported again"
    (run.folder / "Line.onnx").unlink()
    restored = run_to_end(configuration(tmp_path, longer, env=LINES, checkpoint_settings={"resume": True}))
    assert [event.behavior for event in restored.of(PolicyExported)] == ["Line"]
    assert (run.folder / "Line.onnx").exists()


@pytest.mark.usefixtures("last")
def test_resume_or_start_starts_once_and_then_continues_until_the_end(tmp_path: Path) -> None:
    """The same settings each time, as in a job that is restarted; `initialize_from` counts for the first start only."""
    settings = behavior(checkpoint_interval=100, **SCHEDULED)
    config = walker(tmp_path, settings, run_id="b", resume_or_start=True, initialize_from="run", force=True)
    origin, folder = tmp_path / "results/run", tmp_path / "results/b"
    with live(config) as run:
        run.wait_for(CheckpointSaved)
        run.launch.send(Stop("now"))
        run.wait()
    assert not run.of(RunStarted)[0].resumed
    assert logged(run, "yet: starting") == [f"no run in {folder} yet: starting"]
    assert logged(run, f"loaded {origin}"), "what it starts from"
    step = run.of(CheckpointSaved)[-1].step
    shutil.rmtree(origin)
    for _ in range(2):
        run = run_to_end(config)
        assert run.launch.exit_code == 0
        assert run.of(RunStarted)[0].resumed
        assert logged(run, "continuing") == [f"{folder} holds a run: continuing it"]
        assert run.of(BehaviorStarted)[0].step == step
        saved = [event.step for event in run.of(CheckpointSaved)]
        assert bool(saved) == (step < 512)
        step = saved[-1] if saved else step  # 512, or one more: it depends on when the first one was stopped
        assert step >= 512
    assert f"has reached max_steps ({step} of 512)" in warnings(run)
    described = (folder / "configuration.yaml").read_text()
    assert "resume_or_start: true" in described
    assert "resume: false" in described


def test_resume_or_start_starts_a_behavior_that_has_no_checkpoint_as_it_was_started_first(tmp_path: Path) -> None:
    both = {"Line": behavior(), "Other": behavior()}
    origin = run_to_end(configuration(tmp_path, both, env=LINES))
    flags = {"run_id": "b", "resume_or_start": True, "initialize_from": "run"}
    config = configuration(tmp_path, both, env=LINES, checkpoint_settings=flags)
    run = run_to_end(config)
    shutil.rmtree(run.folder / "Other/checkpoints")
    again = run_to_end(config)
    assert {event.behavior: event.step for event in again.of(BehaviorStarted)} == {"Line": 512, "Other": 0}
    assert logged(again, "no checkpoint to resume from")
    assert logged(again, f"loaded {origin.folder / 'Other'}")


def test_resume_or_start_with_nothing_but_damaged_checkpoints_is_refused(tmp_path: Path, last: Path) -> None:
    for checkpoint in last.parent.iterdir():
        damage(checkpoint)
    run = run_to_end(walker(tmp_path, resume_or_start=True))
    assert run.launch.exit_code == 7
    assert sorted(last.parent.iterdir())


def test_a_resume_that_is_refused_leaves_the_configuration_as_it_was(tmp_path: Path) -> None:
    """What the run was started with still plays its checkpoints."""
    run = run_to_end(configuration(tmp_path, {"Line": behavior()}))
    before = (run.folder / "configuration.yaml").read_bytes()
    resumed = {"resume": True}
    other = configuration(tmp_path, {"Line": behavior(network_settings__hidden_units=16)}, checkpoint_settings=resumed)
    assert run_to_end(other).launch.exit_code == 7
    assert (run.folder / "configuration.yaml").read_bytes() == before
    longer = configuration(tmp_path, {"Line": behavior(max_steps=1024)}, checkpoint_settings=resumed)
    assert run_to_end(longer).launch.exit_code == 0
    assert "max_steps: 1024" in (run.folder / "configuration.yaml").read_text()


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("gpu", 'must be auto, cpu, cuda, cuda:N or mps, got "gpu"$'),
        ("cuda:99", "cuda:99 is not available: "),
        ("xla", "xla is not available: torch was built without it$"),
    ],
)
def test_device_that_torch_cannot_use_is_refused(device: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^torch_settings.device: {said}"):
        device_of(RunConfig(torch_settings=TorchSettings(device=device)))
