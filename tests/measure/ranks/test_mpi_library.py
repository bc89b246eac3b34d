"""How the MPI library is found, and its bridge compiled once."""

from __future__ import annotations

import os
import platform
import pwd
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpi_wheels import mpicc_of
from waywiser.machine import native
from waywiser.measure.ranks import mpi_library
from waywiser.measure.ranks.bridge_file import loaded_bridge
from waywiser.measure.ranks.mpi_library import (
    VARIABLE,
    Mpicc,
    MpiError,
    MpiLibrary,
    find_library,
    find_mpicc,
    launcher_beside,
)
from waywiser.words.user_cache import CacheError

Program = Callable[..., str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Makes a program of the shell; returns its path."""

    def make(name: str, script: str = "exit 0") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of compiled bridges, which need not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "waywiser" / "mpi"


def test_mpicc_is_looked_for_in_the_documented_order(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, named = program("given/mpicc.mpich"), program("named/mpicc")
    in_path, in_python = program("path/mpicc"), program("python/bin/mpicc")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    environment = {VARIABLE: named, "PATH": str(tmp_path / "path")}
    assert find_mpicc(given, environment) == Mpicc(given, "--mpicc")
    assert find_mpicc("", environment) == Mpicc(named, VARIABLE)
    del environment[VARIABLE]
    assert find_mpicc("", environment) == Mpicc(in_path, "PATH")
    environment["PATH"] = str(tmp_path)
    assert find_mpicc("", environment) == Mpicc(in_python, "Python environment")
    os.unlink(in_python)
    with pytest.raises(MpiError, match=r"no mpicc was found: .*--mpicc, in WAYWISER_MPICC, in P"):
        find_mpicc("", environment)


def test_a_name_is_looked_for_in_the_path(program: Program, tmp_path: Path) -> None:
    path = program("mpicc.site")
    assert find_mpicc("mpicc.site", {"PATH": str(tmp_path)}).path == path


def test_a_named_mpicc_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mpicc").touch()
    for given, environment, by in (
        (str(tmp_path / "mpicc"), {}, "--mpicc"),
        ("", {VARIABLE: "nowhere"}, VARIABLE),
    ):
        with pytest.raises(MpiError, match=rf"{by} names no program that can be run"):
            find_mpicc(given, environment)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_a_bridge_is_compiled_once(name: str, cache: Path) -> None:
    mpicc = mpicc_of(name)
    first = find_library(mpicc)
    assert not first.was_cached
    made = os.stat(first.bridge)
    second = find_library(mpicc)
    assert second.was_cached
    assert os.stat(second.bridge) == made
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[name] == first.name
    assert first.version[0] == "5"
    assert first.launcher == mpicc.replace("mpicc", "mpiexec")
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".so"], "nothing else"


def test_another_source_is_another_bridge(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mpicc = mpicc_of("mpich")
    before = find_library(mpicc).bridge
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("bridge.c", "bridge.h"):
        text = (mpi_library.SOURCES / name).read_text()
        (sources / name).write_text(f"{text}\n/* changed */\n")
    monkeypatch.setattr(mpi_library, "SOURCES", sources)
    after = find_library(mpicc)
    assert not after.was_cached
    assert after.bridge != before


def test_another_architecture_is_another_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of several kinds may share a home."""
    mpicc = mpicc_of("mpich")
    before = find_library(mpicc).bridge
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert find_library(mpicc).bridge != before


def test_other_flags_of_mpicc_are_another_bridge(program: Program) -> None:
    real = mpicc_of("mpich")
    mpicc = program("mpicc", f'exec {real} -DFIRST "$@"')
    before = find_library(mpicc).bridge
    program("mpicc", f'exec {real} -DSECOND "$@"')
    assert find_library(mpicc).bridge != before


def test_the_first_error_of_a_mpicc_that_fails_is_shown(program: Program, cache: Path) -> None:
    said = (
        "In file included from nowhere\n"
        "bridge.c:5:10: fatal error: mpi.h: No such file or directory\n"
        "compilation terminated."
    )
    mpicc = program("mpicc", f"cat >&2 <<'END'\n{said}\nEND\nexit 1")
    with pytest.raises(
        MpiError, match=r"mpicc: mpicc cannot compile the bridge to MPI: bridge\.c:5:10: fatal err"
    ) as caught:
        find_library(mpicc)
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == [], "nothing half is left"


def test_a_library_that_does_not_load_is_no_bridge(program: Program, cache: Path) -> None:
    mpicc = program(
        "mpicc", 'for word; do [ "$was" = -o ] && echo no library >"$word"; was=$word; done'
    )
    for _ in range(2):
        with pytest.raises(MpiError, match=r"the MPI library does not load: .*: file too short"):
            find_library(mpicc)
    assert list(cache.iterdir()) == []


def test_without_a_home_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", missing)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.raises(CacheError, match=r"has no home \(name a folder with XDG_CACHE_HOME\)"):
        find_library(mpicc_of("mpich"))


def test_a_part_of_the_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, program: Program, tmp_path: Path
) -> None:
    monkeypatch.setattr(mpi_library, "SOURCES", tmp_path)
    with pytest.raises(MpiError, match=rf"{tmp_path}/bridge\.h: a part of the package is missing"):
        find_library(program("mpicc"))


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("MPICH Version:      5.0.2", "MPICH", "5.0.2"),
        ("Open MPI v5.0.11, package: Open MPI root@x Distribution", "Open MPI", "5.0.11"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS", "Intel(R) MPI Library", "2021.18"),
        ("MVAPICH2 Version      :       2.3.7", "MVAPICH2", "2.3.7"),
        ("CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)", "CRAY MPICH", "8.1.25.17"),
        ("another", "another", ""),
    ],
)
def test_name_and_version_are_in_what_a_library_calls_itself(
    text: str, name: str, version: str
) -> None:
    library = MpiLibrary(Mpicc("/mpicc", "PATH"), "/b.so", text, "", was_cached=True)
    assert (library.name, library.version) == (name, version)


@pytest.mark.parametrize(
    ("compiler", "others", "launcher"),
    [
        ("mpicc", ["mpiexec", "mpirun"], "mpiexec"),
        ("mpicc.mpich", ["mpiexec", "mpiexec.mpich"], "mpiexec.mpich"),
        ("mpicc", ["mpirun"], "mpirun"),
        ("cc", [], ""),
    ],
)
def test_the_launcher_is_beside_mpicc(
    compiler: str, others: list[str], launcher: str, program: Program
) -> None:
    mpicc = program(f"bin/{compiler}")
    for each in others:
        program(f"bin/{each}")
    assert os.path.basename(launcher_beside(mpicc)) == launcher


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)


def _of_an_earlier_version(path: Path) -> None:
    path.write_text('{"text":"MPICH 5.0.2"}')


def _not_utf8(path: Path) -> None:
    path.write_bytes(b'{"text":"\xff\xfe","sha256":"\xed"}')


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _writable(path: Path) -> None:
    path.chmod(0o666)


def _missing(path: Path) -> None:
    path.unlink()


DAMAGES = (
    *(_empty, _cut, _changed, _of_an_earlier_version, _not_utf8, _folder, _fifo, _device),
    *(_dangling, _writable, _missing),
)


@pytest.mark.parametrize("suffix", [".json", ".so"])
def test_what_is_damaged_is_compiled_again(
    suffix: str, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpicc = program(
        "mpicc", 'for word; do [ "$was" = -o ] && echo a bridge >"$word"; was=$word; done'
    )
    monkeypatch.setattr(mpi_library, "_library_text", lambda mpicc, bridge: "MPICH 5.0.2")
    library = find_library(mpicc)
    for damage in DAMAGES:
        damage(Path(library.bridge).with_suffix(suffix))
        again = find_library(mpicc)
        assert not again.was_cached, damage
        assert Path(again.bridge).read_text() == "a bridge\n"
        assert (again.text, again.bridge) == (library.text, library.bridge)
        assert find_library(mpicc).was_cached, damage


def test_a_bridge_that_others_could_have_written_is_not_loaded(cache: Path) -> None:
    library = find_library(mpicc_of("mpich"))
    cache.parent.chmod(0o777)
    with pytest.raises(CacheError, match=r"waywiser: .*: other users .*chmod go-w .*XDG_CACHE"):
        find_library(mpicc_of("mpich"))
    with pytest.raises(CacheError, match="the bridge to MPI is not loaded"):
        loaded_bridge(native.load(), library.bridge)
    cache.parent.chmod(0o755)
    Path(library.bridge).chmod(0o666)
    with pytest.raises(CacheError, match=r"bridge-\w+\.so: other users may write to it"):
        loaded_bridge(native.load(), library.bridge)


def test_a_mpicc_may_print_in_any_encoding(program: Program) -> None:
    mpicc = program("mpicc", "printf 'Fehler: \\374berall \\377 error\\n' >&2; exit 1")
    with pytest.raises(MpiError, match=r"cannot compile the bridge to MPI: Fehler: .berall"):
        find_library(mpicc)


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/ld: final link failed: No space left on device",
        "cc1: fatal error: error writing to /tmp/ccX.s: Disk quota exceeded",
    ],
)
def test_a_full_folder_for_temporary_files_is_named(line: str, program: Program) -> None:
    mpicc = program(
        "mpicc", f"echo '{line}' >&2; echo 'collect2: error: ld returned 1' >&2; exit 1"
    )
    with pytest.raises(MpiError, match=r"temporary files, \S+, is full: .*with TMPDIR\)"):
        find_library(mpicc)


def test_a_mpicc_that_writes_nothing_is_an_error(program: Program) -> None:
    with pytest.raises(MpiError, match="mpicc ended without an error and wrote no file"):
        find_library(program("mpicc"))


def in_file_system(options: str, script: str, folder: Path) -> str:
    """What a script prints that has a file system of its own at a folder. Skips the test where
    mount namespaces are forbidden."""
    folder.mkdir()
    mount = f"mount -t tmpfs -o {options} tmpfs {folder} || exit 77\n"
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{script}"
    words = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c"]
    done = subprocess.run(
        [*words, f'{mount}exec "$@"', "bash", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        check=False,
    )
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    return done.stdout


FINDS = """
from waywiser.machine import native
from waywiser.measure.ranks import mpi_library
from waywiser.measure.ranks.bridge_file import loaded_bridge
from waywiser.words import WaywiserError
mpi_library._library_text = lambda mpicc, bridge: ""
try:
    mpi_library.find_library({mpicc!r})
except WaywiserError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("noexec", r"is on a file system that is mounted noexec.*another folder with XDG_CACHE"),
        ("size=4k", r"is full \(No space left .*another folder with XDG_CACHE_HOME"),
    ],
)
def test_limits_of_the_file_system_of_bridges_are_named(
    options: str, said: str, program: Program, tmp_path: Path
) -> None:
    mpicc = program(
        "mpicc",
        'for word; do [ "$was" = -o ] && head -c 99999 /dev/zero >"$word"; was=$word; done',
    )
    printed = in_file_system(options, FINDS.format(mpicc=mpicc), tmp_path / "mounted")
    assert re.search(said, printed), printed
