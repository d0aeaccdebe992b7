"""`rl-tui evaluate`: a run's policy is played again, from its files alone."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rl_tui.engine.errors import CheckpointError, ConfigError, EnvironmentFailure
from rl_tui.engine.running.evaluation import episodes
from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, EvaluationResult, SavedRun, Way
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.session.messages import CheckpointSaved, EvaluationReported
from rl_tui.tui.cli import main
from tests.fakes import RandomPolicy
from tests.running.growing import Growing
from tests.running.runs import behavior, configuration, run_to_end

imageio, imageio_ffmpeg = pytest.importorskip("imageio.v2"), pytest.importorskip("imageio_ffmpeg")

NEWEST = EvaluationRequest(episodes=12, seed=1, ways=("greedy",))


def finished(folder: Path, env: Any = "toy:line", behaviors: dict[str, Any] | None = None, **settings: Any) -> Path:
    """The folder of a run with several checkpoints."""
    walker = behavior(max_steps=256, checkpoint_interval=100, **settings)
    run = run_to_end(configuration(folder, behaviors or {"Walker": walker}, env, env_settings={"num_envs": 2}))
    assert run.launch.exit_code == 0
    assert len(run.of(CheckpointSaved)) > 1
    return run.folder


def request(**changes: Any) -> EvaluationRequest:
    fields = {name: getattr(NEWEST, name) for name in EvaluationRequest.__slots__}
    return EvaluationRequest(**fields | changes)


def numbers(played: EvaluationResult, way: Way = "greedy") -> tuple[list[float], list[int]]:
    return played.scores[way].returns.tolist(), played.scores[way].lengths.tolist()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("walker"), evaluation={"interval": 100, "episodes": 4})


def test_policy_plays_the_same_from_its_checkpoint_and_from_its_exported_file(run: Path) -> None:
    checkpoint, exported = (SavedRun(run).play(request(is_onnx=is_onnx)) for is_onnx in (False, True))
    assert numbers(checkpoint) == numbers(exported)
    assert len(checkpoint.scores["greedy"].returns) == 12
    assert checkpoint.source == run / "Walker/checkpoints" / f"Walker-{checkpoint.step}"
    assert exported.source == run / "Walker" / f"Walker-{checkpoint.step}.onnx"
    assert numbers(SavedRun(run).play(request())) == numbers(checkpoint), "the same seed gives the same episodes"
    both = SavedRun(run).play(request(ways=("greedy", "sampled")))
    assert numbers(both) == numbers(checkpoint)
    assert numbers(both, "sampled") == numbers(SavedRun(run).play(request(ways=("sampled",))), "sampled")
    assert numbers(both, "sampled") != numbers(both)


def test_checkpoint_whose_export_is_gone_names_those_that_have_one(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    newest = SavedRun(tmp_path / "run").play(request(is_onnx=True))
    newest.source.unlink()
    others = sorted(int(path.stem.removeprefix("Walker-")) for path in (tmp_path / "run/Walker").glob("*.onnx"))
    assert others
    assert main(["evaluate", "run", "--results-dir", str(tmp_path), "--onnx"]) == 7
    found = f"{newest.source}: no exported policy for this checkpoint (--checkpoint {newest.step}); available: "
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"{found}{', '.join(map(str, others))}. ")
    assert "--resume" in said


def test_run_is_played_without_a_writer_that_is_no_longer_installed(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    configuration = copied / "configuration.yaml"
    configuration.write_text(configuration.read_text().replace("\nwriters:\n", "\nwriters:\n  gone: {}\n"))
    assert "gone" in configuration.read_text()
    assert numbers(SavedRun(copied).play(request())) == numbers(SavedRun(run).play(request()))


def test_run_is_played_without_a_reward_signal_that_is_no_longer_installed(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    configuration = copied / "configuration.yaml"
    settings = yaml.safe_load(configuration.read_text())
    settings["behaviors"]["Walker"]["reward_signals"]["gone"] = {"strength": 0.5}
    settings["default_settings"] = copy.deepcopy(settings["behaviors"]["Walker"])
    configuration.write_text(yaml.safe_dump(settings, sort_keys=False))
    assert numbers(SavedRun(copied).play(request())) == numbers(SavedRun(run).play(request()))


def test_checkpoint_is_the_one_that_was_named(run: Path) -> None:
    steps = sorted(int(path.name.removeprefix("Walker-")) for path in (run / "Walker/checkpoints").iterdir())
    assert SavedRun(run).play(request()).step == steps[-1]
    assert SavedRun(run).play(request(checkpoint=str(steps[0]))).step == steps[0]
    assert SavedRun(run).play(request(checkpoint="best")).step in steps


def test_command_prints_what_was_earned(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "run", "--results-dir", str(run.parent), "--episodes", "12"]
    assert main(words) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    played = SavedRun(run).play(request(ways=("greedy", "sampled")))
    assert head.startswith("Walker at step ")
    assert head.endswith(str(played.source))
    assert rows[0].split() == ["greedy", "sampled"]
    for at, scores in enumerate(played.scores.values()):
        reported = {row[:12].strip(): float(row[12:].split()[at]) for row in rows[1:]}
        assert reported == pytest.approx(scores.summary, rel=1e-5)
        assert list(reported) == ["mean", "std", "min", "max", "mean length", "episodes"]
        assert reported["episodes"] == 12
        assert reported["min"] <= reported["mean"] <= reported["max"]


@pytest.mark.parametrize(("flag", "way"), [("--deterministic", "greedy"), ("--stochastic", "sampled")])
def test_command_plays_in_one_way_where_a_flag_names_it(
    run: Path, capsys: pytest.CaptureFixture[str], flag: str, way: Way
) -> None:
    assert main(["evaluate", "run", "--results-dir", str(run.parent), "--episodes", "12", flag]) == 0
    _, head, mean, *_ = capsys.readouterr().out.splitlines()
    expected = SavedRun(run).play(request(ways=(way,))).scores[way].summary["mean"]
    assert (head.strip(), mean.split()) == (way, ["mean", f"{expected:.6g}"])


def test_damaged_checkpoint_is_skipped_with_a_warning(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    newest = SavedRun(tmp_path / "run").play(request()).source
    (newest / "tensors.safetensors").write_bytes(b"damaged")
    assert main(["evaluate", "run", "--results-dir", str(tmp_path), "--episodes", "2"]) == 0
    out, error = capsys.readouterr()
    assert newest.name not in out
    assert error.startswith(f"a checkpoint was skipped: {newest}")


@pytest.mark.parametrize(
    ("words", "exit_code", "reason"),
    [
        (["ruin"], 2, "Did you mean run?"),
        (["run", "--checkpoint", "7"], 7, "--checkpoint: Walker has no checkpoint at step 7; available: "),
        (["run", "--behavior", "Runner"], 2, '--behavior: must be Walker, got "Runner"'),
        (["run", "--record", "film.avi"], 2, "--record: must end in .gif or .mp4, got "),
        (["run", "--record", "film.gif"], 2, "shows no frames"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(
    run: Path, words: list[str], exit_code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *words, "--results-dir", str(run.parent)]) == exit_code
    out, error = capsys.readouterr()
    assert not out
    assert reason in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["run", "--episodes", "0"], ["run", "--checkpoint", "last"], ["run", "--seed", "-1"]]
)
def test_wrong_number_is_a_wrong_command_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["evaluate", *words])
    assert left.value.code == 2
    assert "must be" in capsys.readouterr().err


def test_behaviors_that_share_an_environment_play_together(tmp_path: Path) -> None:
    behaviors = {name: behavior(checkpoint_interval=100) for name in ("Left", "Right")}
    folder = finished(tmp_path, "tests.running.environments:Pair", behaviors)
    played = SavedRun(folder).play(request(behavior="Right"))
    assert played.scores["greedy"].summary | {"episodes": 0} == {
        "mean": 3, "std": 0, "min": 3, "max": 3, "mean length": 3, "episodes": 0,
    }  # fmt: skip
    assert main(["evaluate", "run", "--results-dir", str(folder.parent)]) == 2


def test_behavior_that_appears_later_is_played_or_refused_by_name(tmp_path: Path) -> None:
    env, kwargs = "tests.running.growing:Growing", {"at": 21}
    behaviors = {name: behavior(max_steps=200) for name in ("Left", "Right")}
    config = configuration(tmp_path, behaviors, env, env_settings={"env_kwargs": kwargs, "num_envs": 2})
    folder = run_to_end(config).folder
    scores = SavedRun(folder).play(request(behavior="Right")).scores["greedy"]
    assert scores.returns.tolist() == [3.0] * 12
    with pytest.raises(ConfigError, match="--behavior: must be given: Left or Right"):
        SavedRun(folder).play(request())
    shutil.rmtree(folder / "Right")
    with pytest.raises(CheckpointError, match="Right has no checkpoint"):
        SavedRun(folder).play(request(behavior="Left", episodes=40))


def test_behavior_that_never_appears_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episodes, "AWAITED_STEPS", 50)
    pool = SerialPool("test", lambda first, count: [Growing(at=1000)], 1)
    pool.start()
    with pytest.raises(EnvironmentFailure, match="behavior Right has not appeared in 50 steps"):
        episodes.play(pool, lambda spec: RandomPolicy(spec.actions), "Right", 1, 1, lambda: True)


def test_behavior_is_played_in_the_environment_of_its_own(tmp_path: Path) -> None:
    behaviors = {name: behavior(max_steps=256, checkpoint_interval=100) for name in ("Walker", "Pole")}
    folder = finished(tmp_path, {"Walker": "toy:line", "Pole": "toy:one-step"}, behaviors)
    assert SavedRun(folder).play(request(behavior="Pole")).scores["greedy"].lengths.tolist() == [1] * 12
    assert SavedRun(folder).play(request(behavior="Walker")).scores["greedy"].lengths.min() > 1


def test_evaluation_while_training_scores_as_the_command_does(tmp_path: Path) -> None:
    """Both play the same weights; only their seeds differ, which one-step episodes hardly notice once it is learned."""
    settings = behavior(
        max_steps=2500, evaluation={"interval": 5000, "episodes": 64}, hyperparameters__learning_rate=0.02
    )
    settings["hyperparameters"] |= {"num_epoch": 4}
    run = run_to_end(configuration(tmp_path, {"Walker": settings}, "toy:one-step"))
    (reported,) = run.of(EvaluationReported)
    assert reported.mean_return > 0.9
    assert SavedRun(run.folder).play(request(episodes=64)).scores["greedy"].returns.mean() == pytest.approx(
        reported.mean_return, abs=0.1
    )


def frames_of(film: Path) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    if film.suffix == ".gif":
        with imageio.get_reader(film) as reader:
            return list(reader.iter_data())
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    shown = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-i", film, *raw], check=True, capture_output=True).stdout
    return list(np.frombuffer(shown, np.uint8).reshape(-1, 400, 600, 3))


@pytest.mark.parametrize("suffix", [".GIF", ".mp4"])
def test_recording_shows_the_first_episode(
    recorded_run: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / f"film{suffix}"
    words = ["evaluate", "run", "--results-dir", str(recorded_run.parent), "--episodes", "2", "--record", str(film)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"recorded    {film}"
    frames = frames_of(film)
    assert len(frames) > 1
    assert any((frame != frames[0]).any() for frame in frames), "it moves"
    assert [path.name for path in tmp_path.iterdir()] == [film.name]


def test_recording_that_cannot_be_written_says_so(recorded_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = str(recorded_run / "nowhere" / "film.gif")
    assert main(["evaluate", "run", "--results-dir", str(recorded_run.parent), "--record", film]) == 2
    assert f"--record {film}: cannot be written" in capsys.readouterr().err


@pytest.fixture(scope="module")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("catch"), "toy:cart-pole-positions")
