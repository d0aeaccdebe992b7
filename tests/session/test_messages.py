"""Events as JSON lines."""

import contextlib
import dataclasses
import json
import math
import typing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.session.codec import decode, encode
from rl_tui.engine.session.messages import (
    DELTAS,
    Command,
    DevicesSampled,
    Envelope,
    EpisodeGroup,
    Event,
    Gpu,
    GpuProcess,
    Histogram,
    HyperparametersReported,
    LeagueSnapshot,
    LogEmitted,
    MetricsReported,
    ParameterStatus,
    ProgressReported,
    Range,
    RankStatus,
    RunProcess,
    Worker,
)
from rl_tui.engine.session.sentences import COMMAND_WORDS

EVENT_CLASSES = typing.get_args(Event)
FLOATS = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates, controls and quotes included
HISTOGRAMS = st.builds(
    Histogram, FLOATS, FLOATS, st.integers(0), FLOATS, FLOATS, *[st.lists(FLOATS, max_size=4).map(tuple)] * 2
)
NESTED = (
    DevicesSampled, EpisodeGroup, Gpu, GpuProcess, LeagueSnapshot, ParameterStatus, Range, RankStatus, RunProcess,
    Worker,
)  # fmt: skip


def strategy_of(hint: object) -> st.SearchStrategy:
    """Values of a field's type, so that a new event class is tested from the moment it exists."""
    simple = {float: FLOATS, int: st.integers(), str: TEXTS, bool: st.booleans(), Histogram: HISTOGRAMS}
    if hint in simple:
        return simple[hint]
    if hint in NESTED:
        return st.builds(hint, **{name: strategy_of(h) for name, h in typing.get_type_hints(hint).items()})
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(strategy_of(arguments[0]), max_size=3).map(tuple)
    if type(None) in arguments:
        return st.one_of(st.none(), *(strategy_of(a) for a in arguments if a is not type(None)))
    return st.dictionaries(TEXTS, strategy_of(arguments[1]), max_size=3)  # the only other type is a Mapping


def events(event_class: type) -> st.SearchStrategy:
    return st.builds(event_class, **{n: strategy_of(h) for n, h in typing.get_type_hints(event_class).items()})


@pytest.mark.parametrize("event_class", EVENT_CLASSES, ids=lambda c: c.__name__)
def test_every_event_survives_the_way_through_json(event_class):
    @settings(max_examples=40, deadline=None)
    @given(events(event_class), st.integers(1), st.floats(0, 2.5e11))
    def check(event, number, time):
        envelope = Envelope(number, time, event)
        line = encode(envelope)
        assert decode(line) == envelope
        assert line.isascii()
        assert "\n" not in line
        assert "\x1b" not in line

    check()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_written_as_strict_json(value):
    event = MetricsReported("B", 1, 0.5, {"Losses/Policy Loss": value}, value, None, None, True)
    line = encode(Envelope(1, 0.0, event))
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    back = decode(line).event
    assert repr(back.metrics["Losses/Policy Loss"]) == repr(value)
    assert repr(back.mean_return) == repr(value)


def test_a_line_names_schema_number_time_and_event():
    body = json.loads(encode(Envelope(7, 2.5, LogEmitted("info", "run", "hello"))))
    assert body == {
        "v": 1,
        "n": 7,
        "t": 2.5,
        "event": "LogEmitted",
        "level": "info",
        "source": "run",
        "message": "hello",
    }


def test_line_from_before_a_mapping_was_added_is_still_an_event():
    event = HyperparametersReported("B", {"beta": 1.0}, {"beta": Range(0.0)})
    body = json.loads(encode(Envelope(1, 0.0, event)))
    del body["ranges"]
    assert decode(json.dumps(body)).event == HyperparametersReported("B", {"beta": 1.0})


@pytest.mark.parametrize(
    ("allowed", "words", "good", "bad"),
    [
        (Range(0.0, above_minimum=True), "greater than 0", 1e-9, 0.0),
        (Range(0.0, 1.0), "from 0 to 1", 1.0, 1.1),
        (Range(1.0, is_whole=True), "a whole number of at least 1", 3.0, 3.5),
        (Range(1.0, 9.0, is_whole=True), "a whole number from 1 to 9", 9.0, 10.0),
        (Range(0.0), "at least 0", 0.0, -0.1),
        (Range(), "", -1e9, math.nan),
    ],
)
def test_range_says_in_words_what_it_holds(allowed, words, good, bad):
    assert allowed.words == words
    assert allowed.holds(good)
    assert not allowed.holds(bad)


def test_unknown_fields_of_a_later_writer_are_left_out():
    body = json.loads(encode(Envelope(1, 0.0, LogEmitted("info", "run", "hello"))))
    assert decode(json.dumps(body | {"new": [1, 2]})).event == LogEmitted("info", "run", "hello")


def test_lines_from_before_a_field_was_added_are_still_events():
    """A field that came later has a default; those of the first version are required."""
    gpu = Gpu(0, "H", 50.0, 1, 2, 1.0, 1.0, 1.0, True, (GpuProcess(7, "python", None, True),))
    event = DevicesSampled((gpu,), "", 20.0, 2, 1, 4, 3, 4, 5)
    body = json.loads(encode(Envelope(1, 0.0, event)))
    assert decode(json.dumps(body)).event == event
    del body["gpus"][0]["processes"]
    assert decode(json.dumps(body)).event == dataclasses.replace(event, gpus=(dataclasses.replace(gpu, processes=()),))
    del body["gpus"][0]["name"]
    with pytest.raises(ValueError, match="not a complete event"):
        decode(json.dumps(body))


@pytest.mark.parametrize("kind", typing.get_args(Command), ids=lambda kind: kind.__name__)
def test_every_command_has_an_id_of_its_own_and_a_word_for_users(kind):
    required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    one, other = kind(*required), kind(*required)
    assert one.id != other.id
    assert kind.__name__ in COMMAND_WORDS


def _changed(**changes: object) -> str:
    body = json.loads(encode(Envelope(1, 0.0, ProgressReported("B", 1, 2, 3.0, 4))))
    return json.dumps({key: value for key, value in (body | changes).items() if value is not None})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        "\x00" * 100,
        "[" * 100_000,
        _changed(v=2),
        _changed(v=None),
        _changed(event="Envelope"),
        _changed(event=["LogEmitted"]),
        _changed(step=None),
        _changed(step="1"),
        _changed(step=1.5),
        _changed(step=True),
        _changed(behavior=3),
        _changed(steps_per_second="fast"),
        _changed(steps_per_second="1.0"),
        _changed(steps_per_second=[1.0]),
        _changed(steps_per_second=10**400),
        _changed(n="1"),
        _changed(t=10**400),
        _changed(t=1e300),
        _changed(t=-1e300),
        _changed(t=float("nan")),
        _changed(t="nan"),
    ],
    ids=lambda line: line[:60],
)
def test_anything_else_is_a_value_error(line):
    with pytest.raises(ValueError, match=r"."):
        decode(line)


@pytest.mark.parametrize("level", ["loud", 3, ["info"]])
def test_a_closed_choice_stays_closed(level):
    body = json.loads(encode(Envelope(1, 0.0, LogEmitted("info", "", ""))))
    with pytest.raises(ValueError, match="not a complete event"):
        decode(json.dumps(body | {"level": level}))


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda s: st.lists(s) | st.dictionaries(TEXTS, s))
)
def test_arbitrary_json_is_a_value_error(value):
    with pytest.raises(ValueError, match=r"."):
        decode(json.dumps(value))


@given(st.data())
def test_a_damaged_field_is_a_value_error_or_still_an_event(data):
    event_class = data.draw(st.sampled_from(EVENT_CLASSES))
    body = json.loads(encode(Envelope(1, 0.0, data.draw(events(event_class)))))
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(
        st.none() | st.integers() | st.text(max_size=3) | st.just([{}])
    )
    with contextlib.suppress(ValueError):
        assert isinstance(decode(json.dumps(body)).event, EVENT_CLASSES)


def test_all_deltas_are_events_and_all_events_are_frozen():
    assert set(DELTAS) < set(EVENT_CLASSES)
    for event_class in EVENT_CLASSES:
        assert event_class.__dataclass_params__.frozen
        assert not {field.name for field in dataclasses.fields(event_class)} & {"v", "n", "t", "event"}


@pytest.mark.parametrize(
    "event_class",
    [*EVENT_CLASSES, Gpu, GpuProcess, Histogram, ParameterStatus, RankStatus, RunProcess],
    ids=lambda c: c.__name__,
)
def test_the_documentation_names_every_event_and_field(event_class):
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
    if event_class in EVENT_CLASSES:
        assert f"**{event_class.__name__}**" in page
        page = page[page.index(f"**{event_class.__name__}**") :]
    for field in dataclasses.fields(event_class):
        assert f"`{field.name}`" in page
