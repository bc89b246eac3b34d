"""A project outside of this one finds the library, compiles, links and runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import waywiser
from tree import FAKE_FOLDER, ROOT

BUILT = FAKE_FOLDER
"""The folder of the build that the tests use."""

INCLUDE = ROOT / "native" / "include"
PROJECT = ROOT / "tests" / "outside"
INTERFACE_SOURCE = ROOT / "native" / "src" / "transfer" / "capi.cpp"

ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    "PYTHONPATH": str(ROOT / "python"),
}
CMAKE = shutil.which("cmake", path=ENVIRONMENT["PATH"])

needs_build = pytest.mark.skipif(
    CMAKE is None or not (BUILT / "cmake_install.cmake").exists(),
    reason=f"CMake is missing or {BUILT} is not built",
)
needs_interface = pytest.mark.skipif(
    not INTERFACE_SOURCE.exists(), reason=f"there is no {INTERFACE_SOURCE} yet"
)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed(into: Path) -> Path:
    """The CMake folder of a prefix that was moved after it was installed."""
    run("cmake", "--install", BUILT, "--prefix", into / "first")
    prefix = (into / "first").rename(into / "moved")
    (config,) = prefix.rglob("waywiserConfig.cmake")
    return config.parent


def result(_: Path) -> Path:
    return Path(run(sys.executable, "-m", "waywiser", "--cmake-dir").strip())


@needs_build
@needs_interface
@pytest.mark.parametrize("find", [installed, result])
def test_an_outside_project_builds_and_copies(find, tmp_path: Path) -> None:
    build = tmp_path / "build"
    run("cmake", "-S", PROJECT, "-B", build, f"-Dwaywiser_DIR={find(tmp_path)}")
    run("cmake", "--build", build)
    said = run(build / "outside", tmp_path / "file")
    assert "copied 9437197 bytes" in said
    assert "not valid: " in said
    assert "copied 100000 bytes with interface 2" in run(build / "outside_c")


def installed_pkg_config(into: Path) -> Path:
    """The folder for pkg-config of a prefix that was moved after it was installed."""
    run("cmake", "--install", BUILT, "--prefix", into / "first")
    (file,) = (into / "first").rename(into / "moved").rglob("waywiser-transfer.pc")
    return file.parent


def wheel_pkg_config(into: Path) -> Path:
    """The same of what a wheel holds, with the library of this build: no link without a version."""
    build, package = into / "first", into / "moved" / "waywiser"
    run(
        "cmake", "-S", ROOT, "-B", build, "-DSKBUILD=ON", "-DWAYWISER_PYTHON=OFF",
        "-DWAYWISER_CUDA=OFF",
    )  # fmt: skip
    (package / "lib" / "pkgconfig").mkdir(parents=True)
    shutil.copy(build / "waywiser-transfer.pc", package / "lib" / "pkgconfig")
    library = ROOT / "python" / "waywiser" / "lib" / "libwaywiser_transfer.so.2"
    shutil.copy(library, package / "lib" / library.name)
    shutil.copytree(INCLUDE, package / "include")
    return package / "lib" / "pkgconfig"


def printed_pkg_config(_: Path) -> Path:
    return Path(run(sys.executable, "-m", "waywiser", "--pkg-config-dir").strip())


@needs_build
@needs_interface
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
@pytest.mark.parametrize(
    ("compiler", "source", "said"),
    [
        (("gcc", "-std=c11"), "docs/how-to/examples/copies.c", "copied 100000 bytes"),
        (("g++", "-std=c++20"), "tests/outside/main.cpp", "copied 9437197 bytes"),
    ],
)
@pytest.mark.parametrize("find", [installed_pkg_config, wheel_pkg_config, printed_pkg_config])
def test_a_program_is_compiled_with_pkg_config(
    find: Callable[[Path], Path],
    compiler: tuple[str, str],
    source: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    folder = find(tmp_path)
    monkeypatch.setitem(ENVIRONMENT, "PKG_CONFIG_PATH", str(folder))
    flags = run("pkg-config", "--cflags", "--libs", "waywiser-transfer").split()
    assert str(tmp_path / "first") not in " ".join(flags)
    assert run("pkg-config", "--modversion", "waywiser-transfer").strip() == waywiser.__version__
    run(*compiler, ROOT / source, "-o", tmp_path / "program", *flags)
    libraries = run("pkg-config", "--variable=libdir", "waywiser-transfer").strip()
    if find is installed_pkg_config:  # the linker searches no such prefix
        monkeypatch.setitem(ENVIRONMENT, "LD_LIBRARY_PATH", libraries)
    assert said in run(tmp_path / "program", tmp_path / "file")


@needs_build
def test_only_the_public_headers_are_installed(tmp_path: Path) -> None:
    installed(tmp_path)
    headers = {path.name for path in (tmp_path / "moved" / "include").rglob("*.h*")}
    assert headers == {"transfer.h", "transfer.hpp"}


@pytest.mark.parametrize(
    ("compiler", "language", "standard", "header"),
    [
        ("gcc", "c", "c11", "transfer.h"),
        ("clang", "c", "c11", "transfer.h"),
        ("g++", "c++", "c++20", "transfer.hpp"),
        ("clang++", "c++", "c++20", "transfer.hpp"),
    ],
)
def test_a_header_compiles_without_warnings(
    compiler: str, language: str, standard: str, header: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "alone"
    source.write_text(f"#include <waywiser/{header}>\nint main(void) {{ return 0; }}\n")
    warnings = ("-Wall", "-Wextra", "-pedantic", "-Werror")
    run(
        compiler, "-x", language, f"-std={standard}", *warnings, "-fsyntax-only",
        f"-I{INCLUDE}", source,
    )  # fmt: skip
