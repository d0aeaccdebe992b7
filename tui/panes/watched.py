"""What a watched policy does, in figures."""

from __future__ import annotations

from rl_tui.engine.session.watching import Scene
from rl_tui.tui.drawing.lines import Line, Span, line, pack
from rl_tui.tui.drawing.text import left, right
from rl_tui.tui.panes.base import Frame, Pane

LABEL_WIDTH, COMPACT_HEIGHT = 11, 6
SHOWN_ACTIONS = 6


class WatchedPane(Pane):
    """The episode, the policy and the episodes before; in three lines where there are no more.

    scene: what it shows; None before the first. waits: for how many seconds the environment has not answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scene: Scene | None = None
        self.waits = 0.0

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Episode"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Figures as far as there is room."""
        scene = self.scene
        if scene is None or not scene.episode:
            return []
        if height < COMPACT_HEIGHT:
            return compact_lines(scene, frame, self.waits, width)[:height]
        upper = [
            state_line(scene, frame, self.waits),
            line(),
            _figure("policy", policy_words(scene)),
            _figure("actions", actions_words(scene)),
            line(),
            _figure("episode", f"{scene.episode:,}"),
            _figure("step", f"{scene.step:,}"),
            _figure("return", number(scene.total), strong=True),
            _figure("reward", number(scene.reward)),
            *(_figure("action" if index == 0 else "", words) for index, words in enumerate(action_rows(scene, width))),
            line(),
        ]
        return [*upper, *past_lines(scene, height - len(upper))]


def compact_lines(scene: Scene, frame: Frame, waits: float, width: int) -> list[Line]:
    """The most important figures on three lines."""
    dot = f" {frame.glyphs.dot} "
    first = [state_line(scene, frame, waits), line(Span(f"episode {scene.episode}{dot}step {scene.step}"))]
    first.append(line(Span("return ", "dim"), Span(number(scene.total), "strong")))
    actions = " ".join(action_rows(scene, width)[:1])
    second = [line(Span(f" policy {policy_words(scene)}{dot}{actions_words(scene)}", "dim"))]
    second.append(line(Span("action ", "dim"), actions, Span("  reward ", "dim"), number(scene.reward)))
    return [pack(first, width), pack(second, width), returns_line(scene, width)]


def returns_line(scene: Scene, width: int) -> Line:
    """The newest returns, as many as are whole."""
    label = " last returns "
    words = [number(value) for value in reversed(scene.returns)]
    while len(words) > 1 and len(label + "  ".join(words)) > width:
        words.pop()
    return line(Span(label, "dim"), Span("  ".join(words) or "none yet"))


def state_line(scene: Scene, frame: Frame, waits: float) -> Line:
    """Whether it plays, and how fast."""
    if waits:
        return line(Span(f" {frame.glyphs.waiting} no answer for {waits:.0f} s", "warning"))
    if scene.state == "failed":
        return line(Span(f" {frame.glyphs.failed} failed", "bad"))
    if scene.state == "starting":
        return line(Span(f" {frame.glyphs.waiting} starting", "wait"))
    if scene.state == "paused":
        return line(Span(f" {frame.glyphs.paused} paused", "warning"))
    return line(Span(f" {frame.glyphs.running} playing", "good"), Span(f" {scene.hz:.0f} steps/s", "dim"))


def policy_words(scene: Scene) -> str:
    """Which policy plays."""
    return "as loaded" if scene.policy_step is None else f"from step {scene.policy_step:,}"


def actions_words(scene: Scene) -> str:
    """How it chooses."""
    return "most likely" if scene.is_greedy else "sampled"


def action_rows(scene: Scene, width: int) -> list[str]:
    """What it did last: choices, then numbers, a few to a row."""
    choices = [str(choice) for choice in scene.discrete]
    values = [f"{value:+.2f}" for value in scene.continuous]
    words = [*choices, *values][: 4 * SHOWN_ACTIONS]
    per_row = max(1, min(SHOWN_ACTIONS, (width - LABEL_WIDTH - 1) // 6))
    rows = [" ".join(words[at : at + per_row]) for at in range(0, len(words), per_row)]
    return rows or ["-"]


def past_lines(scene: Scene, height: int) -> list[Line]:
    """The episodes that were watched to their end, the newest first."""
    if height < 2 or not scene.returns:
        return []
    mean = sum(scene.returns) / len(scene.returns)
    heading = f" last {len(scene.returns)}, mean {number(mean)}"
    count = scene.episode - 1
    rows = [
        line(Span(f" {right(str(count - at), 7)} ", "faint"), left(number(total), 12), Span(f"{length} steps", "dim"))
        for at, (total, length) in enumerate(zip(reversed(scene.returns), reversed(scene.lengths), strict=True))
    ]
    return [line(Span(heading, "dim")), *rows[: height - 1]]


def number(value: float) -> str:
    """Of a reward or a return: four digits, and no more than are there."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.4g}"


def _figure(label: str, words: str, *, strong: bool = False) -> Line:
    return line(Span(f" {left(label, LABEL_WIDTH - 1)}", "dim"), Span(words, "strong" if strong else "text"))
