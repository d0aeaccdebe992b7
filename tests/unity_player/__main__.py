"""`python -m tests.unity_player`: a player, with the arguments of arguments.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.unity_player.arguments import Options, parse
from tests.unity_player.connection import Connection, NoTrainer
from tests.unity_player.log import Log
from tests.unity_player.messages import ActionsMismatch
from tests.unity_player.player import Ended, Player


def main(arguments: list[str]) -> int:
    """Play; the exit code."""
    options = parse(arguments)
    signal.alarm(options.lifetime)  # also where a test fails
    if options.wrapper:
        words = [word for word in arguments if word != "--wrapper"]
        return subprocess.call([sys.executable, "-m", "tests.unity_player", *words])
    with Log(options.log) as log:
        log.say("Mono path[0] = 'stand-in'")
        log.note(pid=os.getpid(), port=options.port, arguments=arguments, ignored=options.ignored)
        return _played(options, log)


def _played(options: Options, log: Log) -> int:
    time.sleep(options.slow_start)
    if options.port is None or options.never_connects:
        log.say("Connection to the trainer is not wanted. Will perform inference instead.")
        return _live_on()
    with Connection(options.port, options.record) as connection:
        player = Player(options, log, connection)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, player.leave)
        return _ended(options, log, connection, player)


def _ended(options: Options, log: Log, connection: Connection, player: Player) -> int:
    """The exit code, once nothing is to be said any more."""
    try:
        player.play()
    except NoTrainer as error:
        log.say(f"Couldn't reach the trainer on port {options.port}: {error}")
        if not connection.count:
            log.say("Will perform inference instead.")
            return _live_on()
        return _live_on() if options.stays_alive else 0
    except Ended as reason:
        log.say(f"Ended: {reason}")
        return _live_on() if options.refuses_to_quit or options.stays_alive else 0
    except ActionsMismatch as error:
        log.say(f"UnityAgentsException: {error}")
        return 3
    return 0


def _live_on() -> int:
    """Until a signal ends the process."""
    while True:
        time.sleep(60)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
