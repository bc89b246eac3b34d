"""What the shared library exports and needs, as the dynamic linker sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import waywiser
from tree import FAKE_FOLDER, ROOT

HEADER = ROOT / "native" / "include" / "waywiser" / "transfer.h"
INTERFACE_SOURCE = ROOT / "native" / "src" / "transfer" / "capi.cpp"
PACKAGE = ROOT / "python" / "waywiser"
FAKE_PACKAGE = FAKE_FOLDER / "waywiser_fake"
LIBRARIES = {
    "real": PACKAGE / "lib" / "libwaywiser_transfer.so.2",
    "fake": FAKE_PACKAGE / "lib" / "libwaywiser_transfer_fake.so.2",
}
PACKAGES = {"real": PACKAGE, "fake": FAKE_PACKAGE}

PUBLIC = "WAYWISER_2"
PRIVATE = f"WAYWISER_PRIVATE_{waywiser.__version__}"
INSIDE = re.compile(r"(?:typeinfo for |typeinfo name for |vtable for )?waywiser::")
FOREIGN_LIBRARY = re.compile(r"hwloc|python|cudart|libcuda")
FOREIGN_SYMBOL = re.compile(r"Py|_Py|hwloc_|cuda|__cuda|cu[A-Z]")

pytestmark = pytest.mark.skipif(shutil.which("nm") is None, reason="binutils are not installed")


def said(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def built(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def module(kind: str, name: str) -> Path:
    found = sorted(PACKAGES[kind].glob(f"{name}.*.so"))
    if not found:
        pytest.skip(f"{name} is not built in {PACKAGES[kind]}")
    return found[0]


def symbols(path: Path, which: str) -> list[tuple[str, str]]:
    """(name, version) of dynamic symbols: ``--defined-only`` or ``--undefined-only``."""
    answer = said("nm", "--dynamic", "--with-symbol-versions", "--demangle", which, path)
    found = []
    for line in answer.splitlines():
        name = line[19:]  # an address or blanks, the type and a blank
        name, _, version = name.rpartition("@") if "@" in name else (name, "", "")
        found.append((name.rstrip("@"), version))
    assert found, answer
    return found


def exported(path: Path) -> dict[str, list[str]]:
    """The exported names of each symbol node; the nodes themselves are left out."""
    nodes: dict[str, list[str]] = {}
    for name, version in symbols(path, "--defined-only"):
        if name not in (PUBLIC, PRIVATE):
            nodes.setdefault(version, []).append(name)
    return nodes


def declared() -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    names = re.findall(r"^WAYWISER_API [^;]*?\b(waywiser_\w+)\(", text, re.MULTILINE)
    assert len(names) == text.count("\nWAYWISER_API ")
    return set(names)


def needed(path: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", said("readelf", "--dynamic", "--wide", path))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_all_exported_symbols_belong_to_the_two_nodes(kind: str) -> None:
    nodes = exported(built(LIBRARIES[kind]))
    assert set(nodes) <= {PUBLIC, PRIVATE}
    assert [name for name in nodes[PRIVATE] if not INSIDE.match(name)] == []
    assert set(nodes.get(PUBLIC, [])) <= declared()


@pytest.mark.skipif(not INTERFACE_SOURCE.exists(), reason=f"there is no {INTERFACE_SOURCE} yet")
@pytest.mark.parametrize("kind", LIBRARIES)
def test_all_declared_functions_are_exported(kind: str) -> None:
    assert set(exported(built(LIBRARIES[kind]))[PUBLIC]) == declared()


@pytest.mark.parametrize("kind", LIBRARIES)
def test_it_needs_neither_hwloc_nor_python_nor_a_cuda_library(kind: str) -> None:
    library = built(LIBRARIES[kind])
    loaded = [line.split()[0] for line in said("ldd", library).splitlines()]
    assert [name for name in loaded if FOREIGN_LIBRARY.search(name)] == []
    undefined = [name for name, _ in symbols(library, "--undefined-only")]
    assert [name for name in undefined if FOREIGN_SYMBOL.match(name)] == []


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("name", ["_native", "_transfer"])
def test_a_module_links_the_library_and_exports_only_its_start(kind: str, name: str) -> None:
    path = module(kind, name)
    assert LIBRARIES[kind].name in needed(path)
    assert symbols(path, "--defined-only") == [(f"PyInit_{name}", "")]


@pytest.mark.parametrize("kind", LIBRARIES)
def test_the_registries_are_those_of_the_library(kind: str) -> None:
    undefined = symbols(module(kind, "_native"), "--undefined-only")
    for each in ("Executor", "MemoryKind"):
        assert (f"waywiser::Registry<waywiser::{each}>::instance()", PRIVATE) in undefined


@pytest.mark.parametrize("kind", LIBRARIES)
def test_the_module_of_the_copies_uses_the_public_interface_alone(kind: str) -> None:
    undefined = symbols(module(kind, "_transfer"), "--undefined-only")
    ours = {version for _, version in undefined if version.startswith("WAYWISER")}
    assert ours == {PUBLIC}


def test_an_error_of_the_library_is_caught_by_its_type(
    fake_native_environment: dict[str, str],
) -> None:
    script = (
        "from waywiser_fake import _native\n"
        "try: _native.Memory('pinned', 'nowhere', {})\n"
        "except _native.NotSupported as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=fake_native_environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("'nowhere' is not a place")
