"""The ranks that a command line asks for. Imports no torch: the others start while this process imports it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.ranks.local_ranks import LocalRanks
from rl_tui.engine.running.ranks.world import LIFELINE, World, new_key
from rl_tui.engine.sampling.pools.process_group import die_with
from rl_tui.engine.session.bus import EventBus

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig
    from rl_tui.engine.running.ranks.role import Role

JOIN_SECONDS: Final = 300.0  # machines of a job may start minutes apart


class Ranks(Protocol):
    """How a process joins others, as one of several ranks. Used by the thread of the run."""

    def begin(self, config: RunConfig) -> None:
        """Called before torch is imported. Raises RlTuiError."""

    def join(self, config: RunConfig, bus: EventBus, is_stopped: Callable[[], bool]) -> Role:
        """The role of this process, once all ranks are there. Raises RlTuiError, StartStopped once `is_stopped`."""

    def close(self) -> None:
        """The run is over."""


@dataclass(frozen=True, slots=True)
class RanksRequest:
    """num_ranks: on this machine, as --ranks says. gpus: each with a rank of its own, as --gpus or --multi-gpu says;
    None for neither. world: what a launcher says in the environment. seconds: for which ranks wait for each other at
    the start. words: the command line for ranks that are started."""

    num_ranks: int = 1
    gpus: int | Literal["all"] | None = None
    world: World | None = None
    seconds: float = JOIN_SECONDS
    words: Sequence[str] = ()

    @property
    def leads(self) -> bool:
        """Whether this process has the run."""
        return self.world is None or self.world.rank == 0


class RequestedRanks:
    """Implements Ranks."""

    def __init__(self, request: RanksRequest) -> None:
        self._request = request
        self._local: LocalRanks | None = None
        self.have_met = False  # from then on, what goes wrong on one is known to all
        self._leaving = ExitStack()

    def begin(self, config: RunConfig) -> None:
        """Start the others, where their number is known, or end with the one that has started this process. Raises
        RlTuiError."""
        if LIFELINE in os.environ:
            die_with(int(os.environ[LIFELINE]))
        self._start(config, self._request.num_ranks)

    def _start(self, config: RunConfig, size: int) -> None:
        from rl_tui.engine.running.ranks.supported import require_supported

        if size > 1:
            require_supported(config, size)
            self._local = LocalRanks(size, new_key())
            self._leaving.callback(self._local.end)
            self._local.start(self._request.words)

    def join(self, config: RunConfig, bus: EventBus, is_stopped: Callable[[], bool]) -> Role:
        """See Ranks."""
        from rl_tui.engine.running.ranks.joining import join_world
        from rl_tui.engine.running.ranks.role import ALONE

        if self._request.gpus is not None:
            self._start(config, self._num_gpus(config, bus))
        world = self._request.world if self._local is None else self._local.world
        if world is None:
            return ALONE
        role = join_world(world, config, self._request.seconds, self._local, is_stopped, self._leaving, bus)
        self.have_met = True
        return role

    def _num_gpus(self, config: RunConfig, bus: EventBus) -> int:
        """How many ranks have one each. Raises ConfigError for more than there are."""
        import torch

        from rl_tui.engine.config.types import AUTO

        device = config.torch_settings.device
        if device not in (AUTO, "cuda"):
            raise ConfigError(f"--torch-device: must be auto or cuda with a rank for each GPU, got {visible(device)}")
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        wanted = len(names) if self._request.gpus == "all" else self._request.gpus
        assert isinstance(wanted, int)
        found = "; ".join(f"cuda:{index} {name}" for index, name in enumerate(names)) or "none"
        if wanted > max(1, len(names)):
            raise ConfigError(
                f"--gpus {wanted}: must be at most {max(1, len(names))}, torch finds {found}."
                f" --ranks {wanted} starts ranks that share what there is"
            )
        if wanted <= 1:
            flag = "--multi-gpu" if self._request.gpus == "all" else f"--gpus {wanted}"
            why = f"torch finds {len(names) if names else 'no'} GPU{'s' if names[1:] else ''}"
            bus.log("info", "run", f"{flag}: one rank trains as usual, {why}")
        return wanted

    def close(self) -> None:
        """Leave the others. Those that were started end."""
        self._leaving.close()
