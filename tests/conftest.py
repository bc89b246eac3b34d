"""What all tests share: which of them this machine can run, and the library over the fake GPU."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tree import FAKE_FOLDER, FAKE_TRANSFER, ROOT
from waywiser.machine import cpu_load
from waywiser.profile import derived

_stderr = pytest.StashKey[int]()

FAKE_NATIVE = "waywiser_fake._native"

# How long an example takes depends on the load of the machine, not on what is tested.
settings.register_profile(
    "waywiser", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("emulated", settings.get_profile("waywiser"), max_examples=10)
settings.load_profile("waywiser")

for name in [name for name in os.environ if name.startswith("WAYWISER_")]:
    # What somebody set in a shell to try something is no business of the tests.
    del os.environ[name]
os.environ["WAYWISER_POLICY"] = "off"  # not a policy of whoever runs the tests

# A rank of MPI that waits would take a CPU from other ranks, and from tests that run beside it: let
# it sleep between two looks. The first is of MPICH, the others are of Open MPI.
os.environ.update(
    {
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
        "OMPI_MCA_threads_pthreads_nanosleep_time": "50000",
    }
)

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads that nothing here needs take 0.04 s to start

if list(FAKE_FOLDER.glob("waywiser_fake/_transfer.*.so")):
    # Before any file of tests imports waywiser.transfer.
    os.environ["WAYWISER_TRANSFER_NATIVE"] = FAKE_TRANSFER

# Shells start what runs in the background so, as nohup does, and every program that a test starts
# would ignore these signals too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def other_programs_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on the machine of the tests is no business of theirs; those of the load by
    other programs use `scripted_cpus`."""
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", math.inf)


@pytest.fixture(autouse=True, scope="session")
def nothing_derived_is_kept() -> Iterator[None]:
    """Tests replace rules, and what is kept follows from the sources as they lie there. A report
    has a chapter about a model that is kept, so no fixture of a module may find one either."""
    with pytest.MonkeyPatch.context() as session:
        session.setattr(derived, "MOST_BYTES", 0)
        yield


@pytest.fixture
def derived_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own in which is kept what follows from profiles."""
    monkeypatch.setattr(derived, "MOST_BYTES", 2**30)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "waywiser" / "derived"


@pytest.fixture(autouse=True, scope="session")
def nothing_of_the_user_is_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Baselines that this user keeps are none of the tests."""
    with pytest.MonkeyPatch.context() as session:
        session.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


HANG_SECONDS = 600.0
GUEST_SECONDS = 4000.0
TEST_CALLS = 20  # of a stack, so that the calls of pytest are not printed


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_stderr] = os.dup(2)  # before each test replaces it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Ends the process if a test takes `HANG_SECONDS`, and first prints each different stack of
    other threads once, the test's name, and the stack of the main thread: faulthandler, which
    follows if the interpreter itself hangs, prints the newest 100 threads alone. Tests in emulated
    machines wait for these, which have a limit of their own: on a busy machine they take long."""
    seconds = GUEST_SECONDS if item.get_closest_marker("guest") else HANG_SECONDS
    timer = threading.Timer(seconds, _end_hung_test, (item.nodeid, item.config.stash[_stderr]))
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()


def _end_hung_test(name: str, stderr: int) -> None:
    main = threading.main_thread().ident or 0
    stacks = Counter(
        "".join(traceback.format_stack(frame))
        for thread, frame in sys._current_frames().items()
        if thread not in (main, threading.get_ident())
    )
    parts = [f"\n{count} other threads:\n{stack}" for stack, count in stacks.items()]
    parts.append(f"\n{name} has hung. The main thread, its last calls:\n")
    parts += traceback.format_stack(sys._current_frames()[main])[-TEST_CALLS:]
    os.write(stderr, "".join(parts).encode())
    os._exit(1)


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from what lives as long as the process, modules and tests, and
    lets it look at the rest less often: that takes an eighth of the time of all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@cache
def missing_gpu() -> str | None:
    """Why tests of a GPU cannot run here, or None. Asks the driver's management library, which
    makes no context."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"no NVIDIA driver that works here: {error}"
    return None if count else "the driver finds no GPU"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Files with slow tests come first, so that no core waits for one of them at the end. Those with
    # tests in the browser come last: from then on its event loop runs in the process, and asyncio
    # cannot run another.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    browser = {item.path for item in items if "chromium" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (item.path in browser, item.path not in slow))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    why = missing_gpu()
    if why is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def fake_native_environment() -> dict[str, str]:
    """The environment for a process that measures with the fake GPU; skips where it is not
    built."""
    if not list(FAKE_FOLDER.glob("waywiser_fake/_native.*.so")):
        pytest.skip(f"the native library over the fake GPU is not built in {FAKE_FOLDER}")
    paths = [str(ROOT / "python"), str(FAKE_FOLDER), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "WAYWISER_NATIVE": FAKE_NATIVE,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
