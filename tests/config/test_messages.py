"""Everything that is said of a configuration: where, in the tables here, and in which words, in messages.txt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rl_tui.engine.config.flags import flag_of
from rl_tui.engine.config.loading import load_config, parse_config
from rl_tui.engine.config.presets import preset_path
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import (
    editor_note,
    few_updates_note,
    find_unsupported,
    find_unused,
    list_warnings,
    preset_note,
)
from rl_tui.engine.errors import ConfigError
from rl_tui.tui.cli import main
from tests.config.test_config import PLUG_IN
from tests.config.test_legacy import CURIOUS, CURRICULUM, NAMED_LESSONS, OLD_KEYS, RANDOMIZED, SAC
from tests.golden_files import catalog, check_file
from tests.packages import Packages
from tests.running.writers.plugins import LINES

PLACE = re.compile(r"(?:c\.yaml:)?(\d+:\d+(?:: [^\s:,]+(?=[:,]|$))?|--[\w-]+(?: [\w.?]+)?)")


class Case(NamedTuple):
    """A file with flags, and the place of every message: `line:column: key`, or the flag."""

    file: str | bytes
    places: Sequence[str]
    flags: Mapping[str, object] = {}


def read(case: Case) -> RunConfig:
    content = case.file if isinstance(case.file, bytes) else case.file.encode()
    return parse_config(content, "c.yaml", case.flags)


def refused(case: Case) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(case)
    return str(error.value).split("\n")


def noted(case: Case) -> list[str]:
    config = read(case)
    return [note for note in (editor_note(config), few_updates_note(config), preset_note(config)) if note]


def places(line: str) -> list[str]:
    """Where that is which the line is about; `no effect` names several, each reason after its own."""
    if line.startswith("no effect: "):
        named = [part.rpartition(" (")[0] for part in line.removeprefix("no effect: ").split("); ")]
        return [place for part in named for place in PLACE.findall(part)]
    found = PLACE.match(line)
    return [found[1]] if found else []


REFUSED: dict[str, list[Case]] = {
    "YAML that cannot be read": [
        Case("", ["1:1"]),
        Case("text", ["1:1"]),
        Case("\n- a\n", ["2:1"]),
        Case(
            """\
debug: true
behaviors: {}
debug: false
""",
            ["3:1: debug"],
        ),
        Case("debug: &x true\nbehaviors: *x\n", ["1:8: debug", "2:12: behaviors"]),
        Case("behaviors:\n  <<: {A: {}}\n", ["2:3: behaviors.<<"]),
        Case("debug: !!python/object/apply:os.system [x]\n", ["1:8: debug"]),
        Case("debug: ! b\n", ["1:8: debug"]),
        Case("? [a, b]\n: 1\n", ["1:3: ?"]),
        Case("*x : 1\n", ["1:1: ?"]),
        Case("!!str debug: 1\n", ["1:1: debug"]),
        Case("~: 1\n", ["1:1: ~"]),
        Case(
            """\
debug: true
---
behaviors: {}
""",
            ["2:1"],
        ),
        Case(b"debug: true\nenv: \xff\n", ["2:6"]),
        Case("debug: true\x00", ["1:12"]),
        Case("debug: true\nenv: \x1b[2J", ["2:6"]),
        Case("a:" + " [" * 40, ["1:66"]),
        Case("env_settings:\n  seed: .inf\n", ["2:9: env_settings.seed"]),
        Case("env_settings: {seed: -.INF}\n", ["1:22: env_settings.seed"]),
        Case("env_settings: {seed: .NaN}\n", ["1:22: env_settings.seed"]),
        Case("env_settings: {seed: 1e999}\n", ["1:22: env_settings.seed"]),
        Case("env_settings: {seed: 9223372036854775808}\n", ["1:22: env_settings.seed"]),
        Case("a: " + "1" * 100, ["1:4: a"]),
        Case("env_settings: {seed: 0777}\n", ["1:22: env_settings.seed"]),
        Case("env_settings:\n\tseed: 1\n", ["2:1"]),
        Case("env_settings: seed: 1\n", ["1:19"]),
        Case("env_settings: {seed: 1\n", ["1:23"]),
        Case("env_settings: {env: 'a:b}\ndebug: 1\n", ["1:21"]),
        Case("debug: true\n behaviors: {}\n", ["2:11"]),
        Case("debug: true\nbehaviors\n", ["2:1"]),
        Case("env_settings: [seed, 2\ndebug: 3]\n", ["2:6"]),
        Case("debug: @b\n", ["1:8"]),
        Case(
            "debug: true\ndebug: true\nenv_settings: .nan\nbehaviors: {", ["2:1: debug", "3:15: env_settings", "4:13"]
        ),
    ],
    "All that is wrong in a file": [
        Case(
            """\
behaviors:
  Walker:
    trainer_type: ppo
    hyperparameters:
      learning_rte: 1e-3
      batch_size: 64.7
      buffer_size: "12"
      beta: -1
      epsilon: .inf
      value_clip: 0
      shared_critic: "false"
      batch_size: 3
      learning_rate_schedule: liner
    network_settings:
      vis_encoder_type: simple
      hidden_units: [1]
      memory: {memory_size: 3}
      activation: *x
    lambd: 0.9
    reward_signals:
      gail: {strength: 1}
      extrinsik: {}
    summary_freq: null
    self_play: !!map {}
  Runner?team=0: {}
env_settings:
  num_envs: 0
  env: CartPole-v1
  env_args: {}
checkpoint_settings:
  run_id: ../x
torch_settings: none
debug: 1
""",
            [
                "5:7: behaviors.Walker.hyperparameters.learning_rte",
                "6:19: behaviors.Walker.hyperparameters.batch_size",
                "7:20: behaviors.Walker.hyperparameters.buffer_size",
                "8:13: behaviors.Walker.hyperparameters.beta",
                "9:16: behaviors.Walker.hyperparameters.epsilon",
                "10:19: behaviors.Walker.hyperparameters.value_clip",
                "11:22: behaviors.Walker.hyperparameters.shared_critic",
                "12:7: behaviors.Walker.hyperparameters.batch_size",
                "13:31: behaviors.Walker.hyperparameters.learning_rate_schedule",
                "15:7: behaviors.Walker.network_settings.vis_encoder_type",
                "16:21: behaviors.Walker.network_settings.hidden_units",
                "17:29: behaviors.Walker.network_settings.memory.memory_size",
                "18:19: behaviors.Walker.network_settings.activation",
                "19:5: behaviors.Walker.lambd",
                "21:7: behaviors.Walker.reward_signals.gail",
                "22:7: behaviors.Walker.reward_signals.extrinsik",
                "23:19: behaviors.Walker.summary_freq",
                "24:16: behaviors.Walker.self_play",
                "25:3: behaviors.Runner?team=0",
                "27:13: env_settings.num_envs",
                "28:8: env_settings.env",
                "29:13: env_settings.env_args",
                "31:11: checkpoint_settings.run_id",
                "32:17: torch_settings",
                "33:8: debug",
            ],
        ),
    ],
    "Unknown keys": [
        Case("'': 1", ['1:1: ""']),
        Case('"a\\e[2J\\u202e\\n": 1', ["1:1: a\\x1b[2J\\u202e\\n"]),
        Case("behavior: {}", ["1:1: behavior"]),
        Case(
            "behaviors: {A: {hidden_units: 3, network: {}, sequence_length: 3, gamma: 1, tau: 1}}",
            [
                "1:17: behaviors.A.hidden_units",
                "1:34: behaviors.A.network",
                "1:47: behaviors.A.sequence_length",
                "1:67: behaviors.A.gamma",
                "1:77: behaviors.A.tau",
            ],
        ),
        Case(
            "behaviors: {A: {trainer_type: poca, hyperparameters: {shared_critic: true}}}",
            ["1:55: behaviors.A.hyperparameters.shared_critic"],
        ),
        Case(
            "behaviors: {A: {trainer_type: sac, hyperparameters: {learning_starts: 1}}}",
            ["1:54: behaviors.A.hyperparameters.learning_starts"],
        ),
        Case(
            "behaviors: {A: {network_settings: {memory_size: 4}}}", ["1:36: behaviors.A.network_settings.memory_size"]
        ),
        Case(
            "environment_parameters: {a: {curiculum: [{name: x, value: 1}]}}",
            ["1:41: environment_parameters.a.curiculum"],
        ),
        Case("behaviors: {A: {}}\nwhere: {images: {}}\n", ["2:1: where"]),
    ],
    "Sections and types": [
        Case("behaviors:", ["1:11: behaviors"]),
        Case("behaviors: {A: }", ["1:16: behaviors.A"]),
        Case("behaviors: [A]", ["1:12: behaviors"]),
        Case("behaviors: {'': {}}", ['1:13: behaviors.""']),
        Case("behaviors: {A: {reward_signals: {}}}", ["1:33: behaviors.A.reward_signals"]),
        Case("behaviors: {A: {reward_signals: 3}}", ["1:33: behaviors.A.reward_signals"]),
        Case("behaviors: {A: {max_steps: yes}}", ["1:28: behaviors.A.max_steps"]),
        Case("behaviors: {A: {max_steps: 1e300}}", ["1:28: behaviors.A.max_steps"]),
        Case("debug: 'true'", ["1:8: debug"]),
        Case("checkpoint_settings: {run_id: 7}", ["1:31: checkpoint_settings.run_id"]),
        Case("writers: null", ["1:10: writers"]),
        Case('torch_settings: {device: "cuda\\a\\x9b"}\ndebug: "\\0"\n', ["1:26: torch_settings.device", "2:8: debug"]),
        Case("behaviors: {A: {}}", ["--results-dir"], {"checkpoint_settings.results_dir": "a\x00b"}),
        Case("behaviors: {A: {}}", ["--set env_settings.env_path"], {"env_settings.env_path": "a\x00b"}),
        Case("behaviors: {A: {}}", ["--set behaviors.A.init_path"], {"behaviors.A.init_path": "a\x00b"}),
    ],
    "Behaviors": [
        Case("behaviors: {A: {hyperparameters: {batch_size: 3}}}", ["1:17: behaviors.A.hyperparameters"]),
        Case("behaviors: {A: {trainer_type: pop, hyperparameters: {steps: 3}}}", ["1:31: behaviors.A.trainer_type"]),
        Case(
            "behaviors: {A: {trainer_type: sac, hyperparameters: {batch_size: 60000}}}",
            ["1:66: behaviors.A.hyperparameters.batch_size"],
        ),
        Case(
            "behaviors: {A: {trainer_type: sac, hyperparameters: {buffer_size: 100}}}",
            ["1:67: behaviors.A.hyperparameters.buffer_size"],
        ),
        Case(
            ("behaviors: {A: {trainer_type: sac, hyperparameters: {n_step: 3}, network_settings: {memory: {}}}}"),
            ["1:93: behaviors.A.network_settings.memory"],
        ),
        Case(
            (
                "behaviors: {A: {trainer_type: sac, hyperparameters: {prioritized_replay: {}}, "
                "network_settings: {memory: {}}}}"
            ),
            ["1:106: behaviors.A.network_settings.memory"],
        ),
        Case(
            "behaviors: {A: {trainer_type: sac, hyperparameters: {prioritized_replay: {alpha: 2}}}}",
            ["1:82: behaviors.A.hyperparameters.prioritized_replay.alpha"],
        ),
        Case("behaviors: {A: {checkpoint_interval: 0}}", ["1:38: behaviors.A.checkpoint_interval"]),
        Case("behaviors: {A: {checkpoint_interval: -2}}", ["1:38: behaviors.A.checkpoint_interval"]),
        Case("behaviors: {A: {checkpoint_interval: no}}", ["1:38: behaviors.A.checkpoint_interval"]),
        Case(
            (
                "behaviors: {A: {checkpoint_seconds: 0, summary_freq: 0, export_interval: -2, "
                "throughput_interval: 0, evaluation: {interval: 0}}}"
            ),
            [
                "1:37: behaviors.A.checkpoint_seconds",
                "1:54: behaviors.A.summary_freq",
                "1:74: behaviors.A.export_interval",
                "1:99: behaviors.A.throughput_interval",
                "1:125: behaviors.A.evaluation.interval",
            ],
        ),
        Case("behaviors: {A: {export_policies: [greedy, gredy]}}", ["1:43: behaviors.A.export_policies[1]"]),
        Case("behaviors: {A: {evaluation: {episodes: 0}}}", ["1:40: behaviors.A.evaluation.episodes"]),
        Case(
            "behaviors: {A: {network_settings: {precision: float16}}}", ["1:47: behaviors.A.network_settings.precision"]
        ),
        Case("behaviors: {A: {even_checkpoints: true, keep_checkpoints: 0}}", ["1:35: behaviors.A.even_checkpoints"]),
        Case(
            """\
behaviors:
  A:
    network_settings: {memory: {sequence_length: 2000}}
""",
            ["3:50: behaviors.A.network_settings.memory.sequence_length"],
        ),
        Case(
            "default_settings: {max_steps: 0}\nbehaviors: {A: {}, B: {time_horizon: 0}}\n",
            ["1:31: default_settings.max_steps", "2:38: behaviors.B.time_horizon"],
        ),
        Case(
            """\
default_settings:
  network_settings: {memory: {}}
behaviors:
  A:
    trainer_type: ppo
    hyperparameters: {batch_size: 8}
""",
            ["2:22: behaviors.A.network_settings.memory.sequence_length"],
        ),
        Case(
            "default_settings: {}\nbehaviors: {A: {trainer_type: sac, max_steps: 0}}\n",
            ["2:31: behaviors.A.trainer_type", "2:47: behaviors.A.max_steps"],
        ),
    ],
    "Runs and environments": [
        Case("checkpoint_settings: {run_id: 'a\n\n'}", ["1:31: checkpoint_settings.run_id"]),
        Case("checkpoint_settings: {initialize_from: .}", ["1:40: checkpoint_settings.initialize_from"]),
        Case("checkpoint_settings: {results_dir: ''}", ["1:36: checkpoint_settings.results_dir"]),
        Case("env_settings: {seed: -2}", ["1:22: env_settings.seed"]),
        Case("env_settings: {seed: 4294967296}", ["1:22: env_settings.seed"]),
        Case("env_settings: {num_envs: 2, num_workers: 3}", ["1:42: env_settings.num_workers"]),
        Case("env_settings: {num_workers: -1}", ["1:29: env_settings.num_workers"]),
        Case("env_settings: {num_workers: all}", ["1:29: env_settings.num_workers"]),
        Case("env_settings: {env: 'gym:CartPole-v1'}", ["1:21: env_settings.env"]),
        Case("env_settings: {env: 'gymnasium:'}", ["1:21: env_settings.env"]),
        Case("env_settings: {env: {}}", ["1:21: env_settings.env"]),
        Case("env_settings: {env: [a]}", ["1:21: env_settings.env"]),
        Case("env_settings: {env: CartPole-v1}", ["1:21: env_settings.env"]),
        Case("env_settings: {env: ALE/Pong-v5}", ["1:21: env_settings.env"]),
        Case(
            "behaviors: {Walker: {}}\nenv_settings:\n  env: {Walkr: 'gymnasium:A-v1'}", ["3:16: env_settings.env.Walkr"]
        ),
        Case(
            "behaviors: {A: {}, B: {}, C: {}}\nenv_settings: {env: {A: 'gymnasium:A-v1'}}", ["2:21: env_settings.env"]
        ),
        Case(
            "behaviors: {A: {}}\nenv_settings: {env: {A: 'a:b'}, env_kwargs: {size: 3}}",
            ["2:52: env_settings.env_kwargs.size"],
        ),
        Case(
            "behaviors: {A: {}}\nenv_settings: {env: {A: 'a:b'}, env_kwargs: {A: 3}}",
            ["2:49: env_settings.env_kwargs.A"],
        ),
        Case("env_settings: {env: 'unity:Ball', env_kwargs: {width: 3}}", ["1:48: env_settings.env_kwargs.width"]),
        Case("env_settings: {env: Ball, env_kwargs: {width: 3}}", ["1:40: env_settings.env_kwargs.width"]),
        Case("env_settings: {env_path: Ball, env_kwargs: {width: 3}}", ["1:45: env_settings.env_kwargs.width"]),
        Case(
            "behaviors: {A: {}, B: {}}\nenv_settings: {env: {A: Ball, B: a:b}, env_kwargs: {A: {width: 3}}}",
            ["2:57: env_settings.env_kwargs.A.width"],
        ),
        Case("env_settings: {env: 'toy:line', metrics: [speed, speed]}", ["1:50: env_settings.metrics[1]"]),
        Case("env_settings: {env: 'toy:line', metrics: ['']}", ["1:43: env_settings.metrics[0]"]),
        Case("env_settings: {env: 'toy:line', metrics: [Cumulative Reward]}", ["1:43: env_settings.metrics[0]"]),
        Case("env_settings: {env: 'toy:line', metrics: [Losses/Value Loss]}", ["1:43: env_settings.metrics[0]"]),
        Case("env_settings: {env: 'toy:line', metrics: speed}", ["1:42: env_settings.metrics"]),
        Case("env_settings: {env: 'toy:line', metrics: [3]}", ["1:43: env_settings.metrics[0]"]),
        Case("env_settings: {env: 'gymnasium:CartPole-v1', wrappers: [TimeLimit]}", ["1:57: env_settings.wrappers[0]"]),
        Case(
            "env_settings: {env: 'gymnasium:CartPole-v1', wrappers: [{'a:B': {}, 'c:D': {}}]}",
            ["1:57: env_settings.wrappers[0]"],
        ),
        Case(
            "env_settings: {env: 'gymnasium:CartPole-v1', wrappers: [{'a:B': 3}]}", ["1:65: env_settings.wrappers[0].a"]
        ),
        Case(
            (
                "writers: {wandb: {tags: first, projects: a, mode: off}, mlflow: {tags: {a: 1}}, "
                "tensorbord: {}, tensorboard: 1}"
            ),
            [
                "1:25: writers.wandb.tags",
                "1:32: writers.wandb.projects",
                "1:51: writers.wandb.mode",
                "1:76: writers.mlflow.tags.a",
                "1:81: writers.tensorbord",
                "1:110: writers.tensorboard",
            ],
        ),
    ],
    "Environment parameters": [
        Case("environment_parameters: {a: {sampler_type: unifrm}}", ["1:44: environment_parameters.a.sampler_type"]),
        Case("environment_parameters: {a: {sampler_type: uniform}}", ["1:26: environment_parameters.a"]),
        Case("environment_parameters: {a: {b: 1}}", ["1:29: environment_parameters.a"]),
        Case(
            "environment_parameters: {a: {sampler_type: uniform, sampler_parameters: {min_value: 3}}}",
            ["1:85: environment_parameters.a.sampler_parameters.min_value"],
        ),
        Case(
            (
                "environment_parameters: {a: {sampler_type: multirangeuniform, "
                "sampler_parameters: {intervals: [[0, 1], [2]]}}}"
            ),
            ["1:104: environment_parameters.a.sampler_parameters.intervals[1]"],
        ),
        Case(
            "environment_parameters: {a: {curriculum: [{name: x, value: 1}, {name: y, value: 2}]}}",
            ["1:43: environment_parameters.a.curriculum[0]"],
        ),
        Case("environment_parameters: {a: {curriculum: []}}", ["1:42: environment_parameters.a.curriculum"]),
        Case(
            (
                "environment_parameters: {a: {curriculum: [{name: x, value: 1, "
                "completion_criteria: {behavior: B, measure: elo}}]}}"
            ),
            ["1:107: environment_parameters.a.curriculum[0].completion_criteria.measure"],
        ),
        Case(
            (
                "environment_parameters: {a: {curriculum: [{name: x, value: 1, "
                "completion_criteria: {behavior: B, measure: progress, threshold: 2}}]}}"
            ),
            ["1:128: environment_parameters.a.curriculum[0].completion_criteria.threshold"],
        ),
    ],
    "Flags": [
        Case(
            "behaviors: {A: {max_steps: 0}}\nenv_settings: {num_envs: x}\n",
            [
                "--set behaviors.A.summary_freq",
                "--set behaviors.A.max_step",
                "--num-envs",
                "--env",
                "--set env_settings.env_kwargs",
                "--run-id",
                "--torch-device",
                "--debug",
                "1:28: behaviors.A.max_steps",
            ],
            {
                "env_settings.num_envs": 0,
                "checkpoint_settings.run_id": "a b",
                "torch_settings.device": "",
                "debug": 3,
                "env_settings.env": {"A": 3},
                "env_settings.env_kwargs": 3,
                "behaviors.A.max_step": 3,
                "behaviors.A.summary_freq": 0,
            },
        ),
        Case(
            "behaviors: {A: {}}",
            ["--set behaviors.A.summary_freq"],
            {"behaviors.A.summary_freq": 100000000000000000000},
        ),
        Case("behaviors: {A: {}}", ["--env"], {"env_settings.env": "Ball-v0"}),
        Case(
            "behaviors: {CartPole: {}, Walker: {}}\n",
            ["--set behaviors.Cartpole.max_steps"],
            {"behaviors.Cartpole.max_steps": 3},
        ),
        Case(
            "behaviors: {CartPole: {}, Walker: {}}\n",
            ["--set behaviors.Ant.network_settings.num_layers"],
            {"behaviors.Ant.network_settings.num_layers": 3},
        ),
        *(
            Case(
                "environment_parameters: {a: {curriculum: [{name: x, value: 1}]}}\n"
                "env_settings: {metrics: [], num_envs: 2}\n",
                [f"--set {path}"],
                {path: 3},
            )
            for path in (
                "environment_parameters.a.curriculum.1.value",
                "environment_parameters.a.curriculum.x.value",
                "environment_parameters.a.curriculum.0.name.x",
                "environment_parameters.a.curriculum.0.title",
                "env_settings.metrics.0",
                "env_settings.num_envs.x",
                "env_settings.wrappers.0",
            )
        ),
    ],
    "Older formats of ML-Agents": [
        Case("default: {trainer: sac, num_update: 0}\nA: {}\nB: {}", ["1:37: default.num_update"]),
        Case(
            "default:\n  trainer: ppo\n  max_steps: lots\nA: {hidden_units: 0}\nB: {use_recurrent: maybe}",
            ["3:14: default.max_steps", "4:19: A.hidden_units", "5:20: B.use_recurrent"],
        ),
        Case("A: {trainer: sac, hiden_units: 3}", ["1:19: A.hiden_units"]),
        Case("A: {trainer: offline_bc, demo_path: d}", ["1:14: A.trainer"]),
        Case("default: {tau: 1}\nA: {}", ["2:1: A"]),
        Case("A: {trainer: sac, batch_size: 32, use_recurrent: true}", ["1:35: A.sequence_length"]),
        Case("A: {trainer: ppo}\nB: 3", ["2:4: B"]),
        Case("A: {trainer: sac, use_recurrent: true, memory_size: 3, sequence_length: 500}", ["1:53: A.memory_size"]),
        Case("A: {trainer: sac, use_recurrent: true, sequence_length: 500}", ["1:57: A.sequence_length"]),
        Case("A: {trainer: ppo, gamma: 3}", ["1:26: A.gamma"]),
        Case("A: {trainer: *x, tau: 3}", ["1:14: A.trainer"]),
        Case("A: {trainer: sac, num_update: *x}", ["1:31: A.num_update"]),
        Case(
            "behaviors: {A: {trainer_type: ppo, hyperparameters: {num_update: 3}}}",
            ["1:54: behaviors.A.hyperparameters.num_update"],
        ),
        Case("behaviors: {A: {trainer_type: ppo, trainer: ppo}}", ["1:36: behaviors.A.trainer"]),
        Case(
            "behaviors: {A: {trainer_type: sac, num_update: 1, hyperparameters: {num_update: 3}}}",
            ["1:36: behaviors.A.num_update"],
        ),
        Case("default: {trainer: ppo}\ndefault_settings: {}", ["1:1: default"]),
        Case(
            "curriculum: {A: {measure: reward, thresholds: [1, 2], parameters: {p: [1], q: [1, x, 3]}}}",
            ["1:71: curriculum.A.parameters.p", "1:83: curriculum.A.parameters.q[1]"],
        ),
        Case(
            "curriculum: {A: {thresholds: 1, steps: 3}, B: 4}",
            ["1:14: curriculum.A", "1:33: curriculum.A.steps", "1:47: curriculum.B"],
        ),
        Case(
            "curriculum: {A: {measure: progress, thresholds: [3], parameters: {p: [1, 2]}}}",
            ["1:50: curriculum.A.thresholds[0]"],
        ),
        Case(
            "parameter_randomization: {p: {sampler-type: unifrm, mean: 1}}",
            ["1:45: parameter_randomization.p.sampler-type"],
        ),
        Case(
            "parameter_randomization: {p: {sampler-type: gaussian, men: 1}}\nenvironment_parameters: {q: 1}",
            ["1:55: parameter_randomization.p.men"],
        ),
        Case(
            "parameter_randomization: {p: {sampler-type: uniform}}\nenvironment_parameters: {p: 1}",
            ["1:27: parameter_randomization.p"],
        ),
        Case("curriculum: old.yaml", ["1:1: curriculum"]),
        Case(
            """\
A:
    batch_size: 64
    batch_size: 128
B: {trainer: ppo, max_steps: 5}
B:
    trainer: sac
    max_steps: many
""",
            ["1:1: A", "7:16: B.max_steps"],
        ),
    ],
}

UNSUPPORTED: dict[str, list[Case]] = {
    "Valid files that cannot be trained": [
        Case(
            """\
behaviors:
  A:
    trainer_type: poca
    reward_signals: {extrinsic: {}, curiosity: {}, gail: {demo_path: d}, rnd: {}}
    self_play: {}
    behavioral_cloning: {demo_path: d}
    init_path: old/checkpoint.pt
env_settings: {env: 'gymnasium:CartPole-v1'}
""",
            [
                "7:16: behaviors.A.init_path",
            ],
        ),
        Case(
            """\
behaviors:
  A:
    trainer_type: bc
    hyperparameters: {demo_path: d}
    behavioral_cloning: {demo_path: d}
env_settings: {env: 'gymnasium:CartPole-v1'}
""",
            ["5:5: behaviors.A.behavioral_cloning"],
        ),
        Case("default_settings: {trainer_type: bc, hyperparameters: {demo_path: d}}\n", ["1:1: behaviors"]),
        Case(
            """\
behaviors: {A: {}}
env_settings: {env: 'demonstrations:a.demo'}
""",
            ["2:21: env_settings.env"],
        ),
        Case(
            """\
behaviors: {A: {trainer_type: bc, hyperparameters: {teacher: t}}, B: {}}
env_settings:
  env: {A: 'demonstrations:a.demo', B: toy:line}
""",
            ["3:12: env_settings.env.A"],
        ),
        Case("behaviors: {A: {}}", ["--set behaviors.A.init_path"], {"behaviors.A.init_path": "old.pt"}),
        Case("debug: false", ["1:1: behaviors"]),
        Case(
            "default_settings: {trainer_type: ppo}\n", ["1:1: behaviors"], {"env_settings.env": "gymnasium:CartPole-v1"}
        ),
        Case(
            """\
behaviors: {A: {}, B: {}}
env_settings:
  env: gymnasium:X-v1
""",
            ["3:8: env_settings.env"],
        ),
        Case(
            """\
behaviors: {A: {}}
env_settings: {parameters: {sizes: size}}
environment_parameters: {size: 1}
""",
            ["2:29: env_settings.parameters.sizes"],
        ),
        Case("behaviors: {A: {}}\nenv_settings: {num_envs: 2}\n", ["2:26: env_settings.num_envs"]),
        Case(
            "behaviors: {A: {}, B: {}, C: {}}\nenv_settings: {env: {A: 'unity:editor', B: Ball, C: 'unity:editor'}}\n",
            ["2:53: env_settings.env.C"],
        ),
        Case(
            """\
behaviors: {A: {}}
env_settings:
  env: toy:line
  wrappers: ['gymnasium.wrappers:TimeLimit']
""",
            ["4:3: env_settings.wrappers"],
        ),
        Case(
            """\
behaviors: {A: {}}
env_settings:
  env: unity:builds/Ball
  wrappers: ['gymnasium.wrappers:TimeLimit']
""",
            ["4:3: env_settings.wrappers"],
        ),
        Case(
            "behaviors: {A: {}}\n",
            ["--force"],
            {"checkpoint_settings.force": True, "checkpoint_settings.inference": True},
        ),
        Case(
            "behaviors: {A: {}}\ncheckpoint_settings: {force: true, inference: true}\n",
            ["2:30: checkpoint_settings.force"],
        ),
        Case(
            "behaviors: {A: {}}\n",
            ["--resume-or-start"],
            {"checkpoint_settings.resume_or_start": True, "checkpoint_settings.inference": True},
        ),
    ],
}

UNUSED: dict[str, list[Case]] = {
    "Keys without effect": [
        Case(
            """\
behaviors:
  A:
    trainer_type: bc
    hyperparameters: {demo_path: d}
    reward_signals: {extrinsic: {gamma: 0.9}}
    time_horizon: 32
    threaded: true
    normalize_reward: true
env_settings: {env: "gymnasium:X-v1"}
""",
            [
                "5:5: behaviors.A.reward_signals",
                "8:5: behaviors.A.normalize_reward",
                "6:5: behaviors.A.time_horizon",
                "7:5: behaviors.A.threaded",
            ],
        ),
        Case(
            """\
behaviors:
  A:
    trainer_type: bc
    hyperparameters: {teacher: t.onnx, validation: 0.2}
    normalize_reward: true
env_settings: {env: "gymnasium:X-v1"}
""",
            ["4:40: behaviors.A.hyperparameters.validation", "5:5: behaviors.A.normalize_reward"],
        ),
        Case(
            """\
behaviors: {A: {trainer_type: bc, hyperparameters: {demo_path: d}, evaluation: {}}}
env_settings: {env: 'demonstrations:d'}
""",
            ["1:68: behaviors.A.evaluation"],
        ),
        Case(
            """\
behaviors:
  A:
    trainer_type: bc
    hyperparameters: {demo_path: d, buffer_size: 10}
env_settings: {env: "gymnasium:X-v1"}
""",
            ["4:37: behaviors.A.hyperparameters.buffer_size"],
        ),
        Case(
            """\
behaviors:
  A:
    checkpoint_interval: 10
    even_checkpoints: true
    max_steps: 1000
    reward_signals: {extrinsic: {network_settings: {hidden_units: 3}}}
env_settings: {env: "gymnasium:X-v1", base_port: 5004, restarts_rate_limit_n: 2}
engine_settings: {width: 3, height: 84}
checkpoint_settings: {train_model: true}
""",
            [
                "3:5: behaviors.A.checkpoint_interval",
                "6:34: behaviors.A.reward_signals.extrinsic.network_settings",
                "7:39: env_settings.base_port",
                "8:19: engine_settings.width",
                "7:56",
                "9:23: checkpoint_settings.train_model",
            ],
        ),
        Case(
            "behaviors: {A: {}}\nengine_settings: {width: 3}\n",
            [
                "--env-args",
                "--base-port",
                "--time-scale",
                "--no-graphics",
                "2:19: engine_settings.width",
                "--max-lifetime-restarts",
            ],
            {
                "env_settings.env": "gymnasium:CartPole-v1",
                "engine_settings.time_scale": 1.0,
                "engine_settings.no_graphics": True,
                "env_settings.base_port": 6000,
                "env_settings.env_args": ["-x"],
                "env_settings.max_lifetime_restarts": 3,
                "env_settings.num_envs": 2,
            },
        ),
        Case(
            "behaviors: {A: {}}\nenv_settings: {env_path: builds/3DBall, base_port: 6000}\n",
            ["2:16: env_settings.env_path", "2:41: env_settings.base_port"],
            {"env_settings.env": "gymnasium:CartPole-v1"},
        ),
        Case(
            """\
behaviors:
  A:
    trainer_type: sac
    hyperparameters: {reward_signal_steps_per_update: 4}
    reward_signals: {extrinsic: {}}
env_settings: {env: "gymnasium:X-v1"}
""",
            ["4:23: behaviors.A.hyperparameters.reward_signal_steps_per_update"],
        ),
        Case(
            "behaviors: {A: {}}", ["--force"], {"checkpoint_settings.force": True, "checkpoint_settings.resume": True}
        ),
        Case(
            "behaviors: {A: {}}",
            ["--force"],
            {"checkpoint_settings.force": True, "checkpoint_settings.resume_or_start": True},
        ),
        Case("writers: {tensorboard: null}\ncheckpoint_settings: {inference: true}", ["1:1: writers"]),
        Case(
            """\
behaviors: {A: {evaluation: {}}}
env_settings: {env_args: [a], base_port: 5006, timeout_wait: 9}
engine_settings: {no_graphics: true, time_scale: 2}
""",
            [
                "1:17: behaviors.A.evaluation",
                "2:16: env_settings.env_args",
                "3:19: engine_settings.no_graphics",
                "2:31: env_settings.base_port",
                "2:48: env_settings.timeout_wait",
            ],
        ),
        Case(
            """\
behaviors: {A: {}, B: {}}
env_settings: {env: {A: Ball, B: Ball}, num_workers: 1, num_areas: 2, env_args: [a], base_port: 5006}
engine_settings: {time_scale: 2}
""",
            ["2:41: env_settings.num_workers"],
        ),
        Case(
            """\
behaviors: {A: {}}
env_settings: {env: Ball, metrics: [score]}
engine_settings: {no_graphics: true, no_graphics_monitor: true, height: 3, time_scale: 2}
""",
            ["2:27: env_settings.metrics", "3:38: engine_settings.no_graphics_monitor", "3:65: engine_settings.height"],
        ),
    ],
}

SUSPICIOUS: dict[str, list[Case]] = {
    "Warnings": [
        Case(
            """\
behaviors:
  A:
    reward_signals:
      curiosity: {network_settings: {hidden_units: 32, memory: {memory_size: 4}}}
    self_play: {play_against_latest_model_ratio: 1.5}
  B:
    trainer_type: sac
    hyperparameters: {buffer_init_steps: 60000, n_step: 80}
    max_steps: 1e6
  C:
    network_settings: {memory: {sequence_length: 65}}
  D:
    checkpoint_interval: -1
    checkpoint_seconds: -1
  E:
    trainer_type: sac
    hyperparameters: {buffer_init_steps: 1000}
    max_steps: 1000
environment_parameters:
  size:
    curriculum:
      - {name: one, value: 1, completion_criteria: {behavior: F}}
      - {name: two, value: 2, completion_criteria: {behavior: A}}
  mass:
    curriculum:
      - {name: one, value: 1, completion_criteria: {behavior: B, measure: Elo}}
      - {name: two, value: 2}
""",
            [
                "4:56: behaviors.A.reward_signals.curiosity.network_settings.memory",
                "5:50: behaviors.A.self_play.play_against_latest_model_ratio",
                "8:42: behaviors.B.hyperparameters.buffer_init_steps",
                "8:57: behaviors.B.hyperparameters.n_step",
                "11:50: behaviors.C.network_settings.memory.sequence_length",
                "13:26: behaviors.D.checkpoint_interval",
                "17:42: behaviors.E.hyperparameters.buffer_init_steps",
                "22:63: environment_parameters.size.curriculum[0].completion_criteria.behavior",
                "23:31: environment_parameters.size.curriculum[1].completion_criteria",
                "26:75: environment_parameters.mass.curriculum[0].completion_criteria.measure",
            ],
        ),
        Case("behaviors:\n  A: {summary_freq: -1}\n", ["2:21: behaviors.A.summary_freq"]),
        Case(
            """\
behaviors:
  A: {}
  B: {}
checkpoint_settings: {inference: true}
""",
            ["4:34: checkpoint_settings.inference"],
        ),
        Case(
            """\
behaviors:
  A: {init_path: there}
  B: {}
checkpoint_settings: {inference: true}
""",
            ["4:34: checkpoint_settings.inference"],
        ),
        Case("checkpoint_settings: {resume: true, initialize_from: b}", []),
        Case("checkpoint_settings: {initialize_from: b}", [], {"checkpoint_settings.resume": True}),
        Case("checkpoint_settings: {resume: true}", [], {"checkpoint_settings.initialize_from": "b"}),
        Case(
            "behaviors: {A: {}}", [], {"checkpoint_settings.resume": True, "checkpoint_settings.initialize_from": "b"}
        ),
        Case(
            "behaviors: {A: {}}", [], {"checkpoint_settings.resume": True, "checkpoint_settings.resume_or_start": True}
        ),
        Case("checkpoint_settings: {resume: true, resume_or_start: true}", []),
        Case(
            "checkpoint_settings: {resume_or_start: true, initialize_from: b}", [], {"checkpoint_settings.resume": True}
        ),
    ],
    "Older formats of ML-Agents that are read": [
        Case(SAC, ["1:1"]),
        Case(
            """\
B0: {trainer: ppo}
B1: {trainer: ppo}
B2: {trainer: ppo}
B3: {trainer: ppo}
B4: {trainer: ppo}
B5: {trainer: ppo}
B6: {trainer: ppo}
B7: {trainer: ppo}
""",
            ["1:1"],
        ),
        Case(CURIOUS, ["1:1"]),
        Case(RANDOMIZED, ["1:1", "8:1: parameter_randomization", "9:5: parameter_randomization.resampling-interval"]),
        Case(CURRICULUM, ["4:1: curriculum"]),
        Case(NAMED_LESSONS, ["3:5: environment_parameters.height.curriculum"]),
        Case(
            OLD_KEYS,
            [
                "2:3: default_settings.trainer",
                "3:3: default_settings.framework",
                "6:39: behaviors.A.hyperparameters.num_update",
                "7:5: behaviors.A.use_recurrent",
                "11:13: behaviors.A.reward_signals.rnd.encoding_size",
                "13:45: behaviors.B.hyperparameters.train_interval",
                "13:64: behaviors.B.hyperparameters.reward_signal_num_update",
                "14:41: behaviors.B.network_settings.use_recurrent",
            ],
        ),
        Case("A: {trainer: sac, vis_encode_type: default}\n", ["1:1"]),
        Case(
            "behaviors: {A: {network_settings: {vis_encode_type: default}}}",
            ["1:36: behaviors.A.network_settings.vis_encode_type"],
        ),
        Case(
            """\
A:
    trainer: sac
    batch_size: 64
    batch_size: 128
B: {trainer: ppo, max_steps: 5}
B:
    trainer: sac
    max_steps: 7
""",
            ["1:1", "4:5: A.batch_size", "6:1: B"],
        ),
        Case("A: {trainer: ppo, reward_signals: {gail: {demo_path: d, samples_per_update: 5}}}", ["1:1"]),
    ],
}

NOTED: dict[str, list[Case]] = {
    "What is said at the start": [
        Case("behaviors: {A: {}}", []),
        Case(
            """\
behaviors:
  A: {max_steps: 100000}
  B: {max_steps: 1e6}
  C: {trainer_type: sac, max_steps: 40, hyperparameters: {buffer_init_steps: 20, steps_per_update: 2}}
env_settings: {env: 'toy:line'}
""",
            [],
        ),
        Case("default_settings: {max_steps: 1000}\nenv_settings: {env: 'my_world:Walkers'}\n", []),
        Case("behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:MountainCarContinuous-v0'}\n", []),
        Case("behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:Blackjack-v0'}\n", []),
    ],
}


FOUND: list[tuple[Callable[[Case], list[str]], dict[str, list[Case]]]] = [
    (refused, REFUSED),
    (lambda case: find_unsupported(read(case)), UNSUPPORTED),
    (lambda case: find_unused(read(case)), UNUSED),
    (lambda case: list_warnings(read(case)), SUSPICIOUS),
    (noted, NOTED),
]


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_every_message_is_at_its_place(number: int) -> None:
    find, tables = FOUND[number]
    cases = [case for table in tables.values() for case in table]
    found = [(case.file, case.flags, [place for line in find(case) for place in places(line)]) for case in cases]
    assert found == [(case.file, case.flags, case.places) for case in cases]


def test_every_message_has_the_words_of_the_catalog(
    tmp_path: Path, packages: Packages, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = {
        title: [(given(case), find(case)) for case in cases]
        for find, tables in FOUND
        for title, cases in tables.items()
    }
    monkeypatch.chdir(tmp_path)
    sections["Files"] = list(about_files(tmp_path))
    sections["Presets"] = list(about_presets())
    sections["rl-tui upgrade-config"] = list(about_upgrading(tmp_path, capsys))
    sections["Plug-ins"] = list(about_plugins(packages))
    check_file(Path(__file__).parent / "messages.txt", catalog(sections))


def given(case: Case) -> str:
    """The file, and the flags after it."""
    text = case.file if isinstance(case.file, str) else case.file.decode(errors="backslashreplace")
    return "\n".join([text.rstrip("\n"), *(f"{flag_of(path)} {value}" for path, value in case.flags.items())])


def about_files(folder: Path) -> Iterator[tuple[str, list[str]]]:
    (folder / "folder.yaml").mkdir()
    for path in ("/dev/zero", "nowhere/a.yaml", "folder.yaml"):
        with pytest.raises(ConfigError) as error:
            load_config(Path(path))
        yield path, [str(error.value).replace(str(folder), "/home/me")]


def about_presets() -> Iterator[tuple[str, list[str]]]:
    for name in ("ppo/CartPol", "acrobot", "CartPole", "ppo/Foo", "zzz", "../pyproject", "\x1b[2J"):
        with pytest.raises(ConfigError) as error:
            preset_path(name)
        yield name, [str(error.value)]


def about_upgrading(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, list[str]]]:
    (folder / "old.yaml").write_text(CURIOUS)
    (folder / "today.yaml").write_text("behaviors: {A: {}}\n")
    (folder / "wrong.yaml").write_text("A: {trainer: sac, max_steps: 0}\n")
    (folder / "link.yaml").symlink_to(folder / "old.yaml")
    for words in (
        "old.yaml new.yaml", "today.yaml copy.yaml", "wrong.yaml other.yaml", "old.yaml old.yaml",
        "old.yaml link.yaml --force", "old.yaml none/new.yaml",
    ):  # fmt: skip
        main(["upgrade-config", *words.split()])
        printed = capsys.readouterr()
        yield f"rl-tui upgrade-config {words}", (printed.out + printed.err).splitlines()


def about_plugins(packages: Packages) -> Iterator[tuple[str, list[str]]]:
    packages.install("other", PLUG_IN, trainers="other = other:OtherSettings")
    writers = {"lines": "LinesSettings", "broken": "BrokenSettings", "wrong": "LinesWriter"}
    packages.install("lines_writer", LINES, writers="\n".join(f"{k} = lines_writer:{v}" for k, v in writers.items()))
    for text in (
        "behaviors: {A: {trainer_type: othr}}",
        "behaviors: {A: {trainer_type: other, hyperparameters: {patienc: 7}, patience: 1}}",
        "writers: {lines: {pth: a, fails_in: 3}, line: {}}",
        "writers: {broken: {}}",
        "writers: {wrong: {}}",
    ):
        yield text, refused(Case(text, []))
