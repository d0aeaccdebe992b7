"""Plays the policies in a run's checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from rl_tui.engine.config.diagnostics import must_be_one_of, one_of
from rl_tui.engine.config.environments import has_agents
from rl_tui.engine.config.loading import load_to_act
from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.errors import CheckpointError, ConfigError
from rl_tui.engine.export.onnx_policy import OnnxPolicy
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.running.environment_reports import lines_of_reports
from rl_tui.engine.running.environments import (
    NamedEnvironment,
    make_pool_apart,
    named_environments,
    quota_of,
    settings_of,
)
from rl_tui.engine.running.evaluation.episodes import UNRECORDED, Recorder, Scores, ignore_steps, play
from rl_tui.engine.running.evaluation.named_checkpoints import find_checkpoint
from rl_tui.engine.running.evaluation.video import VideoRecorder
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.run_setup import derived_seed
from rl_tui.engine.sampling.environments.base import Environment, NoteLevel
from rl_tui.engine.sampling.environments.unity.wire.packages import misread_before
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import BehaviorSpec, Policy, State
from rl_tui.engine.storage.checkpoint_format import Checkpoint
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.file_names import CONFIGURATION
from rl_tui.engine.storage.run_folder import RunFolder

Way: TypeAlias = Literal["greedy", "sampled"]  # the likeliest actions, or those of training


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """What to play.

    behavior: None for the only one. episodes: in each way. checkpoint: "newest", "best" or a step, of that behavior;
    others in its environment use their newest. ways: one after the other. is_onnx: play the exported file, not the
    checkpoint. record: a file to show the first episodes in. demonstrations: a .demo file for the episodes of the first
    way.
    """

    behavior: str | None = None
    episodes: int
    checkpoint: str = "newest"
    seed: int
    ways: tuple[Way, ...]
    is_onnx: bool = False
    record: Path | None = None
    demonstrations: Path | None = None


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The scores of one behavior, by the way in which it acted.

    source: the checkpoint or the exported file. skipped: why newer checkpoints than the newest that verifies were not
    used, where the newest was requested.
    """

    behavior: str
    step: int
    source: Path
    scores: Mapping[Way, Scores]
    skipped: tuple[str, ...]


def ignore_return_of_way(way: Way, total: float) -> None:
    """The default of `SavedRun.play` for `on_return`."""


def ignore_note(level: NoteLevel, text: str) -> None:
    """The default of `SavedRun.play` for `on_note`."""


class SavedRun:
    """The folder of a run, live or ended. Reads it, and changes nothing."""

    def __init__(self, path: Path):
        """Raises ConfigError when its configuration cannot be read."""
        path = path if path.name not in ("", "..") else path.resolve()
        self._folder = RunFolder(path.parent.absolute(), path.name)  # an environment may change the working directory
        self._config = load_to_act(path / CONFIGURATION)

    def play(
        self,
        request: EvaluationRequest,
        on_return: Callable[[Way, float], None] = ignore_return_of_way,
        on_note: Callable[[NoteLevel, str], None] = ignore_note,
    ) -> EvaluationResult:
        """Episodes of one behavior, in the environment of the run. Raises RlTuiError.

        on_return: gets the return of each. on_note: gets lines for the user, also about players that fail.
        """
        made: list[Environment] = []
        pool, settings = self._pool(request, made), self._config.env_settings

        def pass_on_notes() -> bool:
            for level, text in lines_of_reports(pool):
                on_note(level, text)
            return True

        with ExitStack() as leaving:
            leaving.callback(pool.close)
            lessons = make_lessons(self._config, request.seed, EventBus(), self._folder)
            if lessons.has_any:
                pool.set_parameters(lessons.values)
            SIGNS.call_seconds = start_seconds(settings.timeout_wait)
            pool.start()
            SIGNS.call_seconds = settings.timeout_wait
            behavior = _only(request.behavior, self._names(pool.specs))
            acting: dict[str, _Acting] = {}  # loaded once: a run that trains removes checkpoints

            def policy_for(way: Way, spec: BehaviorSpec) -> Policy:
                if spec.name not in acting:
                    acting[spec.name] = self._acting(spec, spec.name == behavior, request, on_note)
                return acting[spec.name].make_policy(way)

            on_steps = ignore_steps
            if request.record is not None:
                on_steps = leaving.enter_context(VideoRecorder(request.record, made[0])).add
            recorder: Recorder = UNRECORDED
            if request.demonstrations is not None:
                written = EpisodeRecorder(request.demonstrations, lambda: pool.specs[behavior])
                recorder = leaving.enter_context(written)
            scores: dict[Way, Scores] = {}
            for number, way in enumerate(request.ways):
                if number and lessons.has_any:
                    pool.set_parameters(lessons.values, restart=True)  # with the same draws
                played = play(
                    pool, partial(policy_for, way), behavior, request.episodes, request.seed, pass_on_notes, on_steps,
                    partial(on_return, way), recorder,
                )  # fmt: skip
                assert played is not None, "it is never interrupted"
                scores[way], on_steps, recorder = played, ignore_steps, UNRECORDED
        skipped = tuple(reason for one in acting.values() for reason in one.skipped)
        return EvaluationResult(behavior, acting[behavior].step, acting[behavior].source, scores, skipped)

    def _pool(self, request: EvaluationRequest, made: list[Environment]) -> EnvironmentPool:
        """The run's environments, which are added to `made` when they are started in this process."""
        source = self._environment(request.behavior, request.seed).source
        if not has_agents(source.env):
            text = "it has learned from demonstrations alone, and has no environment to play in"
            raise ConfigError(f"{self._folder.path}: {text}. Give the run one when it starts, or to continue it: --env")
        if request.record is not None:
            source = source.showing_frames()

        def make(first: int, count: int) -> Sequence[Environment]:
            made.extend(source.make(first, count))
            return made

        settings = self._config.env_settings
        num_copies, quota = min(settings.num_envs, request.episodes), quota_of(settings)
        return make_pool_apart(source, make, num_copies, settings.timeout_wait, quota)

    def _names(self, specs: Mapping[str, BehaviorSpec]) -> list[str]:
        """The behaviors that can be played: those in the environment, and others with checkpoints, which may appear."""
        saved = [name for name in self._config.behaviors if self._folder.behavior(name).checkpoints.exists()]
        return list(dict.fromkeys([*specs, *saved]))

    def _environment(self, behavior: str | None, seed: int) -> NamedEnvironment:
        environments = named_environments(self._config, seed)
        if len(environments) == 1:
            return environments[0]
        name = _only(behavior, list(self._config.behaviors))
        return next(environment for environment in environments if name in environment.behaviors)

    def _acting(
        self, spec: BehaviorSpec, is_chosen: bool, request: EvaluationRequest, on_note: Callable[[NoteLevel, str], None]
    ) -> _Acting:
        state, checkpoint, skipped = self._load(spec.name, request.checkpoint if is_chosen else "newest")
        if checkpoint.spec is not None and (misread := misread_before(checkpoint.spec, spec)):
            on_note("warning", f"{spec.name}: {misread}")
        if request.is_onnx:
            path = self._exported(spec.name, checkpoint.step)
            return _Acting(lambda way: OnnxPolicy(path, spec, way == "greedy"), checkpoint.step, path, skipped)
        seed, configuration = derived_seed(request.seed), self._folder.configuration

        def make_policy(way: Way) -> Policy:
            return policy_of_checkpoint(configuration, spec, state, checkpoint, seed, way == "greedy")

        return _Acting(make_policy, checkpoint.step, checkpoint.path, skipped)

    def _exported(self, name: str, step: int) -> Path:
        """The policy exported with that checkpoint. Raises CheckpointError, naming those that have one."""
        folder = self._folder.behavior(name)
        path = folder.export(step)
        if path.exists():
            return path
        listed = CheckpointStore(folder.checkpoints, name, 0).list()
        steps = ", ".join(str(one.step) for one in listed if folder.export(one.step).exists()) or "none"
        has_both = settings_of(self._config, name).export_interval is None
        later = " The run exports its newest checkpoint at --resume." if has_both else ""
        raise CheckpointError(
            f"{path}: no exported policy for this checkpoint (--checkpoint {step}); available: {steps}.{later}"
            " Without --onnx the checkpoint itself plays."
        )

    def _load(self, name: str, which: str) -> tuple[State, Checkpoint, tuple[str, ...]]:
        """With the reasons why newer ones were skipped. Raises CheckpointError where there is no such checkpoint."""
        store = CheckpointStore(self._folder.behavior(name).checkpoints, name, 0)
        path, skipped = find_checkpoint(store, which, "--checkpoint")
        return *store.load(path), skipped


@dataclass(frozen=True, slots=True)
class _Acting:
    """How its policy is made, and where it comes from."""

    make_policy: Callable[[Way], Policy]
    step: int
    source: Path
    skipped: tuple[str, ...]


def _only(name: str | None, names: list[str]) -> str:
    """The requested behavior, or the only one. Raises ConfigError, naming those that exist."""
    if name is None and len(names) == 1:
        return names[0]
    if name not in names:
        found = f"must be given: {one_of(names)}" if name is None else must_be_one_of(names, name)
        raise ConfigError(f"--behavior: {found}")
    return name
