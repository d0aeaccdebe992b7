"""Plays the newest policy of one behavior to be watched, in an environment apart from training."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.process.tracebacks import name_and_text
from rl_tui.engine.running.announcements import save_traceback
from rl_tui.engine.running.evaluation.episodes import play
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.threads import Mailbox
from rl_tui.engine.running.watching.clock import PlayClock
from rl_tui.engine.running.watching.drawing_variables import drawing_variables
from rl_tui.engine.running.watching.policy import LatestPolicy, WatchedPolicy
from rl_tui.engine.running.watching.tally import WatchedTally
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.rendering import Frame
from rl_tui.engine.sampling.pools.pictures import Picture
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.watching import Pixels, Scene, SceneState, WatchCommand
from rl_tui.engine.specs import BehaviorSpec, Policy, Steps

NICENESS = 10  # a tenth of another process's share; with 19, a busy machine would never start the environment
ENDLESS = 1 << 40  # episodes
PAUSE_SECONDS = 0.5  # between checks whether watching has ended


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """One environment whose policies can be watched.

    behaviors: for each that has appeared in it, how to make a policy, and the newest weights; training adds more. logs:
    the folder for what the environment prints. output: the file for the traceback of a failure. lessons: of the run.
    """

    source: EnvironmentSource
    behaviors: dict[str, tuple[MakePolicy, LatestPolicy]]
    seed: int
    timeout: float
    logs: Path
    output: Path
    lessons: Lessons | None = None


class Viewer:
    """Runs in the thread `viewer`. Owns an environment in a process of its own with a low priority, and its policies.

    Other threads read `scenes`, and call `send`, `resize` and `end`. It has seeds of its own and logs only failures.
    is_training: whether training must be spared.
    """

    def __init__(
        self, target: WatchTarget, behavior: str, size: tuple[int, int], bus: EventBus, is_training: Callable[[], bool]
    ) -> None:
        self.scenes: Mailbox[Scene] = Mailbox()
        self._target, self._behavior, self._size, self._bus = target, behavior, size, bus
        self._is_training = is_training
        self._commands: queue.SimpleQueue[WatchCommand | None] = queue.SimpleQueue()
        self._has_ended = False
        self._is_paused, self._is_greedy, self._restarts, self._num_requested = False, True, False, 0
        self._tally = WatchedTally()
        self._policies: dict[str, WatchedPolicy] = {}
        self._pool: ProcessPool | None = None
        self._picture = Picture()
        self._clock = PlayClock()
        self._num_begun = 0
        self._lessons_version = -1

    def send(self, command: WatchCommand) -> None:
        """Carried out at once, or as soon as the environment has answered."""
        self._commands.put(command)

    def resize(self, size: tuple[int, int]) -> None:
        """Draw the newest picture again in that size."""
        self._size = size
        self._commands.put(None)

    def end(self) -> None:
        """Stop playing."""
        self._has_ended = True
        self._commands.put(None)

    def crashed(self, error: BaseException) -> None:
        """An internal error ends watching, and nothing else."""
        self._show("failed", name_and_text(error))

    def main(self) -> None:
        """Play until the end; after a failure, wait for a command to restart."""
        while not self._has_ended:
            self._show("starting")
            try:
                self._play(self._target.source.watched())
            except RlTuiError as error:
                if not self._has_ended:
                    self._recover(error)

    def _recover(self, error: RlTuiError) -> None:
        """What fails before it has shown anything is tried without pictures."""
        self._log(error)
        if not self._has_shown_anything:
            self._picture = Picture(reason=str(error))
            try:
                self._play(self._target.source)
                return
            except RlTuiError as again:
                error = again
                if self._has_ended:
                    return
                self._log(error)
        self._picture = Picture()
        self._show("failed", str(error))
        while not self._has_ended and not self._restarts:
            self._obey(PAUSE_SECONDS)
        self._restarts = False

    @property
    def _has_shown_anything(self) -> bool:
        """Also that it has no picture."""
        return self._picture.pixels is not None or bool(self._picture.text or self._picture.reason)

    def _play(self, source: EnvironmentSource) -> None:
        """Play in an environment of that source until the end. Raises RlTuiError."""
        pool = self._pool = ProcessPool(
            source,
            1,
            1,
            self._target.timeout,
            self._target.logs,
            log_name="watch",
            niceness=NICENESS,
            variables=drawing_variables(),
        )
        try:
            self._lessons_version = -1
            self._follow_lessons()
            pool.start()
            self._policies = {}
            while not self._has_ended:
                self._restarts = False
                self._tally.abandon()
                self._num_begun += 1
                play(
                    pool, self._policy_for, self._behavior, ENDLESS, self._target.seed + self._num_begun,
                    lambda: not (self._has_ended or self._restarts), self._watch,
                )  # fmt: skip
        finally:
            self._pool = None
            pool.close()

    def _policy_for(self, spec: BehaviorSpec) -> Policy:
        """The newest of a behavior that has appeared in training. Raises ConfigError for any other."""
        if spec.name not in self._target.behaviors:
            raise ConfigError(f"behavior {spec.name} has appeared, and has no policy yet")
        if spec.name not in self._policies:
            self._policies[spec.name] = WatchedPolicy(spec, *self._target.behaviors[spec.name])
            self._policies[spec.name].is_greedy = self._is_greedy
        return self._policies[spec.name]

    def _watch(self, instance: int, steps: Steps | None) -> None:
        """Show these steps, and return when it is time to act."""
        if steps is not None and self._tally.add(steps, self._policies[self._behavior]):
            self._update_policies()
            self._follow_lessons()
        self._clock.stepped(is_training=self._is_training())
        if self._is_paused or (self.scenes.is_empty and self._clock.may_draw):
            self._draw()
            self._show()
            self._clock.drew()
        while not self._has_ended and not self._restarts:
            if self._is_paused and not self._num_requested:
                self._obey(PAUSE_SECONDS)
            elif self._clock.seconds_left > 0 and not self._num_requested:
                self._obey(self._clock.seconds_left)
            else:
                break
        self._num_requested = max(0, self._num_requested - 1)
        self._clock.begin()

    def _follow_lessons(self) -> None:
        """Play the lessons that training is at."""
        lessons = self._target.lessons
        if self._pool is None or lessons is None or not lessons.has_any or self._lessons_version == lessons.version:
            return
        self._lessons_version = lessons.version
        self._pool.set_parameters(lessons.values)

    def _obey(self, seconds: float) -> None:
        """Wait that long for a command, and carry it out."""
        try:
            command = self._commands.get(timeout=seconds)
        except queue.Empty:
            return
        match command:
            case None:
                self._draw()
            case "pause" | "resume":
                self._is_paused, self._num_requested = command == "pause", 0
            case "step":
                self._is_paused, self._num_requested = True, self._num_requested + 1
            case "restart":
                self._restarts = True
            case "renew":
                self._update_policies()
            case "greedy" | "drawn":
                self._is_greedy = command == "greedy"
                self._set_greedy()
        if self._pool is not None:
            self._show()

    def _set_greedy(self) -> None:
        for policy in self._policies.values():
            policy.is_greedy = self._is_greedy

    def _update_policies(self) -> None:
        for policy in self._policies.values():
            policy.update()

    def _draw(self) -> None:
        """Render the newest picture, unless the environment has none or watching has ended."""
        if self._pool is None or self._has_ended or self._picture.reason:
            return
        began = time.monotonic()
        picture = self._pool.picture(0, *self._size, lambda: not self._has_ended)
        if picture is not None:
            self._clock.rendered(time.monotonic() - began)
            self._picture, self._clock.native_hz = picture, picture.hz
            if picture.reason:
                self._log_undrawn(picture)

    def _show(self, state: SceneState | None = None, reason: str = "") -> None:
        picture, policy = self._picture, self._policies.get(self._behavior)
        self.scenes.put(
            replace(
                self._tally.scene(self._behavior),
                at=time.monotonic(),
                state=state or ("paused" if self._is_paused else "playing"),
                reason=reason,
                pixels=None if picture.pixels is None else _pixels(picture.pixels),
                text=picture.text,
                undrawn=picture.reason,
                policy_step=None if policy is None else policy.step,
                is_greedy=self._is_greedy,
                hz=self._clock.hz,
            )
        )

    def _log(self, error: RlTuiError) -> None:
        self._warn(f"watching failed, training continues: {error}", error.detail)

    def _log_undrawn(self, picture: Picture) -> None:
        if picture.detail:
            self._warn(f"watching continues without pictures: {picture.reason}", picture.detail)

    def _warn(self, message: str, detail: str) -> None:
        self._bus.log("warning", self._behavior, message)
        if detail:
            title = f"{self._behavior}: {message}"
            save_traceback(self._bus, self._behavior, self._behavior, self._target.output, title, detail)


def _pixels(frame: Frame) -> Pixels:
    return Pixels(frame.shape[1], frame.shape[0], frame.tobytes())
