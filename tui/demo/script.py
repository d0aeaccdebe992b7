"""Who plays in the demo: behaviors, their settings, and what the user did before the curtain rises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rl_tui.engine.session.health.entropy import EntropyCoefficient
from rl_tui.engine.session.health.replay import QDivergence
from rl_tui.engine.session.health.rules import TrainerHealth
from rl_tui.engine.session.messages import AddNote, LogLevel, Pause, SetHyperparameter
from rl_tui.tui.demo.lessons import LEARNER, configuration_lines

HOURS = 1.7  # of the past: about half of what the first behavior needs
Act: TypeAlias = AddNote | SetHyperparameter | Pause
Fate: TypeAlias = Literal["rises", "collapses"]
UP_TO_ONE = ("epsilon", "lambd", "tau")
ANY_SIGN = ("target_entropy",)
WHOLE = ("num_epoch",)


@dataclass(frozen=True, slots=True)
class Trainer:
    """What a behavior is trained by. split: of its time, as TimeSplit has it. has_replay: experience is used again."""

    name: str
    hyperparameters: Mapping[str, float]
    split: tuple[float, ...]
    health: TrainerHealth  # as the settings of that trainer have it, without importing them
    has_replay: bool = False


PPO = Trainer(
    "ppo",
    {"learning_rate": 3e-4, "beta": 5e-3, "epsilon": 0.2, "lambd": 0.95, "num_epoch": 3.0, "value_coefficient": 0.5},
    (0.58, 0.14, 0.22, 0.03, 0.03),
    TrainerHealth(advice={"entropy_collapse": "raise beta, or roll back to an earlier checkpoint"}),
)
SAC = Trainer(
    "sac",
    {"learning_rate": 3e-4, "tau": 5e-3, "steps_per_update": 8.0, "target_entropy": -60.0},
    (0.31, 0.09, 0.54, 0.03, 0.03),
    TrainerHealth(
        rules={"value_loss_explosion": None, "q_divergence": QDivergence, "entropy_coefficient": EntropyCoefficient},
        advice={"entropy_collapse": "raise target_entropy or init_entcoef, or roll back to an earlier checkpoint"},
        entropy_target="target_entropy",
    ),
    has_replay=True,
)


@dataclass(frozen=True, slots=True)
class Role:
    """One behavior. returns: of a policy that knows nothing and of a perfect one.

    is_evaluated: it is measured apart from its training.
    """

    name: str
    trainer: Trainer
    fate: Fate
    max_steps: int
    steps_per_second: float
    returns: tuple[float, float]
    episode_steps: int
    num_agents: int = 16
    num_parameters: int = 339_752
    is_evaluated: bool = False

    @property
    def hyperparameters(self) -> Mapping[str, float]:
        """Those that it begins with."""
        return self.trainer.hyperparameters

    @property
    def environment(self) -> str:
        """What stands where a real run names its environment."""
        return f"demo:{self.name}"

    @property
    def summary_freq(self) -> int:
        """Steps between summaries: about twenty seconds."""
        return max(1000, round(self.steps_per_second * 20 / 1000) * 1000)

    @property
    def checkpoint_interval(self) -> int:
        """Steps between checkpoints: about ten minutes."""
        return 30 * self.summary_freq

    @property
    def evaluation_interval(self) -> int:
        """Steps between evaluations: about five minutes."""
        return 15 * self.summary_freq


REPLAY_STEPS, REPLAY_ROW_BYTES = 500_000, 1_100  # of 126 observed numbers, seen before and after, and 20 actions
FIRST_UPDATE_STEP = 10_000
EVALUATION_EPISODES = 10
CAST: tuple[Role, ...] = (
    Role("Walker", PPO, "rises", 30_000_000, 2400.0, (4.0, 520.0), 900),
    Role("Crawler", SAC, "collapses", 20_000_000, 900.0, (-60.0, 640.0), 700, 8, 1_204_736, is_evaluated=True),
    Role("Swimmer", PPO, "rises", 50_000_000, 4800.0, (2.0, 348.0), 1000, 32, 611_592),
    Role("Hopper", PPO, "rises", 24_000_000, 1900.0, (12.0, 2900.0), 600),
    Role("HalfCheetah", PPO, "rises", 40_000_000, 3100.0, (-280.0, 5400.0), 1000),
    Role("Ant", PPO, "rises", 36_000_000, 1500.0, (-90.0, 3900.0), 800),
    Role("Reacher", PPO, "rises", 30_000_000, 2800.0, (-45.0, -4.0), 50),
    Role("Pusher", PPO, "rises", 9_000_000, 700.0, (-150.0, -28.0), 100),
    Role("Humanoid", PPO, "rises", 15_000_000, 820.0, (110.0, 5300.0), 1000),
    Role("BipedalWalker", PPO, "rises", 18_000_000, 1100.0, (-105.0, 302.0), 1600),
    Role("LunarLander", PPO, "rises", 14_000_000, 1300.0, (-180.0, 271.0), 420),
    Role("CarRacing", PPO, "rises", 16_000_000, 1700.0, (-52.0, 880.0), 1000),
)  # fmt: skip


def health_of(algorithm: str) -> TrainerHealth:
    """What the rules about health know of a trainer."""
    return next((role.trainer.health for role in CAST if role.trainer.name == algorithm), TrainerHealth())


def cast(number: int, hours: float = HOURS) -> tuple[Role, ...]:
    """The first `number` roles; for more hours of past than usual, they need so many more steps."""
    longer = max(1.0, hours / HOURS)
    return tuple(replace(role, max_steps=round(role.max_steps * longer)) for role in CAST[:number])


def cues(names: Sequence[str], hours: float) -> list[tuple[float, Act]]:
    """What the user did, in seconds since the start and in order; ids are the same every time."""
    acts: list[tuple[float, Act]] = [
        (0.22, AddNote("all of them walk into the wall less often", None)),
        (0.41, SetHyperparameter("Walker", "learning_rate", 2.5e-4)),
        (0.63, AddNote("the hind legs drag", "Crawler")),
        (0.92, Pause("Swimmer")),
    ]
    known = [(share, act) for share, act in acts if act.behavior is None or act.behavior in names]
    return [(share * hours * 3600, replace(act, id=f"past{number}")) for number, (share, act) in enumerate(known)]


def refusal(role: Role, name: str, value: float) -> str:
    """Why a hyperparameter cannot have that value; "" when it can."""
    if name not in role.hyperparameters:
        return f"cannot be changed during training; these can: {', '.join(role.hyperparameters)}"
    if name in ANY_SIGN:
        return "" if math.isfinite(value) else f"must be a finite number, got {value:g}"
    if not math.isfinite(value) or value <= 0:
        return f"must be greater than 0, got {value:g}"
    if name in UP_TO_ONE and value > 1:
        return f"must be at most 1, got {value:g}"
    if name in WHOLE and value != round(value):
        return f"must be a whole number, got {value:g}"
    return ""


# What environments might write to their log.
CHATTER: tuple[tuple[LogLevel, str], ...] = (
    ("debug", "environment {digit}: reset with friction 0.{small}"),
    ("debug", "environment {digit}: {small} contacts"),
    ("info", "environment {digit}: an episode reached its step limit"),
    ("info", "environment {digit}: fell after {small} steps"),
    ("warning", "environment {digit}: a torque was clipped to its limit"),
    ("error", "environment {digit}: the simulation was unstable, the episode was ended"),
)
CHATTER_WEIGHTS = (8, 8, 6, 4, 2, 1)
CHATTER_SECONDS = 150.0  # from one line to the next, on average


def configuration(roles: Sequence[Role], seed: int, hyperparameters: Mapping[str, Mapping[str, float]]) -> str:
    """The YAML that a run of these behaviors would have."""
    lines = ["behaviors:"]
    for role in roles:
        lines += [f"  {role.name}:", f"    trainer_type: {role.trainer.name}", "    hyperparameters:"]
        lines += [f"      {name}: {value:g}" for name, value in hyperparameters[role.name].items()]
        if role.trainer.has_replay:
            lines += [f"      buffer_size: {REPLAY_STEPS}", f"      buffer_init_steps: {FIRST_UPDATE_STEP}"]
        lines += [f"    max_steps: {role.max_steps}", f"    summary_freq: {role.summary_freq}"]
        lines += [f"    checkpoint_interval: {role.checkpoint_interval}", "    keep_checkpoints: 5"]
        if role.is_evaluated:
            lines += ["    evaluation:", f"      interval: {role.evaluation_interval}"]
            lines += [f"      episodes: {EVALUATION_EPISODES}"]
    lines += configuration_lines() if any(role.name == LEARNER for role in roles) else []
    lines += ["env_settings:", "  env:"]
    lines += [f"    {role.name}: {role.environment}" for role in roles]
    lines += [f"  seed: {seed}", "torch_settings:", "  device: cuda"]
    return "\n".join(lines) + "\n"


OF_TRAINER = (("hyperparameters", "buffer_size"), ("hyperparameters", "buffer_init_steps"), ("evaluation", "interval"))


def sources(roles: Sequence[Role]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Where the settings of that YAML would be from, as RunStarted has it."""
    typed = ("summary_freq",)  # with --set
    written = [("trainer_type",), ("max_steps",), ("checkpoint_interval",), ("keep_checkpoints",)]
    of_file = [
        ("behaviors", role.name, *path)
        for role in roles
        for path in (*written, *(("hyperparameters", name) for name in role.hyperparameters), *OF_TRAINER)
    ]
    return {
        "file": (*of_file, *(("env_settings", "env", role.name) for role in roles)),
        "--set": tuple(("behaviors", role.name, *typed) for role in roles),
        "--seed": (("env_settings", "seed"),),
        "--torch-device": (("torch_settings", "device"),),
    }
