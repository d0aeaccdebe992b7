"""Every error this program raises on purpose.

RlTuiError                   base; `exit_code` is what the process ends with
├── ConfigError              the user's file, command line or setting  exit 2
├── NotSupportedError        valid, but not supported yet              exit 2
├── PluginError              an installed plug-in cannot be used       exit 2
├── DemonstrationError       demonstrations cannot be read, or misfit  exit 2
├── OutOfMemory               training does not fit in memory          exit 2
├── HookError                a user's own function raised              exit 2
├── EnvironmentFailure       an environment raised, died, hung or lied exit 3
├── NonFiniteError           a loss, reward, ... is NaN or infinite    exit 5
├── RunBusyError             another process writes to this run        exit 6
├── CheckpointError          a checkpoint cannot be written or read    exit 7
├── SyncError                a rank of several was lost                exit 9
├── CommandError             a command to a run was refused or failed  exit 1
├── AttachError              a run that trains cannot be reached       exit 8
├── ExportError              an exported policy differs from its own   exit 1
└── OutputError              stdout cannot be written to               exit 1
"""

from __future__ import annotations


class RlTuiError(Exception):
    """Base of all errors raised on purpose; the message is meant for the user.

    detail: a traceback of the user's own code, or its stacks, where the error comes from there; else empty.
    """

    exit_code = 1
    detail = ""


class ConfigError(RlTuiError):
    """The user's file or command line, or a setting changed while training, is invalid; one line for each problem."""

    exit_code = 2


class NotSupportedError(RlTuiError):
    """The request is valid and not supported yet."""

    exit_code = 2


class PluginError(RlTuiError):
    """An installed plug-in cannot be imported, or is not what its kind must be."""

    exit_code = 2


class DemonstrationError(RlTuiError):
    """Demonstrations cannot be read, or do not fit the behavior that is to learn from them."""

    exit_code = 2


class OutOfMemory(RlTuiError):
    """What is trained does not fit in the memory of the machine, or of the device."""

    exit_code = 2


class HookError(RlTuiError):
    """A user's own function that is called during training raised the error that this one comes from."""

    exit_code = 2


class EnvironmentFailure(RlTuiError):
    """An environment raised, died, hung beyond its deadline, or returned something of the wrong shape."""

    exit_code = 3


class NonFiniteError(RlTuiError):
    """A loss, reward, observation or parameter is NaN or infinite."""

    exit_code = 5


class RunBusyError(RlTuiError):
    """Another live process owns this run's folder."""

    exit_code = 6


class CheckpointError(RlTuiError):
    """A checkpoint cannot be written, or does not verify, or does not fit this run."""

    exit_code = 7


class SyncError(RlTuiError):
    """Another rank of a distributed training has left, failed, or was silent beyond the deadline.

    exit_code: where that rank has failed and said so, that of its error.
    """

    exit_code = 9

    def __init__(self, message: str, exit_code: int = exit_code) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CommandError(RlTuiError):
    """A command that was sent to a run was refused, or could not be carried out."""


class AttachError(RlTuiError):
    """No process trains the run, or the one that does cannot be reached from here, or does not speak as it should."""

    exit_code = 8


class ExportError(RlTuiError):
    """The exported file does not compute what the policy computes; the previous file was kept."""


class OutputError(RlTuiError):
    """The output of a command cannot be written to stdout, for another reason than a closed pipe."""
