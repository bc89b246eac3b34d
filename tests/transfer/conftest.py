"""The transfer calls over the fake GPU, which tests/conftest.py chooses."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tree import FAKE_FOLDER, FAKE_TRANSFER


@pytest.fixture(autouse=True, scope="module")
def few_objects_to_collect() -> None:
    """Objects of other tests, which each `gc.collect` of `fake_gpus` would look at again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fake_gpus() -> Iterator[None]:
    """The fake GPUs as they are by default, before and after each test. No test inherits operands
    of another one: to free device memory waits for the GPU."""
    testing = sys.modules.get("waywiser_fake._testing")
    if testing is None:
        yield
        return
    from fake_gpu import open_gates

    from waywiser import transfer

    testing.configure("")
    yield
    open_gates()
    testing.configure("")
    gc.collect()
    for _ in range(64):  # each call lets go of the operands of a few transfers
        transfer.copy(bytearray(1), b"x")


@pytest.fixture(scope="session")
def fake_transfer_environment() -> dict[str, str]:
    """The environment for a process that copies with the fake GPU."""
    if os.environ.get("WAYWISER_TRANSFER_NATIVE") != FAKE_TRANSFER:
        pytest.skip(f"the transfer library over the fake GPU is not built in {FAKE_FOLDER}")
    tests = Path(__file__).resolve().parent
    paths = [str(tests.parents[1] / "python"), str(FAKE_FOLDER), str(tests)]
    paths += filter(None, [os.environ.get("PYTHONPATH")])  # packages may be installed there
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
