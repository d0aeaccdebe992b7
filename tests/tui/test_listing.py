"""The list of runs: columns that line up and fit, and lines of JSON."""

import json
import math
from dataclasses import replace

import pytest
from rich.cells import cell_len

from rl_tui.engine.session.summaries import BehaviorSummary, RunSummary
from rl_tui.tui.command_line.listing import json_lines, table

NOW = 1_000_000.0
WALKER = BehaviorSummary("Walker", "ppo", 3_210_000, 10_000_000, 431.04, 412.3)
CRAWLER = BehaviorSummary("Crawler", "sac", 900, 0, None, None)


def run(run_id="walker", behaviors=(WALKER,), *, state="training", age=42.0, path="results/walker", note=""):
    published = None if age is None else NOW - age
    return RunSummary(run_id, path, state, state == "training", NOW - 9000, published, 8958.0, behaviors, None, note)


RUNS = [
    run(behaviors=(WALKER, CRAWLER)),
    run("hopper-2", (WALKER,), state="interrupted", age=7400.0, path="results/hopper-2"),
    run("broken", (), state="unknown", age=None, path="results/broken", note="cannot be read (Permission denied)"),
]


def test_columns_line_up_and_say_states_in_words():
    assert table(RUNS, "results", NOW, 79) == (
        "RUN       STATE        BEHAVIOR      STEPS  BEST CKPT  MEAN 100   AGE\n"
        "walker    training     Walker    3.21M/10M      431.0     412.3   42s\n"
        "                       Crawler         900          -         -\n"
        "hopper-2  interrupted  Walker    3.21M/10M      431.0     412.3  2h03\n"
        "broken    unknown      -                 -          -         -     -\n"
        "  cannot be read (Permission denied)\n"
        "3 runs in results\n"
    )


def test_live_run_names_its_process_and_the_way_to_its_screen():
    alive = replace(run(behaviors=(WALKER,)), process="pid 12 on tower")
    assert "\n  live: pid 12 on tower, rl-tui attach results/walker\n" in table([alive], "results", NOW, 79)


def test_checkpoint_without_a_return_has_its_loss():
    cloned = BehaviorSummary("Walker", "bc", 300_000, 300_000, None, None, best_loss=0.0379)
    assert " loss 0.038 " in table([run(behaviors=(cloned,))], "results", NOW, 79)


def test_rating_stands_in_the_place_of_the_return_of_self_play():
    soccer = replace(WALKER, rating=1297.6)
    assert "     431.0  elo 1298  42s" in table([run(behaviors=(soccer,))], "results", NOW, 79)
    (line,) = json_lines([run(behaviors=(soccer,))], lambda _: None).splitlines()
    assert json.loads(line)["behaviors"][0]["rating"] == 1297.6


def test_paths_stand_where_there_is_room_for_them():
    lines = table(RUNS, "results", NOW, 88).splitlines()
    assert lines[0].endswith("AGE  PATH")
    assert lines[1].endswith("42s  results/walker")


def test_no_runs_are_said_to_be_none():
    assert table([], "results", NOW) == "no runs in results\n"
    assert json_lines([], lambda _: None) == ""


@pytest.mark.parametrize("width", [80, 100, 200])
def test_long_names_are_shortened(width):
    behavior = BehaviorSummary("漢字" * 40, "ppo", 10**15, 10**15, -1.2345e-200, math.nan)
    hostile = run("x" * 64, (behavior,) * 30, path="/long" * 60, note="n" * 500, age=1e9, state="interrupted")
    text = table([*RUNS, hostile], "results", NOW, width)
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "..." in lines[-2]
    assert text.isprintable() is False
    assert all(line.isprintable() for line in lines)


def test_names_from_outside_steer_nothing():
    hostile = run("\x1b[31mred\n", (BehaviorSummary("a\x1b]0;title\x07b\nc", "", 1, 1, None, None),), note="\x1b[2J\r!")
    lines = table([hostile], "\x1b[1mresults", NOW).splitlines()
    assert lines[1].startswith("red ")
    assert "ab c" in lines[1]
    assert lines[2:] == ["   !", "1 run in results"]


def test_json_has_one_object_per_run():
    infinite = BehaviorSummary("Walker", "ppo", 1, 2, math.inf, math.nan)
    settings = {"results/walker": {"env_settings.num_envs": 8}}
    named = replace(WALKER, environment="gymnasium:Walker2d-v5")
    runs = [replace(run(behaviors=(named, CRAWLER)), seed=7), run("b", (infinite,), path="results/b")]
    first, second = (json.loads(line) for line in json_lines(runs, settings.get).splitlines())
    assert first == {
        "v": 1,
        "run_id": "walker",
        "path": "results/walker",
        "state": "training",
        "is_alive": True,
        "started_at": NOW - 9000,
        "last_event_at": NOW - 42,
        "elapsed_seconds": 8958.0,
        "behaviors": [
            {
                "name": "Walker",
                "algorithm": "ppo",
                "step": 3_210_000,
                "max_steps": 10_000_000,
                "best_return": 431.04,
                "last_return": 412.3,
                "environment": "gymnasium:Walker2d-v5",
                "best_loss": None,
                "rating": None,
                "trainer": "ppo",
            },
            {
                "name": "Crawler",
                "algorithm": "sac",
                "step": 900,
                "max_steps": 0,
                "best_return": None,
                "last_return": None,
                "environment": "",
                "best_loss": None,
                "rating": None,
                "trainer": "sac",
            },
        ],
        "exit_code": None,
        "note": "",
        "process": "",
        "seed": 7,
        "settings": {"env_settings.num_envs": 8},
    }
    assert (second["seed"], second["settings"]) == (None, None)
    assert (second["behaviors"][0]["best_return"], second["behaviors"][0]["last_return"]) == ("inf", "nan")
