"""Runs made up for the screen: every state it has to draw, at a fixed time of day."""

from __future__ import annotations

import copy
import functools
import math
import random
from bisect import bisect_right
from dataclasses import replace

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    EvaluationReported,
    Event,
    Gpu,
    Histogram,
    HyperparameterChanged,
    HyperparametersReported,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    NoteAdded,
    ParametersReported,
    ParameterStatus,
    PolicyExported,
    ProgressReported,
    RanksReported,
    RankStatus,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WarningRaised,
    Worker,
    WorkersSampled,
)
from rl_tui.engine.session.view import RunView

START = 1_795_000_000.0
GIB = 1024**3
TRACEBACK = """Traceback (most recent call last):
  File "walker/env.py", line 88, in step
    torque = self.motors[joint].limit(action)
             ~~~~~~~~~~~^^^^^^^
IndexError: list index out of range"""
PLAYER = "unity:builds/Walker"
LOSS, HELD_OUT = "Losses/Cloning Loss", "Losses/Held-Out Cloning Loss"
LONG_NAME = "AVeryLongBehaviorNameOfSixtyCharactersThatNobodyWouldTypeTwice"[:60]


class Story:
    """Envelopes in order, reported by a clock of its own."""

    def __init__(self) -> None:
        self.time = START
        self.published: list[Envelope] = []
        self.chance = random.Random(7)
        self._num_folded, self._folded = 0, RunView()

    def publish(self, event: Event, after: float = 0.0) -> None:
        """The next envelope, `after` seconds later."""
        self.time += after
        self.published.append(Envelope(len(self.published) + 1, self.time, event))

    def view(self) -> RunView:
        """The run as these envelopes leave it. Each is folded once, which takes ten times as long as a copy."""
        for envelope in self.published[self._num_folded :]:
            self._folded.apply(envelope)
        self._num_folded = len(self.published)
        return copy.deepcopy(self._folded)

    def copied(self) -> Story:
        """One that goes on by itself."""
        story = copy.copy(self)
        story._folded = self.view()
        story._num_folded = self._num_folded
        story.published, story.chance = [*self.published], copy.deepcopy(self.chance)
        return story

    def begin(self, *names: str, max_steps: int = 500_000, algorithm: str = "ppo", environment: str = "") -> None:
        """The run and its behaviors start."""
        versions = {"torch": "2.13.0", "gymnasium": "1.4.0"}
        self.publish(RunStarted("walker-ppo", "results/walker-ppo", 1, "cpu", False, versions))
        self.publish(RunStateChanged("training"), after=1.4)
        for name in names:
            started_in = environment or f"gymnasium:{name}-v5"
            self.publish(BehaviorStarted(name, algorithm, started_in, 0, max_steps, 8, 9347, True))
            self.publish(BehaviorStateChanged(name, "training"))

    def devices(self, *gpus: Gpu, note: str = "no NVIDIA driver") -> None:
        """The machine, with as many GPUs as given."""
        sample = DevicesSampled(
            gpus, "" if gpus else note, 38.4, 16, 12 * GIB, 128 * GIB, int(1.3 * GIB), 402 * GIB, 915 * GIB
        )
        self.publish(sample)

    def busy_devices(self, *gpus: Gpu, seconds: int = 120) -> None:
        """The machine over some time: devices busy in turns."""
        for second in range(seconds):
            wave = math.sin(second / 9)
            now = [
                replace(gpu, utilization_percent=min(100.0, max(0.0, (gpu.utilization_percent or 0) + 18 * wave)))
                for gpu in gpus
            ]
            self.time += 1.0
            self.devices(*now)

    def train(self, name: str, reports: int, last_step: int, reward_to: float, seconds: float = 1.0) -> None:
        """`reports` progress reports with a noisy rise of the reward."""
        for report in range(1, reports + 1):
            step = last_step * report // reports
            rise = reward_to * (1 - math.exp(-4 * report / reports)) / (1 - math.exp(-4))
            reward = rise + self.chance.gauss(0, abs(reward_to) * 0.08)
            rate = last_step / (reports * seconds)
            self.publish(ProgressReported(name, step, step + 1024, rate, step // 2048), after=seconds)
            self.publish(EpisodesFinished(name, step, 4, reward, reward - 40, reward + 40, 200 + 0.7 * reward))
            if report % max(1, reports // 30) == 0:
                self.publish(self._summary(name, step, report / reports, rise))
        self.publish(TimeSplit(name, 61.0, 14.0, 20.0, 0.0, 5.0))

    def _summary(self, name: str, step: int, share: float, reward: float) -> MetricsReported:
        metrics = {
            "Environment/Cumulative Reward": reward,
            "Environment/Episode Length": 200 + 0.7 * reward + self.chance.gauss(0, 9),
            "Losses/Policy Loss": -0.02 * (1 - share) + self.chance.gauss(0, 0.002),
            "Losses/Value Loss": 3 * math.exp(-3 * share) + abs(self.chance.gauss(0, 0.1)),
            "Policy/Entropy": 1.4 - 0.9 * share + self.chance.gauss(0, 0.02),
            "Policy/KL Divergence": 0.012 + abs(self.chance.gauss(0, 0.002)),
            "Policy/Clip Fraction": 0.11 + abs(self.chance.gauss(0, 0.01)),
            "Policy/Learning Rate": 3e-4 * (1 - 0.32 * share),
            "Policy/Epsilon": 0.2 - 0.032 * share,
            "Policy/Beta": 0.005,
            "Policy/Extrinsic Value Estimate": 0.8 * reward,
        }
        return MetricsReported(name, step, self.time - START, metrics, reward, 12.0, self._returns(reward), True)

    def _returns(self, reward: float) -> Histogram:
        """120 episodes around the mean, in 30 bins."""
        values = sorted(self.chance.gauss(reward, abs(reward) * 0.1 + 1) for _ in range(120))
        low, high = values[0], values[-1]
        limits = [low + (high - low) * (at + 1) / 30 for at in range(30)]
        up_to = [0, *(bisect_right(values, limit) for limit in limits)]
        counts = [float(up_to[at + 1] - up_to[at]) for at in range(30)]
        return Histogram(low, high, 120, sum(values), sum(v * v for v in values), tuple(limits), tuple(counts))

    def save(self, name: str, step: int, reward: float, is_best: bool = False, seconds_later: float = 0.0) -> None:
        """A checkpoint."""
        path = f"results/walker-ppo/{name}/checkpoints/{name}-{step:09}"
        saved = CheckpointSaved(name, step, path, "interval", reward, is_best, 12 * 1024**2, 0.4)
        self.publish(saved, after=seconds_later)


def empty() -> Story:
    """Nothing yet but what the configuration says."""
    return Story()


def starting_view() -> RunView:
    """What the caller hands over before the engine exists."""
    view = RunView()
    view.behaviors["CartPole"] = BehaviorView("CartPole", algorithm="ppo", max_steps=100_000)
    return view


def warming_up() -> Story:
    """The engine runs; no episode has ended."""
    story = Story()
    story.begin("Walker")
    story.devices()
    story.publish(ProgressReported("Walker", 0, 12_400, 300.0, 0), after=41)
    return story


def healthy(number: int = 1, gpus: int = 0, environment: str = "") -> Story:
    """`number` behaviors train well."""
    return _healthy(number, gpus, environment).copied()


@functools.cache
def _healthy(number: int, gpus: int, environment: str) -> Story:
    story = Story()
    base = ("Walker", "Crawler", "Hopper", "HalfCheetah", "Ant", "Pusher", "Reacher", "Swimmer", "Humanoid", "Push")
    names = [*base, "Worm", LONG_NAME][:number]
    story.begin(*names, environment=environment)
    for index, name in enumerate(names):
        goal = (412.0, -250.0, 1900.0)[index % 3]
        story.train(name, 240 if number <= 3 else 60, 160_000 + 7_000 * index, goal)
        for part in (1, 2, 3):
            story.save(name, 50_000 * part, goal * part / 3, is_best=part == 3, seconds_later=20)
    story.publish(LogEmitted("warning", names[0], "entropy 0.003: the policy may have collapsed"), after=3)
    story.publish(LogEmitted("info", "run", "keep_checkpoints 5: the oldest one is removed"), after=2)
    gib = GIB
    used = [Gpu(i, "NVIDIA H200", 74.0 - 70 * i, 31 * gib, 139 * gib, 61.0, 412.0, 700.0, i == 0) for i in range(gpus)]
    story.busy_devices(*used)
    return story


def eventful() -> Story:
    """A curriculum, self-play, warnings, a change by hand, a note, a checkpoint a while ago."""
    story = healthy(2)
    hyperparameters = {"learning_rate": 3e-4, "beta": 0.005, "epsilon": 0.2, "num_epoch": 3.0}
    story.publish(HyperparametersReported("Walker", hyperparameters))
    for lesson, name in enumerate(("Flat", "Slopes", "Hills"), start=1):
        story.publish(LessonChanged("Walker", 45_000 * lesson, "terrain", lesson, 5, name), after=4)
    story.publish(MetricsReported("Crawler", 166_000, 900.0, {"Self-play/ELO": 1240.3}, None, None, None, True))
    story.publish(HyperparameterChanged("Walker", 151_000, "learning_rate", 3e-4, 1e-4), after=3)
    story.publish(NoteAdded("lower rate after the second plateau", "Walker"), after=2)
    collapse = "entropy 0.003 since step 120k, near zero: the policy may have collapsed"
    story.publish(
        WarningRaised("entropy_collapse", "Walker", collapse, "raise beta, or roll back to an earlier checkpoint")
    )
    story.publish(
        WarningRaised("disk_filling", "", "disk full in 40 minutes at this rate", "lower keep_checkpoints"), after=5
    )
    return story


TERRAIN = ParameterStatus(
    "lessons", "uniform from 0.4 to 0.8", 3, 5, "Hills", "Walker", "reward", 411.7, 450.0, 60, 100, require_reset=True
)
PARAMETERS = {
    "terrain": TERRAIN,
    "wall_height": ParameterStatus("lessons", "0.5", 1, 3, "Low", "Crawler", "progress", 0.334, 0.5, 3, 0),
    "obstacles": ParameterStatus("lessons", "12", 4, 4, "Many"),
    "torso_mass": ParameterStatus("sampler", "normal, mean 3.5, st. dev. 0.4"),
    "gravity": ParameterStatus("number", "9.81"),
}


def lessons() -> Story:
    """Environment parameters of every kind, with lessons that two behaviors decide on."""
    story = healthy(2)
    for lesson, name in enumerate(("Slopes", "Hills"), start=2):
        story.publish(LessonChanged("Walker", 45_000 * lesson, "terrain", lesson, 5, name), after=4)
    story.publish(LessonChanged("Crawler", 150_000, "obstacles", 4, 4, "Many"), after=4)
    story.publish(ParametersReported(PARAMETERS), after=1)
    return story


def soft() -> Story:
    """Soft actor-critic beside another algorithm: a replay buffer, metrics of its own, and evaluations."""
    story = healthy(1)
    begin_soft(story, "Pendulum")
    for part in range(1, 21):
        step = 4_000 * part
        reward = -1400 + 1250 * (1 - math.exp(-part / 4))
        story.publish(ProgressReported("Pendulum", step, step + 1, 82.0, step - 1000), after=49)
        story.publish(EpisodesFinished("Pendulum", step, 20, reward, reward - 90, reward + 90, 200.0))
        story.publish(
            MetricsReported("Pendulum", step, story.time - START, _soft_metrics(step), reward, 60.0, None, True)
        )
        if part % 4 == 0:
            found = reward + 24 - 70 * (part == 20)
            story.publish(EvaluationReported("Pendulum", step, found, 61.25, 10, 200.0, 1.2), after=1)
            story.save("Pendulum", step, found, is_best=part < 20)
    story.publish(TimeSplit("Pendulum", 61.0, 104.0, 790.0, 0.0, 22.0))
    story.publish(ProgressReported("Walker", 165_000, 165_000, 2400.0, 80), after=1)
    return story


def cloned(*, is_evaluated: bool = False) -> Story:
    """A behavior that learns from demonstrations alone; with evaluations, the newest is the best."""
    story = Story()
    story.publish(RunStarted("walker-bc", "results/walker-bc", 1, "cpu", False, {}))
    story.publish(RunStateChanged("training"), after=1.4)
    started = BehaviorStarted(
        "Walker", "bc", "gymnasium:Walker-v5", 0, 200_000, 0, 9347, False, headline_metrics=(HELD_OUT, LOSS)
    )
    story.publish(replace(started, learns_offline=True))
    story.publish(BehaviorStateChanged("Walker", "training"))
    for step in range(10_000, 130_000, 10_000):
        loss = 0.02 + 0.4 * math.exp(-step / 30_000)
        story.publish(ProgressReported("Walker", step, 0, 10_000.0, step // 1000, step), after=1.0)
        metrics = {LOSS: loss, HELD_OUT: 1.3 * loss + step / 1e6, "Policy/Learning Rate": 1e-3 * (1 - step / 200_000)}
        story.publish(MetricsReported("Walker", step, step / 10_000, metrics, None, None, None, True))
        if step % 40_000 == 0:
            mean = step / 400 if is_evaluated else None
            if mean is not None:
                story.publish(EvaluationReported("Walker", step, mean, 12.5, 10, 400.0, 1.0))
            path = f"results/walker-bc/Walker/checkpoints/Walker-{step}"
            best = is_evaluated or step <= 80_000
            saved = CheckpointSaved("Walker", step, path, "interval", mean, best, 59_000, 0.1)
            story.publish(replace(saved, held_out_loss=metrics[HELD_OUT]))
    return story


def begin_soft(story: Story, name: str) -> None:
    """A behavior that keeps 50 000 steps, and learns from step 1000 on."""
    begun = BehaviorStarted(name, "sac", f"gymnasium:{name}-v1", 0, 100_000, 1, 204_547, False, 50_000, 2_200_000, 1000)
    story.publish(begun, after=1)
    values = {"learning_rate": 3e-4, "tau": 5e-3, "steps_per_update": 1.0, "target_entropy": -1.0}
    story.publish(HyperparametersReported(name, values))
    story.publish(BehaviorStateChanged(name, "training"))


def _soft_metrics(step: int) -> dict[str, float]:
    return {
        "Environment/Cumulative Reward": -150.0,
        "Environment/Episode Length": 200.0,
        "Losses/Policy Loss": 83.2 - step / 2000,
        "Losses/Q1 Loss": 4.31 * math.exp(-step / 50_000),
        "Losses/Q2 Loss": 4.27 * math.exp(-step / 50_000),
        "Losses/Value Loss": 2.2 * math.exp(-step / 50_000),
        "Policy/Continuous Entropy Coeff": 0.4 * math.exp(-step / 30_000),
        "Policy/Entropy": -0.93,
        "Policy/Extrinsic Value": -81.5,
        "Policy/Learning Rate": 3e-4,
        "Policy/Replay Steps": min(50_000.0, step),
    }


def filling() -> Story:
    """Soft actor-critic before its first update, and before the end of its first episode."""
    story = Story()
    story.begin()
    begin_soft(story, "Pendulum")
    story.publish(ProgressReported("Pendulum", 412, 412, 800.0, 0), after=1)
    story.devices()
    return story


def hot_gpu() -> Story:
    """One device near its limit, one that reports nothing, and a disk that is nearly full."""
    story = healthy(1)
    hot = Gpu(0, "NVIDIA H200", 99.0, 138 * GIB, 139 * GIB, 91.0, 698.0, 700.0, True)
    silent = Gpu(1, "GPU", None, None, None, None, None, None, False)
    story.publish(DevicesSampled((hot, silent), "", 97.0, 16, 120 * GIB, 128 * GIB, 90 * GIB, GIB, 915 * GIB))
    return story


def paused() -> Story:
    """One of three is paused."""
    story = healthy(3)
    story.publish(BehaviorStateChanged("Crawler", "paused"))
    return story


def nan() -> Story:
    """The reward stopped being a number, and the behavior with it."""
    story = Story()
    story.begin("Walker", "Crawler")
    story.train("Walker", 120, 80_000, 412.0)
    story.train("Crawler", 120, 80_000, 100.0)
    story.devices()
    for part in range(6):
        story.publish(EpisodesFinished("Walker", 81_000 + part * 500, 1, math.nan, math.nan, math.nan, 10.0))
    story.save("Walker", 80_000, 380.0, is_best=True)
    reason = "Losses/Value Loss is nan in update 41; last finite state kept at step 80000"
    story.publish(BehaviorStateChanged("Walker", "failed", reason))
    return story


def environment_failed() -> Story:
    """A worker died; its behavior ended, the other trains on."""
    story = healthy(2)
    reason = "worker 3 exited with code -9 while stepping environment 12"
    story.publish(EnvironmentFailed("gymnasium:Walker-v5", ("Walker",), reason, TRACEBACK))
    story.publish(BehaviorStateChanged("Walker", "failed", reason))
    return story


PRESS_PLAY = "Press Play in the Unity Editor, which connects to port 5004"


def awaiting_editor() -> Story:
    """Nothing trains before Play is pressed in the Editor."""
    story = Story()
    story.begin()
    story.publish(EnvironmentAwaits("unity:editor", PRESS_PLAY), after=1)
    story.devices()
    return story


def play_stopped() -> Story:
    """Play was stopped in the Editor while two behaviors trained."""
    story = healthy(2, environment="unity:editor")
    story.publish(EnvironmentAwaits("unity:editor", PRESS_PLAY))
    story.time += 40
    return story


def restarting() -> Story:
    """One of three players is being restarted, another was before."""
    story = healthy(2, environment=PLAYER)
    exited = f"{PLAYER}, instance 0, worker 0: the player exited with code 1"
    story.publish(EnvironmentRestarting(PLAYER, 0, ("Walker", "Crawler"), exited, "", 1))
    story.publish(EnvironmentRestarted(PLAYER, 0, 2.4), after=2.4)
    crashed = f"{PLAYER}, instance 2, worker 2: the player was killed by SIGSEGV"
    story.publish(EnvironmentRestarting(PLAYER, 2, ("Walker", "Crawler"), crashed, TRACEBACK, 1), after=30)
    return story


def workers() -> Story:
    """Three players, one of which is being restarted, and two workers whose agents act in the training process."""
    story = restarting()
    waiting, memory = (0.31, 0.05, 0.28), 212 << 20
    for second in range(200):
        story.publish(
            WorkersSampled(
                PLAYER,
                ("Walker", "Crawler"),
                tuple(
                    Worker(
                        number,
                        41_230 + number,
                        400.0 + 60 * math.sin(second / 20 + number) if number != 2 else 380.0 * 0.98**second,
                        waiting[number],
                        None if number == 2 else 1,
                        (1, 0, 1)[number],
                        memory + (number << 24),
                    )
                    for number in range(3)
                ),
            ),
            after=1,
        )
    others = tuple(Worker(number, 41_300 + number, None, None, None, 0, 54 << 20) for number in range(2))
    story.publish(WorkersSampled("gymnasium:Pendulum-v1", ("Pendulum",), others))
    return story


def ranks(
    *hosts: str, device: str = "cuda:{}", slow: int | None = None, gpus: int = 0, seconds: int = 60, domain: str = ""
) -> Story:
    """One rank per host in their order, reporting for so long. slow: the rank that the others wait for; gpus: of each
    machine."""
    story = healthy(1, gpus)
    for at in range(0, seconds, 2):
        statuses = []
        for number, host in enumerate(hosts):
            is_first_there = hosts.index(host) == number and host != hosts[0]
            waiting = 0.02 if number == slow else (0.04 if slow is None else 0.4) + 0.02 * math.sin(at + number)
            speed = (667.0 + 20 * math.sin(at / 10 + number)) / len(hosts)
            devices = machine_of(gpus, at + number) if is_first_there else None
            there = device.format(hosts[:number].count(host))
            statuses.append(RankStatus(number, host + domain, there, speed, waiting, devices))
        story.publish(RanksReported(tuple(statuses)), after=2)
    return story


def machine_of(num_gpus: int, at: int) -> DevicesSampled:
    """What another machine has at some time."""
    gpus = tuple(
        Gpu(index, "NVIDIA H200", 60 + 30 * math.sin(at + index), 31 * GIB, 139 * GIB, 61.0, 412.0, 700.0, index < 2)
        for index in range(num_gpus)
    )
    cpu = 40 + 20 * math.sin(at)
    return DevicesSampled(
        gpus, "" if gpus else "no NVIDIA driver", cpu, 32, 60 * GIB, 256 * GIB, GIB, 700 * GIB, 915 * GIB
    )


def huge() -> Story:
    """Rewards of 1e12 and steps of 1e11."""
    story = Story()
    story.begin(LONG_NAME, max_steps=10**12)
    story.train(LONG_NAME, 200, 123_456_789_012, 1.2345e12)
    story.devices()
    return story


def finished(number: int = 1) -> Story:
    """Every behavior reached max_steps."""
    story = healthy(number)
    names = list(story.view().behaviors)
    for name in names:
        story.publish(ProgressReported(name, 500_000, 500_000, 0.0, 244))
        story.save(name, 500_000, 440.0, is_best=True)
        story.publish(PolicyExported(name, 500_000, f"results/walker-ppo/{name}.onnx", 1e-6, 0.9), after=1)
        story.publish(BehaviorStateChanged(name, "finished"))
    story.publish(RunStateChanged("finished", exit_code=0))
    return story


def stopped() -> Story:
    """The user ended the run and saved it."""
    story = healthy(1)
    story.publish(RunStateChanged("stopping", "saving"))
    story.save("Walker", 160_000, 403.0)
    story.publish(BehaviorStateChanged("Walker", "stopped"))
    story.publish(RunStateChanged("stopped", "everything is saved", exit_code=130))
    return story


def failed() -> Story:
    """The run ended badly."""
    story = environment_failed()
    story.publish(BehaviorStateChanged("Crawler", "finished"))
    story.publish(
        RunStateChanged("failed", "an environment failed for good: worker 3 exited with code -9", exit_code=3)
    )
    return story
