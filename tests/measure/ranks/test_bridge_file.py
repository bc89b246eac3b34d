"""Which bridge a rank loads on its node."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.measure.ranks.bridge_file import bridge_here, received_bridge, sha256_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_rank_loads_the_bridge_of_its_launch_or_the_one_that_its_node_received(
    tmp_path: Path,
) -> None:
    compiled = tmp_path / "bridge.so"
    compiled.write_bytes(b"compiled")
    digest = sha256_of(str(compiled))
    assert bridge_here(str(compiled)) == bridge_here(str(compiled), digest) == str(compiled)
    received = received_bridge(digest)
    assert bridge_here("/nowhere/bridge.so", digest) == "/nowhere/bridge.so", "the error names it"
    received.write_bytes(b"compiled")
    assert bridge_here("/nowhere/bridge.so", digest) == str(received)
    compiled.write_bytes(b"by another compiler")
    assert bridge_here(str(compiled), digest) == str(received)


def test_no_file_has_no_hash(tmp_path: Path) -> None:
    assert sha256_of(str(tmp_path / "none")) == ""
