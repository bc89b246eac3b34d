from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.measure.ranks.watching import (
    OwnFiles,
    is_running,
    launcher_of,
    own_files_here,
    wait_until,
)

from waywiser.measure.ranks.launch import Launch


@pytest.fixture
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_native_environment: dict[str, str]
) -> None:
    """Ranks find the library over the fake GPU; temporary files are in a folder of the test."""
    monkeypatch.setenv("PYTHONPATH", fake_native_environment["PYTHONPATH"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def files() -> Iterator[OwnFiles]:
    """What launches of the test make, of which nothing may be left."""
    with own_files_here() as files:
        yield files


@pytest.fixture
def nothing_left(files: OwnFiles) -> Iterator[Callable[[Launch], None]]:
    """Call it with a launch: in the end its processes are gone, and what it had made. A test that
    is skipped before has none."""
    pids: list[int] = []

    def watch(launch: Launch) -> None:
        pids.extend(
            [launch.launcher.pid, launcher_of(launch), *(rank.pid for rank in launch.ranks)]
        )

    yield watch
    if pids:
        assert files.seen
    assert wait_until(lambda: not any(map(is_running, pids)))
