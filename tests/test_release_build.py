"""The binaries of wheels, as `make release` builds them: the GPUs, libraries and symbols they need.

What is read is the binary, so that no GPU and no old distribution is needed.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

import binary_checks
import cuda_toolkit
import old_glibc
from guest_machines.image import FETCHED
from tree import ROOT

BUILDS = [ROOT / "build" / name / "native" for name in ("release", "release-checks")]
"""What `make release` and `make release-checks` build."""

CUOBJDUMP = ROOT / ".deps" / "release" / "cuda" / "bin" / "cuobjdump"

NEWEST_GLIBC = (2, 28)
KERNELS = ("libwaywiser_transfer.so.2", "_native.*.so")
"""The binaries that have kernels."""

BINARIES = (
    "libwaywiser_transfer.so.2",
    "libwaywiser_trace.so",
    "_native.*.so",
    "_transfer.*.so",
    "waywiser-owner",
)


def found_binary(name: str) -> Path:
    """The newest of its builds."""
    found = [file for build in BUILDS for file in build.glob(name)]
    if not found:
        pytest.skip("there is no release build here (make release-checks)")
    return max(found, key=lambda file: file.stat().st_mtime)


@pytest.mark.parametrize("name", BINARIES)
def test_no_symbol_is_newer_than_glibc_2_28(name: str) -> None:
    newest = binary_checks.newest_symbols(found_binary(name))
    assert (2, 2) < newest["GLIBC"] <= NEWEST_GLIBC
    assert "GLIBCXX" not in newest and "CXXABI" not in newest


@pytest.mark.parametrize("name", BINARIES)
def test_only_libraries_that_every_system_has_are_needed(name: str) -> None:
    needed = set(binary_checks.needed(found_binary(name)))
    assert needed <= binary_checks.SYSTEM | binary_checks.OURS
    assert "libpthread.so.0" in needed  # where pthread_create is before glibc 2.34


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_has_machine_code_from_pascal_to_hopper_and_ptx_for_later_gpus(
    name: str,
) -> None:
    file = found_binary(name)
    code = binary_checks.kernels(CUOBJDUMP, file, "elf")
    expected = [each.split("-") for each in cuda_toolkit.RELEASE.split(";")]
    real = {int(number) for number, kind in expected if kind == "real"}
    assert set(code) == real
    assert len(set(code.values())) == 1, code  # no kernel lacks one of them
    assert binary_checks.only_ptx(code) == []
    assert set(binary_checks.kernels(CUOBJDUMP, file, "ptx")) == {
        int(number) for number, kind in expected if kind == "virtual"
    }


def test_newer_calls_are_asked_for_by_name_and_not_linked() -> None:
    file = found_binary("libwaywiser_transfer.so.2")
    answer = subprocess.run(
        ["nm", "-D", "--undefined-only", file], capture_output=True, text=True, check=True
    )
    undefined = {line.split()[-1] for line in answer.stdout.splitlines()}
    assert not {name for name in undefined if name.startswith(("cu", "__cuda"))}
    assert b"cuMemcpyBatchAsync\0" in file.read_bytes()


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ({60: 3, 70: 3, 75: 3, 80: 3, 86: 3, 89: 3, 90: 3}, []),
        ({60: 3, 70: 3, 80: 3, 90: 3}, []),
        ({70: 3, 80: 3, 90: 3}, [60, 61, 62]),
        ({60: 3, 70: 3, 80: 2, 90: 3}, [80, 86, 87, 89]),
        ({60: 3, 72: 3, 86: 3, 90: 3}, [70, 80]),
        ({}, list(binary_checks.SUPPORTED)),
    ],
)
def test_a_gpu_that_would_translate_ptx_is_found(code: dict[int, int], missing: list[int]) -> None:
    assert binary_checks.only_ptx(Counter(code)) == missing


def test_the_build_stops_if_machine_code_is_missing(tmp_path: Path) -> None:
    cuobjdump = tmp_path / "cuobjdump"
    cuobjdump.write_text("#!/bin/sh\necho 'ELF file    1: a.1.sm_70.cubin'\n")
    cuobjdump.chmod(0o755)
    done = subprocess.run(
        [
            "python3",
            ROOT / "build_backend" / "binary_checks.py",
            cuobjdump,
            tmp_path / "library.so",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        "library.so has no machine code for GPUs of compute capability 6.0, 6.1, 6.2, 8.0"
        in done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_the_newest_version_up_to_2_28_is_linked() -> None:
    listed = (
        "0000000000000010 0000000000000020 T pthread_create@GLIBC_2.2.5\n"
        "0000000000000010 0000000000000020 T pthread_create@@GLIBC_2.34\n"
        "0000000000000010 0000000000000020 T memcpy@GLIBC_2.2.5\n"
        "0000000000000010 0000000000000020 i memcpy@@GLIBC_2.14\n"
        "0000000000000010 0000000000000008 B environ@@GLIBC_2.2.5\n"
        "0000000000000010 0000000000000008 T arc4random@@GLIBC_2.36\n"
        "0000000000000000 A GLIBC_2.28\n"
    )
    symbols = old_glibc.versions(listed)
    assert symbols == {
        "pthread_create": ("GLIBC_2.2.5", False, 32),
        "memcpy": ("GLIBC_2.14", False, 32),
        "environ": ("GLIBC_2.2.5", True, 8),
    }
    code, script = old_glibc.sources(symbols)
    assert "GLIBC_2.2.5 { pthread_create; environ; };" in script
    assert ".size environ,8" in code


PROGRAM = """
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>
int main() {
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false;
    std::thread other([&] {
        const std::lock_guard lock(mutex);
        is_done = true;
        done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait_for(lock, std::chrono::seconds(9), [&] { return is_done; });
    lock.unlock();
    other.join();
    std::printf("%d", int(std::filesystem::file_size("/proc/version")));
}
"""
"""Uses what glibc 2.28 lacks: functions for files, waits with a clock, and another start code."""


def test_programs_for_aarch64_need_no_newer_glibc_than_2_28(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FETCHED / "arm-compiler"
    compiler = [str(folder / "usr" / "bin" / "aarch64-linux-gnu-g++-12"), f"--sysroot={folder}"]
    if not Path(compiler[0]).exists():
        pytest.skip("there is no compiler for aarch64 here (scripts/set-up --guest)")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder / "usr" / "lib" / "x86_64-linux-gnu"))
    old_glibc.make(tmp_path, compiler)
    source, plain, old = (tmp_path / name for name in ("program.cpp", "plain", "old"))
    source.write_text(PROGRAM)
    command = [*compiler, "-std=c++20", "-static-libstdc++", str(source), "-o"]
    subprocess.run([*command, plain], check=True)
    subprocess.run([*command, old, f"-L{tmp_path}", "-Wl,--allow-shlib-undefined"], check=True)
    assert binary_checks.newest_symbols(plain)["GLIBC"] > NEWEST_GLIBC
    assert (2, 17) <= binary_checks.newest_symbols(old)["GLIBC"] <= NEWEST_GLIBC
    assert binary_checks.processor(old) == "aarch64"
