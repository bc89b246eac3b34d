"""The program that owns a GPU's memory for another process, the part that needs no GPU."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import waywiser

OWNER = Path(waywiser.__file__).parent / "lib" / "waywiser-owner"
REQUEST = struct.Struct("QQ")
ANSWER = struct.Struct("i60s64sQ")
NO_SUCH_GPU = "GPU-00000000-0000-0000-0000-000000000000"

pytestmark = pytest.mark.skipif(not OWNER.exists(), reason="this build has no CUDA")


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [OWNER, NO_SUCH_GPU], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        yield process
        process.kill()


def test_it_answers_each_time_with_what_failed(owner: subprocess.Popen[bytes]) -> None:
    assert owner.stdin is not None
    assert owner.stdout is not None
    for _ in range(2):
        owner.stdin.write(REQUEST.pack(4096, 0))
        code, call, handle, address = ANSWER.unpack(owner.stdout.read(ANSWER.size))
        assert code != 0
        assert call.rstrip(b"\0").decode().startswith("cuda")
        assert (handle, address) == (bytes(64), 0)
    assert owner.poll() is None


def test_it_leaves_when_its_input_ends(owner: subprocess.Popen[bytes]) -> None:
    assert owner.stdin is not None
    owner.stdin.close()
    assert owner.wait(timeout=60) == 0


def test_it_says_who_starts_it() -> None:
    found = subprocess.run([OWNER], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "started by waywiser" in found.stderr
