"""Thousands of configurations, valid and damaged: accepted and written unchanged, or refused with places."""

from __future__ import annotations

import copy
import random
import re
import time

import pytest
import yaml

from rl_tui.engine.config.legacy.upgrade import upgrade
from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import find_unsupported, find_unused, list_warnings
from rl_tui.engine.errors import ConfigError

NUM_FILES = 1000
LINE = re.compile(r"fuzz\.yaml:(\d+):(\d+): .+")

HYPERPARAMETERS: dict[str, dict[str, list[object]]] = {
    "ppo": {
        "batch_size": [64, 128.0, 2048],
        "buffer_size": [12000, 1],
        "learning_rate": [3e-4, 1],
        "learning_rate_schedule": ["linear", "constant"],
        "epsilon_schedule": ["constant"],
        "beta": [0, 0.5],
        "lambd": [0, 1, 0.95],
        "shared_critic": [True, False],
        "max_grad_norm": [None, 0.5],
        "value_clip": [None, "epsilon", 0.2, 1],
        "target_kl": [None, 0.01],
        "normalize_advantage": ["buffer", "minibatch", "none"],
        "joint_ratio": [True],
    },
    "sac": {
        "tau": [0.005],
        "steps_per_update": [1, 10.0],
        "init_entcoef": [0.5],
        "save_replay_buffer": [True],
        "batch_size": [64, 50000],
        "target_q": [True],
        "n_step": [1],
        "prioritized_replay": [None],
        "target_entropy": [None, -3],
    },
    "poca": {"num_epoch": [1, 3], "beta_schedule": ["constant"], "epsilon": [0.1]},
}
NETWORK: dict[str, list[object]] = {
    "normalize": [True, False],
    "hidden_units": [20, 512],
    "vis_encode_type": ["simple", "resnet"],
    "memory": [None, {}, {"memory_size": 8, "sequence_length": 2}],
    "goal_conditioning_type": ["hyper", "none"],
    "activation": ["tanh", "relu", "swish"],
    "precision": ["float32", "bfloat16"],
}
SIGNALS: dict[str, list[object]] = {
    "extrinsic": [{}, {"gamma": 0.9, "strength": -1}],
    "curiosity": [{}, {"encoding_size": 64, "learning_rate": 1e-5}],
    "gail": [{"demo_path": "a b.demo", "use_vail": True}],
    "rnd": [{"network_settings": {"hidden_units": 8}}],
}
BEHAVIOR: dict[str, list[object]] = {
    "checkpoint_interval": [1, 5e5, -1],
    "init_path": [None, "1e5", "ünï", "run: #3"],
    "keep_checkpoints": [-1, 0, 5],
    "max_steps": [5e6, 1000],
    "time_horizon": [3, 64.0],
    "threaded": [True, False],
    "self_play": [None, {}, {"save_steps": 10, "play_against_latest_model_ratio": 2}],
    "behavioral_cloning": [{"demo_path": "d", "steps": 5}],
    "framework": ["pytorch"],
    "normalize_reward": [True],
    "evaluation": [None, {}, {"interval": 1e4, "episodes": 3, "deterministic": False}],
    "export_interval": [None, 100, -1],
    "summary_freq": [100, -1],
    "throughput_interval": [1e4, -1],
    "export_policies": [[], ["raw", "greedy"]],
}
# Of ML-Agents 0.16 and before: no sections.
FLAT: dict[str, list[object]] = {
    "trainer": ["ppo", "sac"],
    "batch_size": [64, 128.0],
    "num_update": [1, 3],
    "train_interval": [1, 2.0],
    "lambd": [0.95],
    "hidden_units": [32],
    "use_recurrent": [True, False],
    "memory_size": [8],
    "sequence_length": [2, 64],
    "gamma": [0.9],
    "use_curiosity": [True, False],
    "curiosity_strength": [0.01],
    "reward_signals": [{"extrinsic": {}, "reward_signal_num_update": 2}, {"rnd": {"encoding_size": 4}}],
    "max_steps": [5e6],
    "pretraining": [{"demo_path": "d"}],
    "self_play": [{"play_against_current_self_ratio": 0.2}],
}
OLD_SECTIONS: dict[str, list[object]] = {
    "curriculum": [{"B0": {"measure": "reward", "thresholds": [1, 2.5], "parameters": {"a": [1, 2, 3]}}}],
    "parameter_randomization": [{"resampling-interval": 5, "mass": {"sampler-type": "uniform", "max_value": 3}}],
    "env_settings": [{"env": "a.b:c", "num_envs": 2}],
    "torch_settings": [{"device": "cpu"}],
}
PARAMETERS: dict[str, list[object]] = {
    "gravity": [-9.81, 3],
    "wind": [{"sampler_type": "uniform", "sampler_parameters": {"min_value": 0.5}}],
    "mass": [{"sampler_type": "multirangeuniform", "sampler_parameters": {"intervals": [[1, 2], [3.5, 4]]}}],
    "tiles": [
        {
            "curriculum": [
                {"name": "few", "value": 1, "completion_criteria": {"behavior": "B0", "threshold": 3.5}},
                {"name": "many", "value": {"sampler_type": "constant", "sampler_parameters": {}}},
            ]
        }
    ],
}
SECTIONS: dict[str, dict[str, list[object]]] = {
    "env_settings": {
        "env": [None, "gymnasium:CartPole-v1", "a.b:c"],
        "env_args": [None, ["--x", 3]],
        "num_envs": [1, 8],
        "seed": [-1, 7],
        "env_kwargs": [{}, {"size": [1, "1e5", {"deep": None}]}],
    },
    "engine_settings": {"width": [84], "time_scale": [1, 20.5], "no_graphics": [True]},
    "environment_parameters": PARAMETERS,
    "checkpoint_settings": {
        "run_id": ["a", "3.b-c_d", "007"],
        "resume": [True],
        "resume_or_start": [True],
        "initialize_from": ["b", None],
    },
    "torch_settings": {"device": [None, "auto", "cpu", "cuda:0"]},
}
DAMAGE = [
    ": ",
    "- ",
    "&a ",
    "*a",
    "!!int ",
    "<<: ",
    "\t",
    "'",
    '"',
    "{",
    "]",
    "#",
    "\n",
    "---\n",
    "1e999",
    ".nan",
    "null",
]
DAMAGE += [
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\\",
    "|",
    "%",
    "0x",
    "007",
    "yes",
    "-1",
    "64.7",
    "x" * 300,
    "😀",
    "?",
    "\r",
    ",",
]


class Quoting(yaml.SafeDumper):
    """Leaves no text bare, so that none reads as something else."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def some(choices: dict[str, list[object]], chance: random.Random) -> dict[str, object]:
    """A random part of the keys, in random order, each with one of its values."""
    keys = chance.sample(list(choices), chance.randint(0, len(choices)))
    return {key: copy.deepcopy(chance.choice(choices[key])) for key in keys}


def valid_behavior(trainer: str, chance: random.Random) -> dict[str, object]:
    behavior = some(BEHAVIOR, chance)
    behavior["trainer_type"] = trainer
    behavior["hyperparameters"] = some(HYPERPARAMETERS[trainer], chance)
    behavior["network_settings"] = some(NETWORK, chance)
    if signals := some(SIGNALS, chance):
        behavior["reward_signals"] = signals
    return behavior


def valid_file(chance: random.Random) -> str:
    """A configuration that has to be accepted."""
    trainer = chance.choice(list(HYPERPARAMETERS))
    file: dict[str, object] = {name: some(choices, chance) for name, choices in some_sections(chance)}
    file["behaviors"] = {f"B{number}": valid_behavior(trainer, chance) for number in range(chance.randint(0, 3))}
    if chance.random() < 0.3:
        file["default_settings"] = valid_behavior(trainer, chance)
    return yaml.dump(
        file, Dumper=Quoting, sort_keys=False, allow_unicode=True, default_flow_style=chance.random() < 0.2
    )


def old_file(chance: random.Random) -> str:
    """A configuration of an older version, that has to be accepted too."""
    behaviors: dict[str, object] = {f"B{number}": some(FLAT, chance) for number in range(chance.randint(1, 3))}
    behaviors["default"] = some(FLAT, chance) | {"trainer": chance.choice(["ppo", "sac"])}
    file = {"behaviors": behaviors} if chance.random() < 0.3 else behaviors
    return yaml.dump(file | some(OLD_SECTIONS, chance), Dumper=Quoting, sort_keys=False)


def some_sections(chance: random.Random) -> list[tuple[str, dict[str, list[object]]]]:
    return [(name, choices) for name, choices in SECTIONS.items() if chance.random() < 0.5]


def damaged(text: str, chance: random.Random) -> str:
    """The text with one to three things deleted, doubled, put in or swapped."""
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([0, 1, 1, 5, 40]))
        middle = chance.choice([*DAMAGE, "", "", text[start:end] * 2, text[start:end][::-1]])
        text = text[:start] + middle + text[end:]
    return text


def read(text: str) -> RunConfig | ConfigError:
    """The configuration, or what is wrong with it; any other exception is a bug and passes through."""
    try:
        return parse_config(text.encode("utf-8", "surrogatepass"), "fuzz.yaml")
    except ConfigError as error:
        return error


def check_accepted(config: RunConfig) -> None:
    again = parse_config(effective_yaml(config).encode(), "fuzz.yaml")
    assert again.model_dump() == config.model_dump()
    for line in [*find_unsupported(config), *find_unused(config), *list_warnings(config)]:
        assert line.isprintable()


def check_upgraded(config: RunConfig, text: str) -> None:
    upgraded = upgrade(text.encode(), "fuzz.yaml")
    again = parse_config(upgraded.content, "fuzz.yaml")
    assert again.model_dump() == config.model_dump()
    assert upgraded.notes == () or list_warnings(config) != list_warnings(again)
    assert upgrade(upgraded.content, "fuzz.yaml").notes == ()


def check_refused(error: ConfigError, text: str) -> None:
    for line in str(error).split("\n"):
        match = LINE.fullmatch(line)
        assert match, line
        assert line.isprintable()
        assert int(match[1]) <= len(re.split("\r\n|[\r\n\x85\u2028\u2029]", text))


@pytest.mark.parametrize("num_files", [NUM_FILES // 8, pytest.param(NUM_FILES, marks=pytest.mark.slow)])
def test_valid_files_are_accepted_and_damaged_ones_refused_with_places(num_files: int) -> None:
    chance = random.Random(2)
    num_accepted, slowest = 0, 0.0
    for number in range(num_files):
        is_valid = number % 5 < 2
        text = old_file(chance) if chance.random() < 0.3 else valid_file(chance)
        text = text if is_valid else damaged(text, chance)
        started = time.thread_time()
        outcome = read(text)
        slowest = max(slowest, time.thread_time() - started)
        if isinstance(outcome, RunConfig):
            num_accepted += 1
            check_accepted(outcome)
            if number % 3 == 0:
                check_upgraded(outcome, text)
        else:
            assert not is_valid, f"{outcome}\n{text}"
            check_refused(outcome, text)
    assert 0.3 * num_files <= num_accepted < 0.9 * num_files
    assert slowest < 1.0
