"""What `scripts/check-wheel` finds wrong in a wheel, before it is installed."""

from __future__ import annotations

import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tree import ROOT


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("check_wheel", str(ROOT / "scripts" / "check-wheel"))
    spec = spec_from_loader("check_wheel", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


X86_64, AARCH64 = 62, 183
"""The numbers of processors in headers of binaries."""


def wheel(folder: Path, tags: str, *files: str, number: int = X86_64) -> Path:
    path = folder / f"waywiser-0.1.0-{tags}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, b"\x7fELF" + bytes(14) + number.to_bytes(2, "little"))
        archive.writestr("waywiser/__init__.py", "")
    return path


def needs(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    *libraries: str,
    **versions: tuple[int, ...],
) -> None:
    monkeypatch.setattr(script.binary_checks, "newest_symbols", lambda _: versions)
    monkeypatch.setattr(script.binary_checks, "needed", lambda _: [*libraries])


ABI3 = "cp312-abi3-manylinux_2_28_x86_64"


def test_a_module_for_one_python_in_a_wheel_of_the_stable_abi(
    tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(script, monkeypatch, GLIBC=(2, 17))
    good = wheel(tmp_path, ABI3, "waywiser/_native.abi3.so", "waywiser/lib/libhwloc.so.15")
    script.check_binaries(good, tmp_path / "good")
    bad = wheel(tmp_path, ABI3, "waywiser/_native.cpython-312-x86_64-linux-gnu.so")
    with pytest.raises(SystemExit, match=r"_native\.cpython-312\S* is not for the stable ABI"):
        script.check_binaries(bad, tmp_path / "bad")
    alone = wheel(tmp_path, "cp311-cp311-manylinux_2_28_x86_64", "waywiser/_native.cpython-311.so")
    script.check_binaries(alone, tmp_path / "alone")


@pytest.mark.parametrize("versions", [{"GLIBC": (2, 33)}, {"GLIBC": (2, 17), "GLIBCXX": (3, 4)}])
def test_a_library_that_needs_more_than_the_name_of_the_wheel_says(
    tmp_path: Path,
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    versions: dict[str, tuple[int, ...]],
) -> None:
    needs(script, monkeypatch, **versions)
    library = "waywiser.libs/libpciaccess-1.so"
    portable = wheel(tmp_path, ABI3, library)
    with pytest.raises(SystemExit, match=r"libpciaccess-1\.so needs .* newer than glibc 2\.28"):
        script.check_binaries(portable, tmp_path / "portable")
    script.check_binaries(wheel(tmp_path, "cp312-abi3-linux_x86_64", library), tmp_path / "own")


def test_a_library_that_not_every_system_has(
    tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "waywiser/lib/libhwloc.so.15"
    needs(script, monkeypatch, "libc.so.6", "libpciaccess.so.0", GLIBC=(2, 17))
    script.check_binaries(wheel(tmp_path, ABI3, library), tmp_path / "good")
    needs(script, monkeypatch, "libc.so.6", "libstdc++.so.6", GLIBC=(2, 17))
    with pytest.raises(SystemExit, match=r"libhwloc\.so\.15 needs \{'libstdc\+\+\.so\.6'\}"):
        script.check_binaries(wheel(tmp_path, ABI3, library), tmp_path / "bad")


def test_a_library_for_another_processor(
    tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(script, monkeypatch, GLIBC=(2, 17))
    tags, library = "cp311-cp311-manylinux_2_28_aarch64", "waywiser/lib/libhwloc.so.15"
    script.check_binaries(wheel(tmp_path, tags, library, number=AARCH64), tmp_path / "good")
    with pytest.raises(SystemExit, match=r"15 is for x86_64, and the wheel for aarch64"):
        script.check_binaries(wheel(tmp_path, tags, library), tmp_path / "bad")


def test_each_python_that_a_wheel_is_for_is_tried(
    tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"python3.11", "python3.12", "python3.13"}
    monkeypatch.setattr(script, "runs", lambda name: name in there)
    assert script.pythons(wheel(tmp_path, ABI3)) == ["python3.12", "python3.13"]
    assert script.pythons(wheel(tmp_path, "cp311-cp311-linux_x86_64")) == ["python3.11"]
    there.clear()
    with pytest.raises(SystemExit, match="no Python on PATH is one that"):
        script.pythons(wheel(tmp_path, ABI3))
