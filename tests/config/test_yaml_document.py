"""Reading YAML: what values mean, where they are, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.diagnostics import Mark
from rl_tui.engine.config.yaml_document import Document, plain_value, read_yaml


def errors(content: str | bytes) -> list[tuple[int, int, str]]:
    """Line, column and text of every error."""
    document = read_yaml(content.encode() if isinstance(content, str) else content)
    return [(*(diagnostic.mark or Mark(0, 0)), diagnostic.text) for diagnostic in document.diagnostics]


def values(text: str) -> dict[str, object]:
    document = read_yaml(text.encode())
    assert document.diagnostics == []
    return document.values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e5", 1e5),
        ("3e-4", 3e-4),
        ("5.0e6", 5e6),
        ("1.0e-4", 1e-4),
        ("-2.5", -2.5),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("0", 0),
        ("-0", 0),
        ("12_000", 12000),
        ("0x1F", 31),
        ("-0b101", -5),
        ("64.7", 64.7),
        ("yes", True),
        ("Off", False),
        ("True", True),
        ("~", None),
        ("Null", None),
        ("", None),
        ("none", "none"),
        ("y", "y"),
        ("e5", "e5"),
        ("1e", "1e"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("-", "-"),
        ("0x", "0x"),
        ("0x_", "0x_"),
        ("1.2.3", "1.2.3"),
        ("inf", "inf"),
        ("٣", "٣"),
    ],
)
def test_unquoted_words_have_their_usual_meaning(text: str, value: object) -> None:
    found = plain_value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("quoted", ["'1e5'", '"1e5"'])
def test_quoted_number_is_text(quoted: str) -> None:
    assert values(f"a: {quoted}") == {"a": "1e5"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".inf", "must be a finite number, got .inf"),
        ("-.INF", "must be a finite number, got -.INF"),
        (".NaN", "must be a finite number, got .NaN"),
        ("1e999", "must be a finite number, got 1e999"),
        ("9223372036854775808", "must be a number within 64 bits, got 9223372036854775808"),
        ("1" * 5000, f"must be a number within 64 bits, got {'1' * 77}..."),
        ("0777", "must have no leading zero (octal in YAML 1.1) or be quoted, got 0777"),
    ],
)
def test_unusable_number_is_refused_at_its_place(text: str, found: str) -> None:
    assert errors(f"a:\n  b: {text}\n") == [(2, 6, found)]


def test_keys_are_text_whatever_they_look_like() -> None:
    assert values("3DBall: 1\non: 2\n7: 3\nnull: 4\n'': 5\n") == {"3DBall": 1, "on": 2, "7": 3, "null": 4, "": 5}


def test_every_key_and_value_has_its_place() -> None:
    document = read_yaml(b"a:\n  b: [1, {c: 2}]\n'd e': |\n  text\n")
    assert document.values == {"a": {"b": [1, {"c": 2}]}, "d e": "text\n"}
    assert document.keys == {("a",): (1, 1), ("a", "b"): (2, 3), ("a", "b", 1, "c"): (2, 11), ("d e",): (3, 1)}
    assert document.key_values == {
        (): (1, 1),
        ("a",): (2, 3),
        ("a", "b"): (2, 6),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "b", 1, "c"): (2, 14),
        ("d e",): (3, 8),
    }


def test_columns_count_characters_and_lines_end_in_every_usual_way() -> None:
    document = read_yaml("ä: 1\r\nöü: {ß: 2}\n".encode())
    assert document.key_values["öü", "ß"] == (2, 9)


def test_byte_order_mark_is_skipped() -> None:
    assert read_yaml(b"\xef\xbb\xbfa: 1").values == {"a": 1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            [(3, 1, "duplicate key, first at line 1. Remove one of the two")],
        ),
        (
            "a: &x 1\nb: *x\n",
            [
                (1, 4, "must have no anchor, got &x"),
                (2, 4, "must be written out, got the alias *x"),
            ],
        ),
        ("a:\n  <<: {b: 1}\n", [(2, 3, "must be a key written out, got the merge key <<")]),
        (
            "a: !!python/object/apply:os.system [x]\n",
            [(1, 4, "must be a plain value, got the tag !!python/object/apply:os.system")],
        ),
        ("a: ! b\n", [(1, 4, "must be a plain value, got the tag !")]),
        (
            "? [a, b]\n: 1\n",
            [(1, 3, "must be a key of plain text, got a list, a mapping or an alias")],
        ),
        ("*x : 1\n", [(1, 1, "must be a key of plain text, got a list, a mapping or an alias")]),
        ("!!str a: 1\n", [(1, 1, "must be a plain key, got one with an anchor or a tag")]),
        ("~: 1\n", [(1, 1, "must be a key written out, got an empty key")]),
        ("a: 1\n---\nb: 2\n", [(2, 1, "must be one document, got a second one")]),
        ("", [(1, 1, "must be a mapping with keys such as `behaviors:`, got an empty file")]),
        ("# only this\n", [(1, 1, "must be a mapping with keys such as `behaviors:`, got an empty file")]),
        ("\n- a\n", [(2, 1, "must be a mapping with keys such as `behaviors:`, got a list")]),
        ("text", [(1, 1, 'must be a mapping with keys such as `behaviors:`, got "text"')]),
        (b"a: 1\nb: \xff\n", [(2, 4, "must be saved as UTF-8, got byte 0xff")]),
        ("a: 1\x00", [(1, 5, "must be printable text, got the control character U+0000")]),
        ("a: 1\nbc: \x1b[2J", [(2, 5, "must be printable text, got the control character U+001B")]),
        ("a:" + " [" * 40, [(1, 66, "must be at most 32 levels deep")]),
    ],
)
def test_yaml_that_hides_values_is_refused(content: str | bytes, expected: list[tuple[int, int, str]]) -> None:
    assert errors(content) == expected


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("a:\n\tb: 1\n", (2, 1), "Indent with spaces"),
        ("a: b: c\n", (1, 5), "mapping values are not allowed"),
        ("a: {b: 1\n", (1, 9), "Check the indentation"),
        ("a: 'b\nc: 1\n", (1, 4), "while scanning a quoted scalar"),
        ("a: 1\n b: 2\n", (2, 3), "mapping values are not allowed"),
        ("a: 1\nb\n", (2, 1), "invalid YAML (while scanning a simple key): expected ':'"),
        ("a: [1, 2\nb: 3]\n", (2, 2), "while parsing a flow sequence"),
        ("a: @b\n", (1, 4), "cannot start any token"),
    ],
)
def test_broken_yaml_is_reported_with_its_place(text: str, place: tuple[int, int], part: str) -> None:
    [(line, column, found)] = errors(text)
    assert (line, column) == place
    assert found.startswith("invalid YAML")
    assert part in found


def test_errors_before_broken_yaml_are_reported_too() -> None:
    assert [diagnostic[:2] for diagnostic in errors("a: 1\na: 2\nb: .nan\nc: {")] == [(2, 1), (3, 4), (4, 5)]


def test_endless_nesting_neither_crashes_nor_takes_long() -> None:
    assert errors("[" * 1_000_000) == [(1, 33, "must be at most 32 levels deep")]


def test_unusable_values_are_known() -> None:
    document = read_yaml(b"a: *x\nb: [1, .nan]\nc: !t {d: 1}\ne: 1\n")
    assert document.unusable == {("a",), ("b", 1), ("c",)}
    assert document.values["e"] == 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.binary(max_size=60), st.text("abc:-?*&!|>%@`'\"[]{}#,<~ \n\t01.e+_", max_size=40).map(str.encode)))
def test_any_bytes_give_a_document_or_errors_with_places(content: bytes) -> None:
    document = read_yaml(content)
    assert isinstance(document, Document)
    assert document.complete or document.diagnostics
    for diagnostic in document.diagnostics:
        assert diagnostic.mark is not None
        assert diagnostic.mark >= (1, 1)
        assert diagnostic.text.isprintable()
