from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
import scripted_native

from waywiser.machine import native


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The scripted registry in place of the native library."""
    monkeypatch.setenv(native.MODULE_VARIABLE, scripted_native.__name__)
    native.load.cache_clear()
    yield scripted_native
    native.load.cache_clear()


@pytest.fixture
def scripted_whole(scripted: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same with memory that moves by itself, files, and executors of layouts."""
    memories = [*scripted.memories(), *scripted.more_memories()]
    executors = [*scripted.executors(), *scripted.more_executors()]
    monkeypatch.setattr(scripted, "memories", lambda: memories)
    monkeypatch.setattr(scripted, "executors", lambda: executors)
    return scripted
