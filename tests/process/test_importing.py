"""Large imports cost no search for garbage."""

from __future__ import annotations

import gc

import pytest

from rl_tui.engine.process.imports import imports_that_stay


def test_what_is_imported_is_never_searched_for_garbage() -> None:
    searched: list[str] = []
    count = gc.get_freeze_count()
    gc.callbacks.append(lambda phase, _: searched.append(phase))
    try:
        with imports_that_stay():
            kept = [[index] for index in range(10_000)]
        assert searched == []
    finally:
        gc.callbacks.pop()
    assert gc.get_freeze_count() - count > len(kept)
    assert gc.isenabled()


def test_import_that_fails_leaves_the_search_on() -> None:
    with pytest.raises(ModuleNotFoundError), imports_that_stay():
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401
    assert gc.isenabled()
