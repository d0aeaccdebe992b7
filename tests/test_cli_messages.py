"""What a command line is answered with on stderr: its exit code and what it names here, its words in messages.txt."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from rl_tui.tui.cli import main
from tests.golden_files import catalog, check_file
from tests.test_cli import CARTPOLE, record

USAGE = re.compile(r"usage: .*?(?=^rl-tui.*: error: )", re.DOTALL | re.MULTILINE)  # laid out by Python

# command line -> what the answer names, or proposes
REFUSED = {
    "Flags of a training": {
        "ppo/CartPole --ranks 0": "from 1",
        "ppo/CartPole --ranks 2 --gpus 2": "--ranks",
        "ppo/CartPole --ranks 16": "at least 16",
        "ppo/CartPole --save-freq 5000": "behaviors.NAME.checkpoint_interval",
        "ppo/CartPole --savefreq=5000": "--savefreq",
        "ppo/CartPole --keep-checkpoints 3": "behaviors.NAME.keep_checkpoints",
        "ppo/CartPole --lesson=2": "--lesson",
        "ppo/CartPole --curriculum c.yaml": "environment_parameters",
        "ppo/CartPole --sampler s.yaml": "environment_parameters",
        "ppo/CartPole --num-runs 2": "--run-id",
        "ppo/CartPole --cpu": "--torch-device cpu",
        "ppo/CartPole --worker-id 1": "--base-port",
        "ppo/CartPole --slow": "--time-scale 1",
        "ppo/CartPole --docker-target-name x": "--results-dir",
        "ppo/CartPole --num-env 2 --sed 1": "--seed",
        "ppo/CartPole --wholly-unknown": "--wholly-unknown",
        "ppo/CartPole more.yaml": "more.yaml",
        "ppo/CartPole --num-envs two": "--num-envs",
        "ppo/CartPole --seed x": "--seed",
        "ppo/CartPole --time-scale fast": "--time-scale",
        "ppo/CartPole --log-format xml": "--log-format",
        "ppo/CartPole --seed 1 --seed 2": "--seed",
        "ppo/CartPole --log-format json --log-format=json": "--log-format",
        "ppo/CartPole --env A=x,A=y": "--env",
        "ppo/CartPole --env A=": "--env",
        "ppo/CartPole --set nothing": "--set",
    },
    "Flags of the other commands": {
        "demo --sped 3": "--speed",
        "replay walk --no-mose": "--no-mouse",
        "ls --jsn": "--json",
        "ls --docker-target-name": "--docker-target-name",
        "presets --zzz": "--zzz",
        "demo fast": "fast",
        "schema too much": "too",
        "ls too much": "much",
        "demo --behaviors 12 --hours 3 --seed 2": "--behaviors",
        "demo --speed -1": "--speed",
        "demo --speed nan": "--speed",
        "replay": "RUN",
        "replay walk --speed fast": "--speed",
        "upgrade-config old.yaml": "OUT",
        "evaluate run --episodes 3 --episodes 4": "--episodes",
        "check-env toy:line --steps 3 --steps 4": "--steps",
        "replay run --speed 3 --speed 4": "--speed",
        "demo --speed 3 --speed 4": "--speed",
        "check-env toy:line --no-graphics": "--no-graphics",
        "check-env gymnasium:CliffWalking-v1 --wrappers '[\"TimeLimit\"]'": "--wrappers",
        "check-env toy:line --env-kwargs length=3": "--env-kwargs",
    },
    "Demonstrations": {
        "demonstrations": "info, record or play",
        "demonstrations inof": "info",
        "demonstrations info": "FILE",
        "demonstrations info --jsn a.demo": "--json",
        "demonstrations info nowhere.demo": "nowhere.demo",
        "demonstrations info config.yaml": "config.yaml",
        "demonstrations info inner": "inner",
        "demonstrations record old": "FILE",
        "demonstrations record old out.demo --episodes 0": "--episodes",
        "demonstrations record old out.txt": "out.txt",
        "demonstrations record old nowhere/out.demo": "nowhere/out.demo",
        "demonstrations record walk out.demo": "walk",
        "demonstrations play toy:rooms": "FILE",
        "demonstrations play toy:rooms out.demo --episodes 0": "--episodes",
        "demonstrations play toy:rooms out.txt": "out.txt",
        "demonstrations play toy:rooms nowhere/out.demo": "nowhere/out.demo",
        "demonstrations play toy:rooms out.demo --env-kwargs rooms=3": "--env-kwargs",
        "demonstrations play toy:rooms out.demo --readonly": "--readonly",
        "demonstrations play toy:rooms out.demo": "terminal",
    },
    "Games": {
        "play": "RUN",
        "play walk --oponent random": "--opponent",
        "play walk --seat 0": "--seat",
        "play walk --team first": "--team",
        "play walk --seat 1 --team 0": "--seat",
        "play walk --stochastic --deterministic": "--stochastic",
        "play walk": "terminal",
    },
    "Words that name nothing": {
        "relpay": "replay",
        "evalute walk": "evaluate",
        "evalute --episodes 3 walk": "evaluate",
        "zzz walk": "zzz",
        "preset": "presets",
        "ppo/Cartpole": "ppo/CartPole",
        "presets/CartPole": "ppo/CartPole",
        "cartpole": "sac/CartPole",
        "config/ppo/Pendulum.yaml": "ppo/Pendulum",
        "config.yml": "config.yaml",
        "./confg.yaml": "./config.yaml",
        "inner/walker": "inner/Walker.yaml",
        "zzz": "zzz",
        "nowhere.yaml": "nowhere.yaml",
        "": "rl-tui demo",
        "presets ppo/CartPol": "ppo/CartPole",
        "ls reslts": "reslts",
        "evaluate walk": "walk",
    },
    "Trainings that cannot start": {
        "config.yaml --set behaviors.CartPole.init_path=old.pt": "--set behaviors.CartPole.init_path",
        "config.yaml --env pettingzoo:classic/chess_v9": "pettingzoo:classic/chess_v9",
        "config.yaml --env 3DBall": "3DBall",
        "config.yaml --env unity:editor --num-envs 2": "--num-envs",
        "config.yaml --env gymnasium:CartPool-v1": "gymnasium:CartPole-v1",
        "config.yaml --env toy:lime": "toy:line",
        "config.yaml --env nowhere.at_all:make": "nowhere.at_all:make",
        "config.yaml --env my_world:Maze": "Mazes",
        "config.yaml --run-id old": "old",
        "config.yaml --run-id file": "file",
        "config.yaml --resume --run-id other": "--resume",
        "config.yaml --resume": "--resume",
        "config.yaml --initialize-from other": "--initialize-from",
        "config.yaml --initialize-from other --resume-or-start": "--initialize-from",
        "config.yaml --resume-or-start --run-id file": "file",
        "config.yaml --results-dir config.yaml": "config.yaml",
    },
    "Trainings without CONFIG": {
        "--env gymnasium:Pendulum-v1 --trainer dqn": "--trainer",
        "ppo/Pendulum --trainer sac": "--trainer",
        "ppo/gymnasium": "ppo/gymnasium",
        "--env Acrobot-v1": "gymnasium:Acrobot-v1",
    },
    "Settings": {
        f"ppo/CartPole --set env_settings.env_kwargs.x={value}": "--set env_settings.env_kwargs.x"
        for value in ("[" * 40 + "]" * 40, "1" * 80, f"[1{'0' * 30}]", "[NaN]", "\udcff")
    },
    "Environments that cannot be checked": {
        "check-env gymnasium:CartPol-v1": "gymnasium:CartPole-v1",
        """check-env toy:line --wrappers '["gymnasium.wrappers:TimeLimit"]'""": "--wrappers",
        """check-env tests.sampling.worlds:Counting --env-kwargs '{"lenth": 3}'""": "lenth",
    },
    "Without a terminal": {"demo": "demo", "replay old": "replay"},
}
NOTED = {
    "Notes": {
        "--env unity:editor": "PPO",
        "--env unity:editor --trainer sac": "SAC",
        "--env gymnasium:Pendulum-v1": "ppo/Pendulum",
        "--env gymnasium:Pendulum-v1 --trainer sac": "sac/Pendulum",
        "--env gymnasium:MountainCar-v0": "ppo/gymnasium",
        "editor.yaml": "--env",
        "editor.yaml --no-ui --theme ansi --no-bell": "--no-bell",
        "editor.yaml --load": "--load",
        "editor.yaml --train": "--train",
        "editor.yaml --torch": "--torch",
        "editor.yaml --tensorflow": "--tensorflow",
        "config.yaml --resume-or-start --run-id new": "results/new",
        "config.yaml --resume-or-start --run-id old": "results/old",
        "config.yaml --resume --resume-or-start --run-id old": "--resume-or-start",
    },
}


def test_every_answer_has_its_exit_code_names_what_it_is_about_and_is_in_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # beside the environments, which are looked at afterwards
    before = write_files(tmp_path)
    sections: dict[str, list[tuple[str, list[str]]]] = {}
    for exit_code, (title, cases) in [(2, table) for table in REFUSED.items()] + [
        (0, table) for table in NOTED.items()
    ]:
        is_dry = title in ("Trainings that cannot start", "Settings", "Notes")
        for words, named in cases.items():
            found = exit_code_of([*shlex.split(words), *(["--dry-run"] if is_dry else [])])
            answer = USAGE.sub("", capsys.readouterr().err).replace(str(tmp_path), "/home/me")
            assert (found, named in answer) == (exit_code, True), f"{words}: {found}, {named} in\n{answer}"
            sections.setdefault(title, []).append((f"rl-tui {words}", answer.splitlines()))
    assert sorted(tmp_path.rglob("[!_]*")) == before
    check_file(Path(__file__).parent / "messages.txt", catalog(sections))


def exit_code_of(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as left:  # argparse
        return int(left.code or 0)


def write_files(folder: Path) -> list[Path]:
    """What the command lines find around them; returns all paths."""
    (folder / "inner").mkdir()
    for name in ("config.yaml", "inner/Walker.yaml"):
        (folder / name).write_text(CARTPOLE)
    (folder / "editor.yaml").write_text("behaviors: {Walker: {trainer_type: ppo}}\n")
    (folder / "my_world.py").write_text("def Mazes():\n    raise AssertionError\n")
    (folder / "results").mkdir()
    record(folder / "results", "old")
    (folder / "results/old/Walker.onnx").touch()
    (folder / "results/file").touch()
    return sorted(folder.rglob("[!_]*"))
