"""The program that owns a GPU's memory for another process, as far as it goes without a GPU."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import waywiser

OWNER = Path(waywiser.__file__).parent / "waywiser-owner"
ANSWER = struct.Struct("i60s64s")
NO_SUCH_GPU = "GPU-00000000-0000-0000-0000-000000000000"

pytestmark = pytest.mark.skipif(not OWNER.exists(), reason="this build has no CUDA")


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [OWNER, NO_SUCH_GPU, "4096"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def test_it_answers_with_what_failed_and_stays(owner: subprocess.Popen[bytes]) -> None:
    assert owner.stdout is not None
    code, call, handle = ANSWER.unpack(owner.stdout.read(ANSWER.size))
    assert code != 0
    assert call.rstrip(b"\0").decode().startswith("cuda")
    assert handle == bytes(64)
    assert owner.poll() is None


def test_it_leaves_when_its_input_ends(owner: subprocess.Popen[bytes]) -> None:
    assert owner.stdin is not None
    owner.stdin.close()
    assert owner.wait(timeout=30) == 0


def test_it_says_who_starts_it() -> None:
    found = subprocess.run([OWNER], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "started by waywiser" in found.stderr
