"""An environment that waits for a person before each action, and records what the person does."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environment_name import short_name
from rl_tui.engine.config.wrappers import Wrapper
from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.errors import DemonstrationError, RlTuiError
from rl_tui.engine.running.playing.episodes import PlayedEpisodes
from rl_tui.engine.running.playing.exchange import WAIT_SECONDS, Exchange
from rl_tui.engine.running.playing.playable import require_playable
from rl_tui.engine.running.playing.stage import Stage
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.playing import Turn
from rl_tui.engine.session.watching import SceneState
from rl_tui.engine.specs import BehaviorSpec, Steps


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """What is played, and where to. env: with its kind. kwargs, wrappers: of it. num_episodes: after how many complete
    ones the play ends; None: never by itself.

    most_choices: for which the front end has keys. timeout: seconds after which a call counts as hung.
    """

    env: str
    kwargs: Mapping[str, object]
    wrappers: tuple[Wrapper, ...]
    path: Path
    num_episodes: int | None
    seed: int
    most_choices: int
    timeout: float = 60.0


class Turns(Exchange[Turn]):
    """Implements Recorded. `main` runs in the thread `play`, and owns an environment in a process of its own, and the
    file.

    error: why the play has ended by itself. failure: of the environment, unless another one was begun since.
    num_episodes, num_steps, mean_return: of what is in the file, once the play has ended.
    """

    def __init__(self, request: PlayRequest) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.failure: RlTuiError | None = None
        self.num_episodes = self.num_steps = 0
        self.mean_return = 0.0
        self._request = request
        adaptation = Adaptation(wrappers=request.wrappers)
        source = EnvironmentSource(request.env, short_name(request.env), request.kwargs, adaptation=adaptation)
        self._stage = Stage(source, request.timeout, self)
        self._num_resets = 0
        self._spec: BehaviorSpec | None = None
        self._episodes: PlayedEpisodes | None = None

    def discard(self) -> None:
        """See Recorded."""
        self.say("discard")

    def drop_last(self) -> None:
        """See Recorded."""
        self.say("drop")

    def crashed(self, error: BaseException) -> None:
        """An internal error has ended the play; what was complete is in the file."""
        self._end(error, is_written=True)

    def main(self) -> None:
        """Play until the end. What is complete then is in the file, whatever has ended it."""
        error: RlTuiError | None = None
        is_written = False
        try:
            with contextlib.closing(EpisodeRecorder(self._request.path, self._only_spec)) as recorder:
                try:
                    self._stage.play(lambda pool: self._play_in(pool, recorder), self._wait_after)
                except RlTuiError as failure:
                    error = failure
            is_written = True
        except DemonstrationError as failure:
            error = failure
        self._end(error, is_written)

    def _end(self, error: BaseException | None, is_written: bool) -> None:
        if self._episodes is not None and is_written:
            scene = self._episodes.scene()
            self.num_episodes, self.num_steps = len(scene.returns), sum(scene.lengths)
            self.mean_return = sum(scene.returns) / max(1, len(scene.returns))
        self.error = error
        self.end()

    def _only_spec(self) -> BehaviorSpec:
        assert self._spec is not None
        return self._spec

    def _play_in(self, pool: ProcessPool, recorder: EpisodeRecorder) -> None:
        """Until the end, or until the environment fails. Raises RlTuiError."""
        request = self._request
        pool.start(lambda: self.is_finished)
        spec = require_playable(request.env, pool.specs, pool.num_agents, request.most_choices)
        if self._episodes is None:
            self._spec, self._episodes = spec, PlayedEpisodes(spec, recorder)
        self._reset(pool)
        while not self.is_finished:
            for instance, behaviors in pool.receive(WAIT_SECONDS):
                self._take_turn(pool, instance, behaviors.get(spec.name), self._episodes)

    def _reset(self, pool: ProcessPool) -> None:
        self.is_busy = True
        pool.reset(self._request.seed + self._num_resets)
        self._num_resets += 1

    def _take_turn(self, pool: ProcessPool, instance: int, steps: Steps | None, episodes: PlayedEpisodes) -> None:
        """Show where the agent is, and carry out what the person says until that leads to other steps."""
        episodes.see(steps)
        if episodes.num_complete == self._request.num_episodes:
            self.is_finished = True
            return
        if not episodes.is_waiting:
            pool.send(instance, {})
            return
        self._stage.draw(pool)
        self._show(episodes)
        for command in self.commands_until_end():
            match command:
                case int():
                    if episodes.is_allowed[command]:
                        self.is_busy = True
                        pool.send(instance, {self._only_spec().name: episodes.act(command)})
                        return
                case "discard":
                    episodes.discard()
                    self._reset(pool)
                    return
                case "drop":
                    episodes.drop_last()
                case "draw":
                    self._stage.draw(pool)
            self._show(episodes)

    def _wait_after(self, error: RlTuiError) -> None:
        """Show why the environment failed until the person asks for another episode, or for the end."""
        assert self._episodes is not None
        self._episodes.discard()
        self.failure = error
        self._show(self._episodes, "failed", str(error))
        for command in self.commands_until_end():
            if command == "discard":
                self.is_busy, self.failure = True, None  # until there is a new environment
                return
            if command == "drop":
                self._episodes.drop_last()
                self._show(self._episodes, "failed", str(error))

    def _show(self, episodes: PlayedEpisodes, state: SceneState = "playing", reason: str = "") -> None:
        spec = self._only_spec()
        names = spec.choice_names or ("",) * spec.actions.mask_size
        self.show(Turn(self._stage.drawn_in(episodes.scene(), state, reason), names, episodes.is_allowed))
