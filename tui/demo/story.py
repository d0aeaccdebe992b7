"""The story of a run that never was: behaviors pretend to train, and obey every command as a real run would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from rl_tui.engine.session.health.monitor import HealthMonitor
from rl_tui.engine.session.messages import (
    AddNote,
    CheckpointReason,
    Command,
    CommandAsked,
    CommandFinished,
    Envelope,
    EnvironmentFailed,
    Event,
    ExportPolicy,
    LogEmitted,
    NoteAdded,
    Pause,
    Resume,
    RollBack,
    RunStarted,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from rl_tui.engine.session.states import ENDS, RunState
from rl_tui.engine.version import VERSION
from rl_tui.tui.demo.actor import Actor
from rl_tui.tui.demo.jobs import Job, Jobs, Outcome
from rl_tui.tui.demo.lessons import LEARNER, Lessons
from rl_tui.tui.demo.machine import Machine
from rl_tui.tui.demo.script import CHATTER, CHATTER_SECONDS, CHATTER_WEIGHTS, Role, cues, health_of, refusal, sources
from rl_tui.tui.demo.workers import WORKED, Workers

PAST_BEAT_SECONDS = 30.0  # while the past is played; more if it is long
PAST_BEATS = 1500
STOP_SECONDS = 0.9  # real ones that the last checkpoint of a behavior takes
END_SECONDS = 2.0  # real ones from the end of the last behavior to the end of the run
NOTE_LENGTH = 1000


class Story:
    """Owns everything that happens; `publish` gets each event. Nothing here knows a thread or a clock.

    time: of the story, in Unix seconds. Saving and the like take real seconds, however fast the story goes. The same
    seed, times and commands give the same story.
    """

    def __init__(
        self, publish: Callable[[Event], None], began_at: float, roles: Iterable[Role], seed: int, run_id: str
    ) -> None:
        self.time = self.began_at = began_at
        self.state: RunState = "starting"
        self.exit_code = 1
        self._publish_outside, self._seed, self._run_id = publish, seed, run_id
        self._num_published = 0
        self._chance = Random(f"{seed}")
        self.actors = {role.name: Actor(role, run_id, Random(f"{seed} {role.name}")) for role in roles}
        self._machine = Machine(Random(f"{seed} machine"))
        self._health = HealthMonitor(health_of)
        self._workers = Workers(self.actors[WORKED], Random(f"{seed} workers")) if WORKED in self.actors else None
        self._lessons = Lessons() if LEARNER in self.actors else None
        self._jobs = Jobs()
        self._stops: list[Stop] = []
        self._ending_seconds = END_SECONDS
        self._chatter_at = began_at + CHATTER_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the last state was published."""
        return self.state in ENDS

    def begin(self) -> None:
        """The run and its behaviors are there."""
        versions = {"rl-tui": VERSION}
        where = sources([actor.role for actor in self.actors.values()])
        self._publish(RunStarted(self._run_id, self._run_id, self._seed, "cuda", False, versions, where))
        self._publish(LogEmitted("info", "run", "a demo: nothing trains, and nothing is written to disk"))
        self._enter("training")
        for actor in self.actors.values():
            self._publish_all(actor.begin())
        if self._lessons is not None:
            self._publish(self._lessons.report())

    def play_past(self, hours: float) -> None:
        """So many hours go by at once, with what the user did meanwhile."""
        end, beat = self.time + hours * 3600, max(PAST_BEAT_SECONDS, hours * 3600 / PAST_BEATS)
        acts = cues(list(self.actors), hours)
        while self.time < end and not self.is_over:
            self.pass_time(min(beat, end - self.time), beat)
            while acts and self.began_at + acts[0][0] <= self.time:
                _, act = acts.pop(0)
                self._publish(CommandAsked(act.id, type(act).__name__, act.behavior))
                self.obey(act)

    def pass_time(self, seconds: float, real_seconds: float) -> None:
        """The story goes on by `seconds`, and whatever takes real time by `real_seconds`."""
        if self.is_over:
            return
        self.time += seconds
        for actor in self.actors.values():
            if actor.state == "training" and not self._stops:
                self._train(actor, seconds)
        self._sample(seconds)
        self._chat()
        for command, outcome in self._jobs.advance(real_seconds):
            self._finish(command, *outcome)
        self._end_when_done(real_seconds)

    def _train(self, actor: Actor, seconds: float) -> None:
        before = actor.step // actor.role.checkpoint_interval
        events = list(actor.train(seconds, self.time - self.began_at))
        self._publish_all(events)
        if self._lessons is not None and actor.role.name == LEARNER:
            self._publish_all(self._lessons.follow(events))
        if actor.step >= actor.role.max_steps:
            self._publish_all(actor.enter("finished"))
            self._jobs.put(Job(0.6, partial(self._save, actor, "final", 0.6)))
        elif actor.step // actor.role.checkpoint_interval > before:
            self._jobs.put(Job(0.3, partial(self._save, actor, "interval", 0.3)))

    def _sample(self, seconds: float) -> None:
        self._publish(self._machine.sample(len(self._training()), seconds))
        if self._workers is not None and self._workers.actor in self._training():
            self._publish(self._workers.sample(seconds))

    def _chat(self) -> None:
        """A line of log now and then."""
        training, chance = self._training(), self._chance
        if self.time < self._chatter_at or not training:
            return
        self._chatter_at = self.time + chance.expovariate(1 / CHATTER_SECONDS)
        level, text = chance.choices(CHATTER, CHATTER_WEIGHTS)[0]
        name = chance.choice(training).role.name
        self._publish(LogEmitted(level, name, text.format(digit=chance.randint(2, 9), small=chance.randint(40, 90))))

    def _end_when_done(self, real_seconds: float) -> None:
        if len(self._jobs) or not all(actor.is_over for actor in self.actors.values()):
            return
        self._ending_seconds -= real_seconds
        if self._stops or self._ending_seconds <= 0:
            self._end()

    def _end(self) -> None:
        """Every command has its outcome, and the last state is published."""
        for command in self._jobs.cancel_all():
            self._finish(command, False, "the run is over")
        has_saved = all(stop.mode == "checkpoint" for stop in self._stops)
        for stop in self._stops:
            self._finish(stop.id, True, "stopped")
        reason = "" if not self._stops else "everything is saved" if has_saved else "without saving"
        self.exit_code = next((stop.exit_code for stop in self._stops if stop.exit_code), 0)
        self._enter("stopped" if self._stops else "finished", reason, self.exit_code)

    def lose_environments(self, reason: str) -> None:
        """Every environment is gone for good, and the run has failed."""
        for actor in self._alive():
            self._publish(EnvironmentFailed(actor.role.environment, (actor.role.name,), reason))
            self._save(actor, "error", 0.3)
            self._publish_all(actor.enter("failed", reason))
        self.exit_code = 3
        self._enter("failed", reason, self.exit_code)

    def obey(self, command: Command) -> None:
        """Do what is asked, now or in a moment; exactly one outcome is published."""
        if self.is_over:
            self._finish(command.id, False, "the run is over")
        elif isinstance(command, Stop):
            self._halt(command)
        elif self._stops:
            self._finish(command.id, False, "the run is stopping")
        elif command.behavior is not None and command.behavior not in self.actors:
            self._finish(command.id, False, f"there is no behavior {command.behavior}")
        else:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Pause():
                self._pause(command)
            case Resume():
                self._resume(command)
            case SaveCheckpoint():
                for actor in self._concerned(command.behavior):
                    seconds = self._chance.uniform(0.3, 1.0)
                    self._jobs.put(Job(seconds, partial(self._save, actor, "asked", seconds), command.id))
            case ExportPolicy():
                for actor in self._concerned(command.behavior):
                    seconds = self._chance.uniform(0.3, 0.8)
                    self._jobs.put(Job(seconds, partial(self._export, actor, seconds), command.id))
            case SetHyperparameter() | SetLesson() | AddNote():
                self._finish(command.id, *self._do_now(command))
            case RollBack():
                self._jobs.put(Job(0.5, partial(self._roll_back, command), command.id))

    def _do_now(self, command: SetHyperparameter | SetLesson | AddNote) -> Outcome:
        match command:
            case SetHyperparameter():
                return self._set(command)
            case SetLesson():
                return self._set_lesson(command)
            case AddNote():
                return self._note(command)

    def _halt(self, stop: Stop) -> None:
        """Of several stops, the first exit code but 0 counts, and the hastiest mode."""
        is_first, saves = not self._stops, stop.mode == "checkpoint"
        self._stops.append(stop)
        if is_first or not saves:
            self._enter("stopping", "saving" if saves else "")
        if not saves:
            for actor in self._alive():
                self._publish_all(actor.enter("stopped"))
            self._end()
        elif is_first:
            for actor in self._alive():
                self._jobs.put(Job(STOP_SECONDS, partial(self._save_and_leave, actor)))

    def _pause(self, command: Pause) -> None:
        actors = [actor for actor in self._concerned(command.behavior) if not actor.is_over]
        for actor in actors:
            if actor.state == "training":
                self._publish_all(actor.enter("paused"))
        names = ", ".join(actor.role.name for actor in actors)
        self._finish(command.id, bool(actors), f"{names} paused" if actors else "nothing trains")
        self._follow_behaviors()

    def _resume(self, command: Resume) -> None:
        actors = [actor for actor in self._concerned(command.behavior) if actor.state == "paused"]
        for actor in actors:
            self._publish_all(actor.enter("training"))
        names = ", ".join(actor.role.name for actor in actors)
        self._finish(command.id, bool(actors), f"{names} training" if actors else "nothing is paused")
        self._follow_behaviors()

    def _follow_behaviors(self) -> None:
        """The run is paused when all that is not over is."""
        alive = self._alive()
        state: RunState = "paused" if alive and all(actor.state == "paused" for actor in alive) else "training"
        if state != self.state:
            self._enter(state)

    def _set(self, command: SetHyperparameter) -> Outcome:
        actor = self.actors[command.behavior]
        if actor.is_over:
            return False, f"{command.behavior} has ended"
        reason = refusal(actor.role, command.name, command.value)
        if reason:
            return False, reason
        old = actor.values[command.name]
        self._publish_all(actor.set(command.name, command.value))
        return True, f"{command.name} {old:.6g} -> {command.value:.6g} from step {actor.step}"

    def _set_lesson(self, command: SetLesson) -> Outcome:
        if self._lessons is None:
            return False, "the run has no environment parameters"
        events, outcome = self._lessons.set(command)
        self._publish_all(events)
        return outcome

    def _note(self, command: AddNote) -> Outcome:
        text = command.text.strip()
        if not text:
            return False, "the note is empty"
        if len(text) > NOTE_LENGTH:
            return False, f"the note has {len(text)} characters, must have at most {NOTE_LENGTH}"
        self._publish(NoteAdded(text, command.behavior))
        return True, text

    def _save(self, actor: Actor, reason: CheckpointReason, seconds: float) -> Outcome:
        """A checkpoint, and as in a real run its policy beside it."""
        self._machine.write(actor.checkpoint_bytes)
        self._publish_all(actor.save(reason, 0.7 * seconds))
        self._publish(actor.export(0.3 * seconds))
        return True, actor.checkpoints[-1].path

    def _save_and_leave(self, actor: Actor) -> Outcome:
        outcome = self._save(actor, "interrupted", STOP_SECONDS)
        self._publish_all(actor.enter("stopped"))
        return outcome

    def _export(self, actor: Actor, seconds: float) -> Outcome:
        exported = actor.export(seconds)
        self._publish(exported)
        return True, exported.path

    def _roll_back(self, command: RollBack) -> Outcome:
        actor = self.actors[command.behavior]
        snapshot = next((each for each in actor.checkpoints if each.path == command.path), None)
        if actor.is_over:
            return False, f"{command.behavior} has ended"
        if snapshot is None:
            return False, f"{command.path}: no checkpoint of {command.behavior}"
        self._publish_all(actor.roll_back(snapshot))
        if self._lessons is not None and command.behavior == LEARNER:
            self._publish_all(self._lessons.roll_back(actor.step))
        return True, f"resumed from step {actor.step}, {snapshot.path}"

    def _alive(self) -> list[Actor]:
        return [actor for actor in self.actors.values() if not actor.is_over]

    def _training(self) -> list[Actor]:
        return [actor for actor in self.actors.values() if actor.state == "training"]

    def _concerned(self, behavior: str | None) -> list[Actor]:
        return [actor for name, actor in self.actors.items() if behavior in (None, name)]

    def _enter(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        self.state = state
        self._publish(RunStateChanged(state, reason, exit_code))

    def _finish(self, command: str, is_ok: bool, message: str) -> None:
        self._publish(CommandFinished(command, is_ok, message))

    def _publish_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._publish(event)

    def _publish(self, event: Event) -> None:
        """Publish it, and the warnings that it raises or clears."""
        self._num_published += 1
        self._publish_outside(event)
        for warning in self._health.apply(Envelope(self._num_published, self.time, event)):
            self._publish_outside(warning)
