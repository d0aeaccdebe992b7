"""An environment that waits for a person before each action."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environment_name import short_name
from rl_tui.engine.config.wrappers import Wrapper
from rl_tui.engine.demonstrations.episode_recorder import EpisodeRecorder
from rl_tui.engine.errors import DemonstrationError, NotSupportedError, RlTuiError
from rl_tui.engine.running.playing.episodes import PlayedEpisodes
from rl_tui.engine.running.playing.playable import require_playable
from rl_tui.engine.running.threads import Mailbox
from rl_tui.engine.running.watching.drawing_variables import drawing_variables
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.sampling.pools.pictures import Picture
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.playing import Turn
from rl_tui.engine.session.watching import Pixels, SceneState
from rl_tui.engine.specs import BehaviorSpec, Steps

WAIT_SECONDS = 0.1  # between checks whether the play is over
RENDER_MODE = "render_mode"

PlayCommand: TypeAlias = "int | Literal['discard', 'drop', 'draw']"  # a number is a choice


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


class Turns:
    """Implements Playing. `main` runs in the thread `play`, and owns an environment in a process of its own, and the
    file.

    error: why the play has ended by itself. failure: of the environment, unless another one was begun since. is_begun:
    whether there was a turn. is_busy: see Playing. num_episodes, num_steps, mean_return: of what is in the file, once
    the play has ended.
    """

    def __init__(self, request: PlayRequest) -> None:
        self.error: BaseException | None = None
        self.failure: RlTuiError | None = None
        self.is_begun = self.is_busy = self.has_ended = False
        self.num_episodes = self.num_steps = 0
        self.mean_return = 0.0
        self._on_turn: Callable[[], None] = _ignore
        self._request = request
        self._turns: Mailbox[Turn] = Mailbox()
        self._commands: queue.SimpleQueue[PlayCommand] = queue.SimpleQueue()
        self._is_finished = False
        self._size = (1, 1)
        self._num_resets = 0
        self._picture = Picture()
        self._spec: BehaviorSpec | None = None
        self._episodes: PlayedEpisodes | None = None

    def listen(self, call: Callable[[], None]) -> None:
        """See Playing."""
        self._on_turn = call

    def pop_turn(self) -> Turn | None:
        """The newest turn, once."""
        return self._turns.pop()

    def act(self, choice: int) -> None:
        """See Playing."""
        self._commands.put(choice)

    def discard(self) -> None:
        """See Playing."""
        self._commands.put("discard")

    def drop_last(self) -> None:
        """See Playing."""
        self._commands.put("drop")

    def resize(self, size: tuple[int, int]) -> None:
        """See Playing."""
        self._size = size
        self._commands.put("draw")

    def finish(self) -> None:
        """See Playing."""
        self._is_finished = True
        self._commands.put("draw")

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
                    self._play(recorder)
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
        self.has_ended = True
        self._on_turn()

    def _only_spec(self) -> BehaviorSpec:
        assert self._spec is not None
        return self._spec

    def _play(self, recorder: EpisodeRecorder) -> None:
        """In one environment after another, where one fails. Raises RlTuiError for the first, and for the file."""
        request = self._request
        adaptation = Adaptation(wrappers=request.wrappers)
        given = EnvironmentSource(request.env, short_name(request.env), request.kwargs, adaptation=adaptation)
        source = given.showing_frames() if RENDER_MODE in given.kwargs else given.watched()
        while not self._is_finished:
            try:
                pool = ProcessPool(source, 1, 1, request.timeout, variables=drawing_variables())
                with contextlib.closing(pool):
                    pool.start(lambda: self._is_finished)
                    self._play_in(pool, recorder)
            except StartStopped:
                return
            except (DemonstrationError, NotSupportedError):
                raise
            except RlTuiError as error:
                if self.is_begun:
                    self._wait_after(error)
                elif source is given:
                    raise
                else:  # it may be playable without a picture
                    self._picture, source = Picture(reason=str(error)), given

    def _play_in(self, pool: ProcessPool, recorder: EpisodeRecorder) -> None:
        """Until the end, or until the environment fails. Raises RlTuiError."""
        request = self._request
        spec = require_playable(request.env, pool.specs, pool.num_agents, request.most_choices)
        if self._episodes is None:
            self._spec, self._episodes = spec, PlayedEpisodes(spec, recorder)
        self._reset(pool)
        while not self._is_finished:
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
            self._is_finished = True
            return
        if not episodes.is_waiting:
            pool.send(instance, {})
            return
        self._draw(pool)
        self._show(episodes)
        for command in self._commands_until_end():
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
                    self._draw(pool)
            self._show(episodes)

    def _wait_after(self, error: RlTuiError) -> None:
        """Show why the environment failed until the person asks for another episode, or for the end."""
        assert self._episodes is not None
        self._episodes.discard()
        self.failure = error
        self._show(self._episodes, "failed", str(error))
        for command in self._commands_until_end():
            if command == "discard":
                self.is_busy, self.failure = True, None  # until there is a new environment
                return
            if command == "drop":
                self._episodes.drop_last()
                self._show(self._episodes, "failed", str(error))

    def _commands_until_end(self) -> Iterator[PlayCommand]:
        """What the person says, as it comes."""
        while not self._is_finished:
            with contextlib.suppress(queue.Empty):
                yield self._commands.get(timeout=WAIT_SECONDS)

    def _draw(self, pool: ProcessPool) -> None:
        """The newest picture, unless the environment has none."""
        if self._is_finished or self._picture.reason:
            return
        picture = pool.picture(0, *self._size, lambda: not self._is_finished)
        self._picture = self._picture if picture is None else picture

    def _show(self, episodes: PlayedEpisodes, state: SceneState = "playing", reason: str = "") -> None:
        picture, spec = self._picture, self._only_spec()
        frame = picture.pixels
        scene = replace(
            episodes.scene(),
            state=state,
            reason=reason,
            pixels=None if frame is None else Pixels(frame.shape[1], frame.shape[0], frame.tobytes()),
            text=picture.text,
            undrawn=picture.reason,
        )
        names = spec.choice_names or ("",) * spec.actions.mask_size
        self.is_busy = False
        self._turns.put(Turn(scene, names, episodes.is_allowed))
        self.is_begun = True
        self._on_turn()


def _ignore() -> None:
    """No one listens yet."""
