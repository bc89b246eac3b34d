"""Surveys of files in processes of their own: real files, real workers, no GPU."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from own_lock import commands, finish
from waywiser.profile import Profile

Run = Callable[..., "subprocess.Popen[str]"]
DIRECT = "by direct-io"


@pytest.fixture
def run(fake_native_environment: dict[str, str], tmp_path: Path) -> Iterator[Run]:
    """Starts ``waywiser survey`` without a GPU in ``tmp_path``."""
    with commands(tmp_path, fake_native_environment) as start:
        yield lambda *arguments: start("survey", *arguments, WAYWISER_FAKE="devices=0")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(3 << 20))
    os.utime(file, (1_000_000_000, 1_000_000_000))
    return file


def require_direct(folder: Path) -> None:
    file = folder / "try"
    file.touch()
    try:
        os.close(os.open(file, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no direct I/O in {folder}: {error}")
    finally:
        file.unlink()


def test_a_file_is_read_and_a_scratch_file_both_ways(run: Run, tmp_path: Path, data: Path) -> None:
    require_direct(tmp_path)
    before = hashlib.sha256(data.read_bytes()).digest()
    code, _out, err = finish(
        run("--preset", "quick", "--file", "data", "--sizes", "64KiB,1MiB", "-o", "a.wwp")
    )
    assert code == 0, err
    assert f"{data} (3 MiB," in err and "is read, never written" in err
    assert "scratch files of at most" in err
    assert hashlib.sha256(data.read_bytes()).digest() == before
    assert data.stat().st_mtime == 1_000_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wwp", "data"]
    with Profile.open(tmp_path / "a.wwp") as profile:
        done = {str(v.workload.transfers[0].path): v for v in profile.visits() if not v.failure}
        failed = [v.failure for v in profile.visits() if v.failure]
        known = profile.machine.files
        environment = profile.environment
    assert failed == []
    assert {place.name for place in known} >= {"scratch", str(data)}
    assert environment["files"]["scratch"]["path"] == str(tmp_path)
    assert f"file@file:{data} -> pageable@numa:0 by direct-io" in done
    assert f"mapped@file:{data} -> pageable@numa:0 by cpu" in done
    assert "pageable@numa:0 -> file@file:scratch by direct-io" in done
    assert not any(str(path).endswith(f"@file:{data}") for path in done)


def test_a_size_beyond_the_file_or_below_a_block_is_an_error(run: Run, data: Path) -> None:
    code, out, err = finish(
        run("--only", f"file@file:{data}", "--file", "data", "--sizes", "8,4MiB", "--dry-run")
    )
    assert code == 2
    assert f"4 MiB needs 4 MiB of file:{data}, 3 MiB is what the file has" in err + out
    assert "nothing is left to measure" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--file", "missing"), "missing: it cannot be read: No such file"),
        (("--file", "."), "is a folder"),
        (("--file", "/dev/null"), "not an ordinary file"),
        (("--scratch", "missing"), "no scratch file can be made there"),
        (("--scratch", "/proc"), "no scratch file can be made there"),
        (("--scratch", ".", "--no-scratch"), "say opposite things"),
        (("--resume", "-o", "a.wwp", "--file", "x"), "x: it cannot be read: No such file"),
    ],
)
def test_bad_input_is_one_line_and_two(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = finish(
        run("--dry-run", *arguments) if "-o" not in arguments else run(*arguments)
    )
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and says in err


def test_without_scratch_no_file_is_a_place(run: Run) -> None:
    code, out, _ = finish(run("--no-scratch", "--dry-run", "--preset", "quick"))
    assert code == 0 and "file:" not in out


def test_a_survey_of_files_is_resumed_with_the_same_files(
    run: Run, tmp_path: Path, data: Path
) -> None:
    require_direct(tmp_path)
    only = ("--preset", "quick", "--only", DIRECT, "--sizes", "16KiB:256KiB", "--file", "data")
    process = run(*only, "-o", "a.wwp")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not _stored(tmp_path / "a.wwp"):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code != 0 and "--resume" in err
    stored = _stored(tmp_path / "a.wwp")

    data.rename(tmp_path / "gone")
    code, out, err = finish(run("--resume", "-o", "a.wwp"))
    assert code == 2 and "No such file" in err and err.count("\n") == 1
    (tmp_path / "data").write_bytes(b"x" * 4096)
    code, out, err = finish(run("--resume", "-o", "a.wwp"))
    assert out == ""
    assert code == 2 and "has 4096 bytes now" in err
    (tmp_path / "gone").rename(data)
    code, _out, err = finish(run("--resume", "-o", "a.wwp"))
    assert code == 0, err
    assert _stored(tmp_path / "a.wwp") > stored
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wwp", "data"]


def _stored(file: Path) -> int:
    if not file.exists():
        return 0
    try:
        with Profile.open(file) as profile:
            return len(profile.finished())
    except Exception:  # it is being made
        return 0
