"""Objects of the fake GPU as other threads see them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import gate_on


def make_registration() -> Any:
    host = np.zeros(1 << 20, np.uint8)
    return fake_gpu.Registration(host.ctypes.data, host.nbytes), host


@pytest.mark.parametrize(
    "make",
    [
        lambda: fake_gpu.Gate(0),
        lambda: fake_gpu.DeviceBuffer(0, 4096),
        make_registration,
    ],
    ids=["gate", "device buffer", "registration"],
)
def test_other_threads_run_while_an_object_waits_for_the_gpu_to_end(
    make: Callable[[], Any],
) -> None:
    """One of them opens the gate that the GPU waits at."""
    objects = [make()]
    stream = fake_gpu.Stream(0)
    gate = gate_on(stream)
    ends = threading.Thread(target=objects.clear)
    ends.start()
    ends.join(0.05)
    assert ends.is_alive()
    gate.open()
    ends.join()
    assert objects == []
