"""The settings that have a flag of their own on the command line, and a keyword of the same name in Python."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["text", "whole", "whole or auto", "number", "environment", "true", "rest"]


class Flag(NamedTuple):
    """kind: of the value that follows it; "true": none does, "rest": all that follow. path: of its setting."""

    name: str
    kind: Kind
    help: str
    metavar: str
    path: str

    @property
    def keyword(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")


def _flags(section: str, *flags: tuple[str, Kind, str, str]) -> tuple[Flag, ...]:
    """Those whose settings have the same names, in that section."""
    return tuple(Flag(*flag, f"{section}{flag[0].replace('-', '_')}") for flag in flags)


OUTPUT = _flags("", ("debug", "true", "log what the run does and its timings (docs/runs.md)", ""))
CHECKPOINTS = _flags(
    "checkpoint_settings.",
    ("run-id", "text", "name of the run and its folder (default: CONFIG's, numbered)", "ID"),
    ("results-dir", "text", "folder of the runs (default results)", "DIR"),
    ("resume", "true", "continue the run of this id from its checkpoint", ""),
    ("resume-or-start", "true", "continue the run if there is one, else start it", ""),
    ("force", "true", "start over in an existing run folder", ""),
    ("initialize-from", "text", "start with the weights of another run", "RUN_ID"),
    ("inference", "true", "act without learning", ""),
)
SEED = _flags("env_settings.", ("seed", "whole", "random seed; -1 draws one (default -1)", "SEED"))
DEVICE = (
    Flag("torch-device", "text", "auto (the faster one), cpu, cuda, cuda:1, ...", "DEVICE", "torch_settings.device"),
)
ENVIRONMENT = _flags(
    "env_settings.",
    ("env", "environment", "a Unity player, gymnasium:ID, package.module:factory, or BEHAVIOR=ENV,...", "ENV"),
    ("num-envs", "whole", "copies of the environment, or players (default 1)", "N"),
    ("num-workers", "whole or auto", "processes that run them; 0: this process; auto: as many as pay off", "N"),
    ("timeout-wait", "whole", "seconds before an environment counts as hung (default 60)", "S"),
    ("max-lifetime-restarts", "whole", "restarts of one worker; -1: no limit", "N"),
    ("restarts-rate-limit-n", "whole", "restarts in one period; -1: no limit", "N"),
    ("restarts-rate-limit-period-s", "whole", "seconds of that period", "S"),
)
UNITY = (
    *_flags(
        "env_settings.",
        ("base-port", "whole", "port of the first player (default 5005)", "N"),
        ("num-areas", "whole", "training areas in each scene (default 1)", "N"),
    ),
    *_flags(
        "engine_settings.",
        ("width", "whole", "of the window (default 84)", "N"),
        ("height", "whole", "of the window (default 84)", "N"),
        ("quality-level", "whole", "graphics quality (default 5)", "N"),
        ("time-scale", "number", "speed of time (default 20)", "X"),
        ("target-frame-rate", "whole", "most frames per second (default -1: no limit)", "N"),
        ("capture-frame-rate", "whole", "frames per second of simulated time (default 60)", "N"),
        ("no-graphics", "true", "without a window", ""),
        ("no-graphics-monitor", "true", "only the first player opens a window", ""),
    ),
    *_flags("env_settings.", ("env-args", "rest", "arguments of the player; must be the last flag", "...")),
)
IN_PYTHON = (*OUTPUT, *CHECKPOINTS, *SEED, *DEVICE, *ENVIRONMENT, *UNITY)
