"""Reading YAML: what values mean, where they are, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.config.diagnostics import Mark
from rl_tui.engine.config.yaml_document import Document, plain_value, read_yaml


def places(content: str) -> list[Mark | None]:
    """The line and column of every error."""
    return [diagnostic.mark for diagnostic in read_yaml(content.encode()).diagnostics]


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


def test_errors_before_broken_yaml_are_reported_too() -> None:
    assert places("a: 1\na: 2\nb: .nan\nc: {") == [(2, 1), (3, 4), (4, 5)]


def test_endless_nesting_neither_crashes_nor_takes_long() -> None:
    assert places("[" * 1_000_000) == [(1, 33)]


def test_unusable_values_are_known() -> None:
    document = read_yaml(b"a: *x\nb: [1, .nan]\nc: !t {d: 1}\ne: 1\n")
    assert document.unusable == {("a",), ("b", 1), ("c",)}
    assert document.values["e"] == 1


@given(st.one_of(st.binary(max_size=60), st.text("abc:-?*&!|>%@`'\"[]{}#,<~ \n\t01.e+_", max_size=40).map(str.encode)))
def test_any_bytes_give_a_document_or_errors_with_places(content: bytes) -> None:
    document = read_yaml(content)
    assert isinstance(document, Document)
    assert document.complete or document.diagnostics
    for diagnostic in document.diagnostics:
        assert diagnostic.mark is not None
        assert diagnostic.mark >= (1, 1)
        assert diagnostic.text.isprintable()
