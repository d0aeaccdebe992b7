"""Self-play in words: which team learns, since when, until when, and against whom."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.league_view import LeagueView
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import duration, number, round_count

NO_LEAGUE = "no behavior plays against itself; self_play in its settings makes its earlier policies the opponents"


def players(view: RunView) -> list[BehaviorView]:
    """The behaviors whose opponents act by earlier policies."""
    return [behavior for behavior in view.behaviors.values() if behavior.plays_itself]


def rating_text(rating: float | None) -> str:
    """Without decimals: a game moves it by less than it is known."""
    return number(rating) if rating is None or abs(rating) >= 10_000 else f"{rating:.0f}"


def is_resting(behavior: BehaviorView) -> bool:
    """Whether others learn at present, from games with its snapshots."""
    league = behavior.league
    return behavior.state == "training" and league is not None and not league.report.is_learning


def opponents_of(behavior: BehaviorView, view: RunView) -> list[str]:
    """The behaviors that play against snapshots of this one: itself, or in an asymmetric game the others."""
    if behavior.league is None or behavior.league.is_symmetric:
        return [behavior.name]
    return [each.name for each in players(view) if each is not behavior and each.environment == behavior.environment]


def team_forms(league: LeagueView, now: float) -> Sequence[str]:
    """Which team learns, since when, and when another will; the longest form first."""
    report = league.report
    who = f"team {report.learning_team} learns"
    seconds = duration(max(0.0, now - league.since_time))
    if not report.is_learning:
        return f"rests while {who}, for {seconds}", f"rests while {who}", "rests"
    since = f"{who} since step {round_count(league.since_step)}"
    forms = [f"{since} ({seconds})", since, who]
    change = report.next_team_change
    return [f"{forms[0]}, until {round_count(change)}", *forms] if change is not None else forms


def against_words(behavior: BehaviorView, view: RunView) -> str:
    """Who plays against its snapshots, where that is not itself: "against Striker"."""
    names = opponents_of(behavior, view)
    return "" if names in ([behavior.name], []) else f"against {', '.join(map(safe_text, names))}"


def league_text(behavior: BehaviorView, view: RunView, now: float) -> str:
    """All about the newest policy and its team."""
    league = behavior.league
    if league is None:
        return f"{safe_text(behavior.name)}  no game has ended yet"
    parts = [safe_text(behavior.name), against_words(behavior, view), team_forms(league, now)[0]]
    parts.append(f"{counted(league.report.num_games, 'rated game')}")
    parts += [f"teams {', '.join(map(str, league.report.teams))}"] if league.report.teams else []
    parts.append(counted(len(league.report.snapshots), "snapshot"))
    return "  ".join(part for part in parts if part)
