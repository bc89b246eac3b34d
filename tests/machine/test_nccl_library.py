from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from waywiser.machine.nccl_library import (
    NAME,
    NcclError,
    NcclLibrary,
    TriedNccl,
    find_nccl,
    try_nccl,
    use_nccl,
)


def a_library(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).touch()
    return str(folder / NAME)


def a_cache(file: Path, *paths: str) -> str:
    """What ldconfig writes, in short: names and paths with NUL between."""
    file.write_bytes(b"glibc-ld.so.cache1.1\0" + b"".join(os.fsencode(p) + b"\0" for p in paths))
    return str(file)


def test_it_is_looked_for_in_this_order(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    torch = a_library(packages / "torch" / "lib")
    system = tmp_path / "system" / NAME
    cache = a_cache(tmp_path / "cache", "libnccl.so.2", str(system), "libz.so", "/lib/libz.so")
    environment: dict[str, str] = {}

    def found() -> NcclLibrary | None:
        return find_nccl(environment, [str(packages)], cache)

    assert found() == NcclLibrary(torch, "PyTorch")
    wheel = a_library(packages / "nvidia" / "nccl" / "lib")
    assert found() == NcclLibrary(wheel, "wheel")
    a_library(system.parent)
    assert found() == NcclLibrary(str(system), "system")
    environment["LD_LIBRARY_PATH"] = f"/nowhere:{tmp_path / 'own'}"
    own = a_library(tmp_path / "own")
    assert found() == NcclLibrary(own, "system")
    environment["WAYWISER_NCCL"] = "/named/libnccl.so.2"
    assert found() == NcclLibrary("/named/libnccl.so.2", "WAYWISER_NCCL")


def test_there_may_be_none(tmp_path: Path) -> None:
    assert find_nccl({}, [str(tmp_path), ""], str(tmp_path / "no-cache")) is None


def test_a_named_library_holds_for_children_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYWISER_NCCL", "former")
    monkeypatch.chdir(tmp_path)
    path = a_library(tmp_path / "own")
    use_nccl(f"own/{NAME}")
    assert os.environ["WAYWISER_NCCL"] == path
    with pytest.raises(NcclError, match=r"nowhere: there is no such library"):
        use_nccl("nowhere")


class NotLoaded(Exception):
    pass


def a_native(answer: Any) -> Any:
    def version() -> str:
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    return SimpleNamespace(nccl_version=version, NotSupported=NotLoaded, NcclError=NotLoaded)


def test_a_library_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_NCCL", "/own/libnccl.so.2")
    library = NcclLibrary("/own/libnccl.so.2", "WAYWISER_NCCL")
    assert try_nccl(a_native("2.27.3")) == TriedNccl(library, "2.27.3")
    assert try_nccl(a_native(NotLoaded("no"))) == TriedNccl(library, reason="no")
