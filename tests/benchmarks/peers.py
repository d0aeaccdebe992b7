"""One training of one peer, in a process of its own: `python -m tests.benchmarks.peers PEER WORKLOAD ...`.

Each process first trains a throw-away run of two rollouts: what is loaded at first use does not count. Then
the clock runs from the moment at which the environments stand reset to the end of the last update. The measurement is
the last line on stdout, as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.benchmarks.settings import (
    ADAM_EPSILON,
    CLIP_RANGE,
    ENTROPY_COEFFICIENT,
    GAE_LAMBDA,
    GAMMA,
    HIDDEN_UNITS,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    NUM_LAYERS,
    PIXEL_HIDDEN_UNITS,
    SAC_BATCH_SIZE,
    SAC_HIDDEN_UNITS,
    SAC_START,
    SAC_TAU,
    VALUE_COEFFICIENT,
    WORKLOADS,
    AnyWorkload,
    SoftWorkload,
    Workload,
    configuration,
)

if TYPE_CHECKING:
    from stable_baselines3 import PPO, SAC

WARM_UP_ROLLOUTS = 2
POLL_SECONDS = 0.25  # as the headless front end polls

SB3, RL_TUI, RL_TUI_THREADED, RL_TUI_BFLOAT16 = "sb3", "rl-tui", "rl-tui-threaded", "rl-tui-bfloat16"
RL_TUI_MEMORY, SINGLE_FILE = "rl-tui-memory", "single-file"
PEERS = (SB3, SINGLE_FILE, RL_TUI, RL_TUI_THREADED, RL_TUI_BFLOAT16, RL_TUI_MEMORY)


def peers_of(workload: AnyWorkload, device: str | None = None) -> tuple[str, ...]:
    """Who is measured on a workload, always in this order; the first is what the others are compared with.

    device: torch's name of the one that all compute on, which a single-file implementation is made for.
    """
    if device is not None:
        first, *others = peers_of(workload)
        return first, SINGLE_FILE, *others
    if isinstance(workload, Workload) and workload.is_visual:
        return SB3, RL_TUI, RL_TUI_BFLOAT16
    if isinstance(workload, Workload) and workload.memory is not None:
        return RL_TUI, RL_TUI_MEMORY
    return SB3, RL_TUI, RL_TUI_THREADED


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one training took and reached. mean_return: of its last 100 episodes, before any normalization."""

    peer: str
    workload: str
    seed: int
    steps: int
    seconds: float
    cpu_seconds: float  # of all threads of the process
    num_updates: int
    mean_return: float | None  # None: no episode ended
    split: dict[str, float]  # seconds by what they went for; empty where the peer does not report

    @property
    def throughput(self) -> float:
        """Environment steps per second."""
        return self.steps / self.seconds


@dataclass(slots=True)
class Stopwatch:
    """Wall and CPU time of a stretch of the whole process."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def start(self) -> None:
        """The stretch begins."""
        self.seconds, self.cpu_seconds = -time.perf_counter(), -time.process_time()

    def stop(self) -> None:
        """The stretch is over."""
        self.seconds += time.perf_counter()
        self.cpu_seconds += time.process_time()


def train_sb3(workload: AnyWorkload, seed: int, device: str) -> Measurement:
    """Train with Stable-Baselines3 in one torch thread."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    warm_up = workload.cut(WARM_UP_ROLLOUTS)
    make_sb3(warm_up, seed, device).learn(warm_up.total_steps)
    watch = Stopwatch()

    class Timing(BaseCallback):
        """Called with the environments reset, and after the last update."""

        def _on_training_start(self) -> None:
            watch.start()

        def _on_step(self) -> bool:
            return True

        def _on_training_end(self) -> None:
            watch.stop()

    model = make_sb3(workload, seed, device)
    model.learn(workload.total_steps, callback=Timing())
    per_update = 1 if isinstance(workload, SoftWorkload) else workload.rollout_steps
    episodes = [float(episode["r"]) for episode in model.ep_info_buffer or ()]  # its Monitor keeps the last 100
    return Measurement(
        peer=SB3,
        workload=workload.name,
        seed=seed,
        steps=model.num_timesteps,
        seconds=watch.seconds,
        cpu_seconds=watch.cpu_seconds,
        num_updates=model.num_timesteps // per_update,
        mean_return=sum(episodes) / len(episodes) if episodes else None,
        split={},
    )


def make_sb3(workload: AnyWorkload, seed: int, device: str = "cpu") -> PPO | SAC:
    """The task as Stable-Baselines3 has it."""
    make = make_sac if isinstance(workload, SoftWorkload) else make_ppo
    return make(workload, seed, device)  # type: ignore[arg-type]  # each its own kind


def make_sac(workload: SoftWorkload, seed: int, device: str = "cpu") -> SAC:
    """Twin target critics and an update per step are its defaults."""
    from stable_baselines3 import SAC

    return SAC(
        "MlpPolicy",
        workload.environment,
        learning_rate=LEARNING_RATE,
        buffer_size=workload.total_steps,
        learning_starts=SAC_START,
        batch_size=SAC_BATCH_SIZE,
        tau=SAC_TAU,
        gamma=GAMMA,
        policy_kwargs={"net_arch": [SAC_HIDDEN_UNITS, SAC_HIDDEN_UNITS]},
        seed=seed,
        device=device,
    )


def make_ppo(workload: Workload, seed: int, device: str = "cpu") -> PPO:
    """Frames go through its convolutions, which actor and critic share there; vectors through two networks."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize
    from torch.nn import Tanh

    from rl_tui.engine.sampling.environments.toys.frames import Frames

    layers = [HIDDEN_UNITS] * NUM_LAYERS
    network: dict[str, object] = {"net_arch": {"pi": layers, "vf": layers}, "activation_fn": Tanh}
    if workload.is_visual:
        network = {"features_extractor_kwargs": {"features_dim": PIXEL_HIDDEN_UNITS}}
    environment = Frames if workload.is_visual else workload.environment
    environments: VecEnv = make_vec_env(environment, workload.num_envs, seed=seed, vec_env_cls=DummyVecEnv)
    if workload.is_normalized:
        environments = VecNormalize(environments, gamma=GAMMA)
    return PPO(
        "CnnPolicy" if workload.is_visual else "MlpPolicy",
        environments,
        learning_rate=LEARNING_RATE,
        n_steps=workload.num_steps,
        batch_size=workload.batch_size,
        n_epochs=workload.num_epochs,
        gamma=GAMMA,
        gae_lambda=GAE_LAMBDA,
        clip_range=CLIP_RANGE,
        clip_range_vf=None,
        normalize_advantage=True,
        ent_coef=ENTROPY_COEFFICIENT,
        vf_coef=VALUE_COEFFICIENT,
        max_grad_norm=MAX_GRAD_NORM,
        policy_kwargs=network | {"optimizer_kwargs": {"eps": ADAM_EPSILON}},
        seed=seed,
        device=device,
    )


def train_single_file(workload: AnyWorkload, seed: int, device: str) -> Measurement:
    """Train with one file of plain torch, in one thread on the host."""
    import torch

    from tests.benchmarks.single_file import train_ppo, train_sac

    torch.set_num_threads(1)
    watch = Stopwatch()
    for task in (workload.cut(WARM_UP_ROLLOUTS), workload):
        if isinstance(task, SoftWorkload):
            returns = train_sac(task, seed, torch.device(device), watch.start)
        else:
            returns = train_ppo(task, seed, torch.device(device), watch.start)
    watch.stop()
    per_update = 1 if isinstance(workload, SoftWorkload) else workload.rollout_steps
    return Measurement(
        peer=SINGLE_FILE,
        workload=workload.name,
        seed=seed,
        steps=workload.total_steps,
        seconds=watch.seconds,
        cpu_seconds=watch.cpu_seconds,
        num_updates=workload.total_steps // per_update,
        mean_return=sum(returns) / len(returns) if returns else None,
        split={},
    )


def train_rl_tui(workload: AnyWorkload, seed: int, peer: str, device: str = "cpu") -> Measurement:
    """Train with the whole of rl-tui as `--no-ui` runs it: checkpoints, exports, every log file, console lines."""
    train_headless(workload.cut(WARM_UP_ROLLOUTS), seed, peer, device)
    return train_headless(workload, seed, peer, device)


def train_headless(workload: AnyWorkload, seed: int, peer: str, device: str = "cpu") -> Measurement:
    """One run as tui/command_line/train_headless.py runs it; its lines go nowhere, its files to a temporary folder."""
    from rl_tui.engine.config.loading import parse_config
    from rl_tui.engine.running.launch import Launch
    from rl_tui.engine.running.writers.console import ConsoleWriter
    from rl_tui.engine.session.bus import EventBus
    from rl_tui.engine.session.messages import (
        BehaviorStateChanged,
        CheckpointSaved,
        Event,
        ProgressReported,
        TimeSplit,
    )

    watch, last = Stopwatch(), dict[type, Event]()
    with TemporaryDirectory(prefix="rl-tui-bench-") as results, Path(os.devnull).open("w") as nowhere:
        text = configuration(
            workload,
            seed,
            Path(results),
            is_threaded=peer == RL_TUI_THREADED,
            precision="bfloat16" if peer == RL_TUI_BFLOAT16 else "float32",
            has_memory=peer == RL_TUI_MEMORY,
            device=device,
        )
        config = parse_config(text.encode(), "bench")
        launch = Launch(EventBus())
        mail = launch.subscribe()
        writer = ConsoleWriter(nowhere)
        launch.start(config)
        is_over = False
        while not is_over:
            is_over = launch.wait(POLL_SECONDS)
            for envelope in mail.drain():
                event = envelope.event
                last[type(event)] = event
                if isinstance(event, BehaviorStateChanged):
                    if event.state == "training":
                        watch.start()
                    else:
                        watch.stop()
                writer.write(envelope)
    if launch.exit_code != 0:
        raise RuntimeError(f"the run ended with exit code {launch.exit_code}: {launch.error}")
    saved, progress, split = last[CheckpointSaved], last[ProgressReported], last[TimeSplit]
    assert isinstance(saved, CheckpointSaved)
    assert isinstance(progress, ProgressReported)
    assert isinstance(split, TimeSplit)
    return Measurement(
        peer=peer,
        workload=workload.name,
        seed=seed,
        steps=saved.step,
        seconds=watch.seconds,
        cpu_seconds=watch.cpu_seconds,
        num_updates=progress.num_updates,
        mean_return=saved.mean_return,
        split={
            "environment": split.environment_seconds,
            "inference": split.inference_seconds,
            "update": split.update_seconds,
            "other": split.other_seconds,
        },
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure one training and print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rollouts", type=int, help="train for so many only")
    parser.add_argument("--device", default="cpu", help="torch's name of what all compute on (cpu)")
    arguments = parser.parse_args(words)
    workload = WORKLOADS[arguments.workload]
    if arguments.rollouts is not None:
        workload = workload.cut(arguments.rollouts)
    if arguments.peer == SB3:
        measurement = train_sb3(workload, arguments.seed, arguments.device)
    elif arguments.peer == SINGLE_FILE:
        measurement = train_single_file(workload, arguments.seed, arguments.device)
    else:
        measurement = train_rl_tui(workload, arguments.seed, arguments.peer, arguments.device)
    print(json.dumps(dataclasses.asdict(measurement)))


if __name__ == "__main__":
    main()
