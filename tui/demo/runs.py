"""The demo's folder of earlier runs: the same story with other settings, made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.messages import Envelope, Event, Stop
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.summaries import BehaviorSummary, Removal, RunSummary
from rl_tui.engine.session.view import RunView
from rl_tui.tui.demo.script import CAST, Role, configuration
from rl_tui.tui.demo.story import Story

MADE_UP = "the demo's runs are made up and have no folder"
BEAT_SECONDS = 60.0
MAX_BEATS = 600


@dataclass(frozen=True, slots=True)
class PastRun:
    """One earlier run. began_ago: seconds before the demo; hours: after which it ended, if not by itself before.

    values: what its file said instead of the usual, by behavior; loses: what its environment died of.
    """

    run_id: str
    seed: int
    names: tuple[str, ...]
    began_ago: float
    hours: float = 24.0
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    loses: str = ""

    @property
    def roles(self) -> list[Role]:
        """Who played."""
        return [role for role in CAST if role.name in self.names]

    def hyperparameters(self) -> dict[str, dict[str, float]]:
        """What every behavior began with."""
        return {role.name: {**role.hyperparameters, **self.values.get(role.name, {})} for role in self.roles}


HOUR = 3600.0
PAST_RUNS = (
    PastRun("crawler-entropy", 3, ("Crawler",), 9 * HOUR, values={"Crawler": {"target_entropy": -20.0}}),
    PastRun(
        "all-three",
        4,
        ("Walker", "Crawler", "Swimmer"),
        21 * HOUR,
        2.6,
        loses="worker 3: the process was killed by SIGKILL in step",
    ),
    PastRun("walker-bold", 5, ("Walker",), 26 * HOUR, 1.1, values={"Walker": {"learning_rate": 1.5e-3}}),
    PastRun("swimmer-night", 6, ("Swimmer",), 33 * HOUR),
)


class DemoRuns:
    """What Context.runs wants: the run that goes on, whose events `live` gives, and before it those of PAST_RUNS."""

    def __init__(self, now: float, live: Callable[[], Sequence[Envelope]], live_configuration: str, run_id: str):
        self._now, self._live, self._live_configuration, self._run_id = now, live, live_configuration, run_id
        self._recorded: dict[str, list[Envelope]] = {}

    def runs(self) -> list[RunSummary]:
        """All of them, newest first."""
        return [_summary(self._events(name)) for name in (self._run_id, *(run.run_id for run in PAST_RUNS))]

    def events(self, name: str) -> Iterator[Envelope]:
        """The events of one run. Raises ValueError when there is none of that name."""
        yield from self._events(name)

    def configuration(self, name: str) -> str:
        """What its file would say. Raises ValueError when there is none of that name."""
        if name == self._run_id:
            return self._live_configuration
        run = _past_run(name)
        return configuration(run.roles, run.seed, run.hyperparameters())

    def preview_removal(self, name: str) -> Removal:
        """Raises ConfigError."""
        raise ConfigError(MADE_UP)

    def remove(self, name: str) -> None:
        """Raises ConfigError."""
        raise ConfigError(MADE_UP)

    def resume_command(self, name: str) -> tuple[str, ...]:
        """Raises ConfigError."""
        raise ConfigError(MADE_UP)

    def evaluate_command(self, name: str) -> tuple[str, ...]:
        """Raises ConfigError."""
        raise ConfigError(MADE_UP)

    def _events(self, name: str) -> Sequence[Envelope]:
        if name == self._run_id:
            return self._live()
        if name not in self._recorded:
            self._recorded[name] = record(_past_run(name), self._now)
        return self._recorded[name]


def record(run: PastRun, now: float) -> list[Envelope]:
    """Everything that happened in it."""
    events: list[Envelope] = []

    def keep(event: Event) -> None:
        events.append(Envelope(len(events) + 1, story.time, event))

    story = Story(keep, now - run.began_ago, run.roles, run.seed, run.run_id)
    for name, values in run.hyperparameters().items():
        story.actors[name].values.update(values)
    story.begin()
    beats = min(MAX_BEATS, round(run.hours * HOUR / BEAT_SECONDS))
    for _ in range(beats):
        story.pass_time(BEAT_SECONDS, BEAT_SECONDS)
    if run.loses:
        story.lose_environments(run.loses)
    elif not story.is_over:
        story.obey(Stop("checkpoint", id="past"))
        story.pass_time(BEAT_SECONDS, BEAT_SECONDS)
    return events


def _past_run(name: str) -> PastRun:
    for run in PAST_RUNS:
        if run.run_id == name:
            return run
    raise ValueError(f"{name}: the demo has no run of that name")


def _summary(events: Iterable[Envelope]) -> RunSummary:
    view = RunView()
    for envelope in events:
        view.apply(envelope)
    behaviors = tuple(
        BehaviorSummary(
            name=each.name,
            algorithm=each.algorithm,
            step=each.step,
            max_steps=each.max_steps,
            best_return=each.best_return,
            last_return=each.mean_return,
        )
        for each in view.behaviors.values()
    )
    run_id, path = (view.run.run_id, view.run.path) if view.run is not None else ("", "")
    started_at = view.started_at if view.started_at is not None else view.now
    is_alive = view.state not in ENDS
    return RunSummary(
        run_id, path, view.state, is_alive, started_at, view.now, view.now - started_at, behaviors, view.exit_code, ""
    )
