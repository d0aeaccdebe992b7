"""The selected behavior in figures."""

from __future__ import annotations

from itertools import islice
from typing import Literal, TypeAlias

from rl_tui.engine.session.behavior_view import EVALUATION, LESSON_NUMBER, BehaviorView
from rl_tui.engine.session.environment_view import worker_word
from rl_tui.engine.session.group_tags import GROUP_RETURN
from rl_tui.engine.session.history import History
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.messages import TimeSplit
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.charts.trend import trend
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line, state_tone, wrap
from rl_tui.tui.drawing.text import (
    count,
    fit,
    fit_path,
    left,
    num_cells,
    number,
    percent,
    right,
    round_count,
    size,
)
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.behaviors import direction_sign
from rl_tui.tui.panes.checkpoint_list import good_checkpoint
from rl_tui.tui.panes.environments import awaited_for, num_restarts, restarts_of, standing_lines, workers_of
from rl_tui.tui.panes.group_lines import TAGS as GROUP_TAGS
from rl_tui.tui.panes.group_lines import group_line, group_pairs
from rl_tui.tui.panes.league_words import is_resting, rating_text, team_forms
from rl_tui.tui.panes.lesson_words import lesson_name, lessons_decided_by, missing
from rl_tui.tui.panes.rank_words import slow_lines
from rl_tui.tui.panes.reward_streams import stream_lines, tags_of

METRICS = {  # short name by ML-Agents' tag, in order of interest; others follow under their own names
    "Policy/Entropy": "entropy",
    "Policy/KL Divergence": "KL",
    "Losses/Policy Loss": "policy loss",
    "Losses/Value Loss": "value loss",
    "Losses/Q1 Loss": "Q1 loss",
    "Losses/Q2 Loss": "Q2 loss",
    "Policy/Continuous Entropy Coeff": "cont. coeff",
    "Policy/Discrete Entropy Coeff": "disc. coeff",
    "Policy/Clip Fraction": "clipped",
    "Policy/Learning Rate": "learn rate",
    "Policy/Epsilon": "epsilon",
    "Policy/Beta": "beta",
    "Policy/Extrinsic Value Estimate": "value",
    "Policy/Extrinsic Baseline Estimate": "baseline",
    "Policy/Extrinsic Value": "value",
    "Policy/Extrinsic Reward": "extrinsic",
    "Losses/Curiosity Forward Loss": "forward err",
    "Losses/Curiosity Inverse Loss": "inverse err",
    "Losses/RND Loss": "RND loss",
    "Policy/GAIL Policy Estimate": "GAIL policy",
    "Policy/GAIL Expert Estimate": "GAIL expert",
    "Losses/GAIL Loss": "GAIL loss",
    "Policy/GAIL Grad Mag Loss": "GAIL slope",
    "Policy/GAIL Beta": "GAIL beta",
    "Losses/GAIL KL Loss": "GAIL KL",
    "Losses/Pretraining Loss": "clone loss",
    "Losses/Cloning Loss": "clone loss",
    "Losses/Held-Out Cloning Loss": "held out",
    "Policy/Action Magnitude": "action size",
    "Environment/Action Cost Share": "action cost",
    "Losses/Baseline Loss": "base loss",
    "Evaluation/Episode Length": "eval length",
    "Evaluation/Win Rate": "win rate",
    "Performance/Steps per Second": "speed",
}
REPLAY_STEPS = ("Policy/Replay Steps", "Policy/Labels")  # how full the replay buffer is, by what it keeps
SHOWN_ELSEWHERE = GROUP_TAGS | frozenset(
    ("Environment/Cumulative Reward", "Environment/Episode Length", "Is Training", *REPLAY_STEPS, EVALUATION, RATING)
)
NAME_WIDTH, VALUE_WIDTH = 11, 8  # "environment"; the longest of `number`
PAIR_WIDTH = NAME_WIDTH + VALUE_WIDTH + 2
Pair = tuple[str, str]  # a name and a value
Unit: TypeAlias = Literal["percent", "points", "none"]  # of a trend


class DetailPane(Pane):
    """What the table has no room for, then where the time goes."""

    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """How much is known of the behavior."""
        one = frame.behavior
        if one is None:
            return None
        known = len(one.metrics), len(one.lessons), len(one.evaluations)
        view = frame.view
        environment = awaited_for(one, view), len(restarts_of(one, view)), num_restarts(one, view)
        return one.name, one.reason, environment, one.num_parameters, known, tuple(frame.view.warnings)

    def heading(self, frame: Frame) -> str:
        """Which behavior."""
        return heading_of(frame)

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What is most asked for comes first, for a low pane is cut at its end."""
        behavior = frame.behavior
        if behavior is None:
            return []
        standing = standing_lines(behavior, frame, width)
        warned = [*slow_lines(frame, width), *warning_lines(behavior, frame, width)]
        top = [*reason_lines(behavior, frame, width), *standing, *warned]
        streams = stream_lines(behavior.metrics, frame.glyphs, NAME_WIDTH, VALUE_WIDTH)
        figures = [*course_lines(behavior, frame, width), *streams, *pair_lines(metric_pairs(behavior), width)]
        split = time_lines(behavior.time_split, frame, width)
        setup = [*pair_lines(setup_pairs(behavior), width), *environment_line(behavior, frame, width)]
        rows = [row for part in (top, figures, split, setup) if part for row in (*part, line())]
        return rows[:-1]


def heading_of(frame: Frame) -> str:
    """The selected behavior's name and algorithm."""
    behavior = frame.behavior
    if behavior is None:
        return "Detail"
    algorithm = f" {frame.glyphs.dot} {safe_text(behavior.algorithm).upper()}" if behavior.algorithm else ""
    return fit(safe_text(behavior.name), 30, frame.glyphs.ellipsis) + algorithm


def reason_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """Why it is in its state, where that is not plain; at most four lines."""
    if not behavior.reason:
        return []
    rows = _signed(frame.glyphs.of(behavior.state), safe_text(behavior.reason), state_tone(behavior.state), width, 4)
    good = good_checkpoint(behavior)
    if good is not None:
        key = frame.keymap.of_id("roll-back").shown
        rows.append(line(Span(f"   {key} rolls it back to step {count(good[1].step)}", "accent")))
    return rows


def _signed(sign: str, text: str, tone: Tone, width: int, max_lines: int) -> list[Line]:
    """A sign, and the text beside it."""
    first, *rest = wrap(text, width - 4, max_lines)
    return [line(Span(f" {sign} {first}", tone)), *(line(Span(f"   {row}", tone)) for row in rest)]


def warnings_of(behavior: BehaviorView, view: RunView) -> list[tuple[float, str, str]]:
    """(since when, what was seen, what to try) of what looks wrong with it now, oldest first."""
    return [
        (since, safe_text(warning.message), safe_text(warning.advice))
        for (_, name), (since, warning) in view.warnings.items()
        if name == behavior.name
    ]


def warning_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """What looks wrong with it, at most two lines each."""
    rows: list[Line] = []
    for _, message, _ in warnings_of(behavior, frame.view):
        rows += _signed(frame.glyphs.warning, message, "warning", width, 2)
    return rows


def course_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """Its rating, what its newest episodes returned and its evaluations, then how it came there."""
    rows = [*rating_lines(behavior, frame, width), *return_lines(behavior, frame.glyphs)]
    of_groups = behavior.histories.get(GROUP_RETURN, History())
    trend_of_groups = trend_spans(of_groups, behavior.lesson_began_at, frame.glyphs, "none")
    rows += group_line(behavior, trend_of_groups, NAME_WIDTH, VALUE_WIDTH)
    rows += evaluation_lines(behavior, frame.glyphs)
    best = behavior.best_return if behavior.best_loss is None else behavior.best_loss
    episodes = [("length", number(behavior.mean_length)), ("episodes", count(behavior.num_episodes))]
    pairs = [
        ("best ckpt" if behavior.best_loss is None else "best loss", number(best)),
        *(episodes if behavior.has_returns else []),
        *group_pairs(behavior),
        ("updates", count(behavior.num_updates)),
        ("steps/s", count(behavior.steps_per_second)),
    ]
    return [*rows, *pair_lines(pairs, width), *replay_lines(behavior), *lesson_lines(behavior, frame, width)]


def return_lines(behavior: BehaviorView, glyphs: Glyphs) -> list[Line]:
    """The mean return of the newest episodes with its trend, where there are any to come; in self-play the trend is
    that of the rating."""
    if not behavior.has_returns:
        return []
    mean = f"mean of {behavior.recent.count}" if behavior.recent.count else "mean return"
    first = line(Span(" " + left(mean, NAME_WIDTH), "dim"), Span(right(number(behavior.mean_return), VALUE_WIDTH)))
    return [first if behavior.plays_itself else line(*first, "  ", *course_trend(behavior, glyphs))]


def rating_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """The rating with its trend; below it the league, and the key to it."""
    if behavior.rating is None and not behavior.plays_itself:
        return []
    first = line(Span(" " + left("elo", NAME_WIDTH), "dim"), Span(right(rating_text(behavior.rating), VALUE_WIDTH)))
    if behavior.plays_itself:
        first = line(*first, "  ", *course_trend(behavior, frame.glyphs))
    if behavior.league is None:
        return [first]
    head = Span(" " + left("league", NAME_WIDTH + 1), "dim")
    forms = team_forms(behavior.league, frame.time)
    key = Span(f"  {frame.keymap.of_id('league').shown.partition(', ')[0]} shows it", "faint")
    words = next((form for form in forms if cells((head,)) + num_cells(form) < width), forms[-1])
    spans = line(head, Span(words, "wait" if is_resting(behavior) else "text"))
    return [first, line(*spans, *((key,) if cells((*spans, key)) < width else ()))]


def evaluation_lines(behavior: BehaviorView, glyphs: Glyphs) -> list[Line]:
    """What its policy returned when it was measured: the newest, and the best where that is another one."""
    newest, best = behavior.evaluation, behavior.best_evaluation
    if newest is None:
        return []
    star = f" {glyphs.best}" if newest == best else ""
    rows = [("evaluation", newest, f"sd {number(newest.std_return)} at {round_count(newest.step)}{star}")]
    if best is not None and newest != best:
        rows.append(("best eval.", best, f"sd {number(best.std_return)} at {round_count(best.step)}"))
    return [
        line(
            Span(" " + left(name, NAME_WIDTH), "dim"),
            Span(right(number(event.mean_return), VALUE_WIDTH)),
            Span(f"  {words}", "dim"),
        )
        for name, event, words in rows
    ]


def replay_lines(behavior: BehaviorView) -> list[Line]:
    """How full its replay buffer is and what that costs; when it will learn from it, while it only fills."""
    if not behavior.replay_steps:
        return []
    held: float = behavior.step - behavior.first_step
    if not behavior.is_filling:  # or the newest summary may be that of an earlier process
        held = max([held, *(behavior.metrics[tag] for tag in REPLAY_STEPS if tag in behavior.metrics)])
    full = f"{count(min(held, behavior.replay_steps))} of {round_count(behavior.replay_steps)} steps"
    costs = Span(f", {size(behavior.replay_bytes)} memory", "dim")
    rows = [line(Span(" " + left("replay", NAME_WIDTH + 1), "dim"), full, costs)]
    if behavior.is_filling:
        begins = f"starts at step {round_count(behavior.first_update_step)}"
        rows.append(line(Span(" " + left("learning", NAME_WIDTH + 1), "dim"), Span(begins, "wait")))
    return rows


def course_trend(behavior: BehaviorView, glyphs: Glyphs) -> Line:
    """Of the curve that says how well it learns."""
    unit: Unit = "points" if behavior.plays_itself else "percent"  # Elo has no zero to be a percentage of
    return trend_spans(behavior.course, behavior.course_since, glyphs, unit)


def trend_spans(history: History, since: float, glyphs: Glyphs, unit: Unit) -> Line:
    """Direction and change from this step on, and over how many steps: "▲ +1.8% in 750k steps"; empty where it is
    unknown."""
    found = trend(np.array(history.steps), np.array(history.mean), since=since)
    sign = direction_sign(found.direction, glyphs)
    if found.direction == 0:
        return line(Span("steady", "dim")) if found.steps else ()
    about = round_count(float(f"{found.steps:.2g}"))  # three digits would not fit at 120 columns
    change = ""
    if unit == "points":
        change = f" {found.change:+.0f}"
    elif unit == "percent" and found.percent is not None:
        change = f" {found.percent:+.{1 if abs(found.percent) < 100 else 0}f}%"
    return line(sign, Span(change, sign.tone), Span(f" in {about} steps", "dim"))


def lesson_lines(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """The lesson of each parameter that this behavior decides on, and how far it is to the next one.

    Where they are too long, the names of lessons are cut first, then those of parameters.
    """
    rows = []
    for parameter, status in lessons_decided_by(behavior, frame.view):
        least, words = missing(status), lesson_name(status)
        share = f" {int(100 * least.share)}%" if least is not None else ""
        head = Span(" " + left("lesson", NAME_WIDTH + 1), "dim")
        room = max(0, width - cells((head,)) - len(share) - 3)  # two blanks before the parameter, one at the end
        name = fit(safe_text(parameter), max(NAME_WIDTH, room - num_cells(words)), frame.glyphs.ellipsis)
        lesson = fit(words, room - num_cells(name), frame.glyphs.ellipsis)
        rows.append(line(head, lesson, Span(share, "accent"), Span(f"  {name}", "dim")))
    return rows


def metric_pairs(behavior: BehaviorView) -> list[Pair]:
    """The newest summary, what its trainer names first."""
    order = dict.fromkeys((*behavior.headline_metrics, *METRICS, *behavior.metrics))
    hidden = SHOWN_ELSEWHERE | {tag for tag in behavior.metrics if tag.startswith(LESSON_NUMBER)}
    hidden |= tags_of(behavior.metrics)
    shown = [tag for tag in order if tag in behavior.metrics and tag not in hidden]
    return [(METRICS.get(tag) or metric_title(tag).lower(), number(behavior.metrics[tag])) for tag in shown]


def setup_pairs(behavior: BehaviorView) -> list[Pair]:
    """What does not change while it trains."""
    if not behavior.num_parameters:
        return []
    return [
        ("agents", count(behavior.num_agents)),
        ("parameters", count(behavior.num_parameters)),
        ("sampled", count(behavior.sampled)),
        *([("learned", count(behavior.learned))] if behavior.learned != behavior.sampled else []),
        ("threaded", "yes" if behavior.threaded else "no"),
    ]


def environment_line(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """Where it lives, how often a worker of it was restarted, its workers and the ranks of the run."""
    if not behavior.environment:
        return []
    restarts = num_restarts(behavior, frame.view)
    words = f"  {count(restarts)} restart{'s' if restarts > 1 else ''}" if restarts else ""
    name = fit_path(safe_text(behavior.environment), width - NAME_WIDTH - 3 - len(words), frame.glyphs.ellipsis)
    first = line(Span(" " + left("environment", NAME_WIDTH + 1), "dim"), name, Span(words, "warning"))
    return [first, *worker_line(behavior, frame, width), *rank_line(frame, width)]


def worker_line(behavior: BehaviorView, frame: Frame, width: int) -> list[Line]:
    """How many worker processes its environment has, how long they wait, and the key to all about them."""
    workers = workers_of(behavior, frame.view)
    if workers is None:
        return []
    total = workers.total
    waiting = "" if total.waiting is None else f", waiting {100 * total.waiting:.0f}%"
    return [_number_line(f"{worker_word(workers.environment)}s", total.number, waiting, "workers", frame, width)]


def rank_line(frame: Frame, width: int) -> list[Line]:
    """How many ranks train the run, how long they wait, and the key to all about them; none where there is one."""
    ranks = frame.view.ranks
    if not ranks.statuses:
        return []
    waiting = f", waiting {100 * ranks.waiting:.0f}%"
    return [_number_line("ranks", len(ranks.statuses), waiting, "ranks", frame, width)]


def _number_line(title: str, number: int, words: str, screen: str, frame: Frame, width: int) -> Line:
    """How many there are, and where there is room the key to the screen that shows each."""
    key = f"  {frame.keymap.of_id(screen).shown.partition(', ')[0]} shows each"
    spans = line(Span(" " + left(title, NAME_WIDTH + 1), "dim"), count(number), Span(words, "dim"))
    return line(*spans, Span(key if cells(spans) + len(key) < width else "", "faint"))


def pair_lines(pairs: list[Pair], width: int) -> list[Line]:
    """Names and values, as many pairs to a line as fit, at least one."""
    per_line = max(1, width // PAIR_WIDTH)
    rest = iter(pairs)
    rows = []
    while row := list(islice(rest, per_line)):
        spans = [
            span
            for name, value in row
            for span in (Span(left(name, NAME_WIDTH), "dim"), Span(right(value, VALUE_WIDTH)), Span("  "))
        ]
        rows.append(line(" ", *spans))
    return rows


def time_lines(split: TimeSplit | None, frame: Frame, width: int) -> list[Line]:
    """A bar and a percentage for each part of a behavior's wall time; nothing before the first is known."""
    if split is None:
        return []
    parts = {
        "environment": split.environment_seconds,
        "inference": split.inference_seconds,
        "update": split.update_seconds,
        "waiting": split.waiting_seconds,
        "other": split.other_seconds,
    }
    whole = sum(parts.values())
    if whole <= 0:
        return []
    bar_width = max(4, min(width - NAME_WIDTH - 9, 40))
    return [
        line(
            Span(" " + left(name, NAME_WIDTH + 1), "dim"),
            *bar(seconds / whole, bar_width, frame.glyphs, "accent"),
            right(f"{100 * seconds / whole:.0f}%", 5),
        )
        for name, seconds in parts.items()
        if percent(seconds, whole) > 0 or name != "waiting"
    ]
