from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_tui.engine.sampling.environments.unity import clients, ports
from rl_tui.engine.sampling.environments.unity.environment import UnityEnvironment
from tests.sampling.unity.playing import free_port, unity_settings


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityEnvironment]:
    """An environment in the Editor, on a port of its own."""
    monkeypatch.setattr(ports, "EDITOR_PORT", free_port())
    environment = UnityEnvironment(None, 0, unity_settings(tmp_path))
    yield environment
    environment.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Players that go on although they should leave are not waited for."""
    for name in ("_LEAVE_SECONDS", "_EXIT_SECONDS"):
        monkeypatch.setattr(clients, name, 0.1)
