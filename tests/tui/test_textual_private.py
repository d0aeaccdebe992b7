"""What rl-tui uses of Textual without a promise of Textual is there, in one file, and nothing else is."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from functools import cache
from pathlib import Path

import pytest
import textual

import rl_tui.tui
from rl_tui.tui import textual_private

TUI = Path(rl_tui.tui.__path__[0])
SYMBOLS = {  # by module, class or function, whose source must hold the name: what each is for
    "textual._ansi_sequences": {"ANSI_SEQUENCES_KEYS": "which keys a terminal can send"},
    "textual._compositor": {"CompositorUpdate": "painting single cells"},
    "textual._compositor:Compositor": {
        "visible_widgets": "where panes are on the terminal",
        "render_strips": "the text of a screenshot",
        "update_widgets": "headings in the picture of their lines",
    },
    "textual._parser": {"ParseTimeout": "ending a key that is not complete"},
    "textual._parser:Parser": {
        "_timeout_time": "whether a key is not complete",
        "_awaiting": "ending it",
        "_gen": "ending it",
        "_tokens": "the keys that it was",
    },
    "textual._styles_cache": {"StylesCache": "what is kept of widgets that are gone"},
    "textual._styles_cache:StylesCache": {"get_inner_outer": "what is kept of widgets that are gone"},
    "textual._time": {"get_time": "the clock of events"},
    "textual._xterm_parser": {
        "BRACKETED_PASTE_END": "pasted text",
        "BRACKETED_PASTE_START": "pasted text",
        "XTermParser": "keys from bytes",
    },
    "textual.app:App": {
        "_begin_update": "painting once",
        "_batch_count": "whether a picture is held back",
        "_capture_stdout": "not losing what is printed",
        "_capture_stderr": "not losing what is printed",
        "_close_messages_no_wait": "leaving on a failure",
        "_display": "painting what has changed",
        "_driver": "the terminal",
        "_end_update": "painting once",
        "_exception": "why the screen was left",
        "_exception_event": "leaving on a failure",
        "_filters": "no colors at all with NO_COLOR",
        "_get_screen": "mounting the help early",
        "_handle_exception": "leaving on a failure",
        "_refresh_truecolor_filter": "themes of the terminal's own colors",
        "_return_code": "leaving on a failure",
    },
    "textual.command:CommandPalette": {"_action_command_list": "paging through a list without lines"},
    "textual.driver:Driver": {"_app": "the app of a driver", "_loop": "its loop"},
    "textual.drivers._writer_thread": {"WriterThread": "the terminal that takes nothing"},
    "textual.drivers._writer_thread:WriterThread": {"_queue": "what the terminal has not taken"},
    "textual.drivers.linux_driver:LinuxDriver": {
        "_disable_mouse_support": "giving the terminal back",
        "_file": "writing to a terminal that is gone",
        "_key_thread": "giving the terminal back",
        "_sigcont_application": "fg",
        "_sigtstp_application": "ctrl+z",
        "_writer_thread": "what the terminal has not taken",
        "attrs_before": "the modes of the terminal before",
        "exit_event": "ending the thread that reads keys",
        "run_input_thread": "reading keys",
    },
    "textual.keys": {"_character_to_key": "names of keys in keys.yaml"},
    "textual.screen:Screen": {
        "_compositor": "where panes are on the terminal",
        "_compositor_refresh": "headings in the picture of their lines",
        "_layout_required": "headings in the picture of their lines",
        "_get_breakpoint_classes": "the layout of a size from the start",
    },
    "textual.timer:Timer": {"_skip": "firing also when late"},
    "textual.widget:Widget": {"_layout_updates": "the height of a pane", "_styles_cache": "rendering one line again"},
}
HARMLESS = {"_replace", "_exit", "_ArgumentGroup", "_option_string_actions"}  # Python's own


@pytest.mark.parametrize("owner", SYMBOLS)
def test_symbols_are_there(owner: str) -> None:
    module, _, name = owner.partition(":")
    found = importlib.import_module(module)
    source = inspect.getsource(getattr(found, name) if name else found)
    missing = [f"{symbol} ({use})" for symbol, use in SYMBOLS[owner].items() if symbol not in source]
    assert missing == [], f"Textual {textual.__version__} has no such thing in {owner}: see tui/textual_private.py"


def test_every_symbol_in_use_is_listed() -> None:
    listed = {symbol for symbols in SYMBOLS.values() for symbol in symbols}
    tree = ast.parse(Path(textual_private.__file__).read_text())
    used = private_imports(tree) | private_attributes(tree, of_self=True)
    assert used - listed == set()


@pytest.mark.parametrize("path", sorted(TUI.rglob("*.py")), ids=lambda path: str(path.relative_to(TUI)))
def test_no_other_file_uses_private_names(path: Path) -> None:
    tree = ast.parse(path.read_text())
    if path.name != "textual_private.py":
        assert private_imports(tree) == private_attributes(tree) - HARMLESS == set()


@pytest.mark.parametrize("path", sorted(TUI.rglob("*.py")), ids=lambda path: str(path.relative_to(TUI)))
def test_no_class_reuses_a_private_name_of_textual(path: Path) -> None:
    """By a name of its own that is Textual's too it would change what Textual does."""
    if path.name == "textual_private.py":
        return
    tree = ast.parse(path.read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not classes:
        return
    module = importlib.import_module(".".join(("rl_tui.tui", *path.relative_to(TUI).with_suffix("").parts)))
    for node in classes:
        bases = getattr(module, node.name).__mro__
        of_textual = {name for base in bases if base.__module__.startswith("textual.") for name in private_names(base)}
        assert own_private_names(node) & of_textual == set(), node.name


def private_imports(tree: ast.AST) -> set[str]:
    """What is imported from private modules of Textual or Rich, or is private in a public one."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("textual", "rich")
        for alias in node.names
        if "._" in str(node.module) or alias.name.startswith("_")
    }


def private_attributes(tree: ast.AST, *, of_self: bool = False) -> set[str]:
    """Private attributes of others, and with `of_self` one's own, too."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if of_self or ast.unparse(node.value) not in ("self", "cls", "super()")
    }


def own_private_names(tree: ast.ClassDef) -> set[str]:
    """Its private methods and attributes of `self`."""
    methods = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    attributes = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }
    return {name for name in methods | attributes if name.startswith("_") and not name.startswith("__")}


@cache
def private_names(base: type) -> set[str]:
    """The same of one of Textual's classes."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
    assert isinstance(tree, ast.ClassDef)
    return own_private_names(tree)
