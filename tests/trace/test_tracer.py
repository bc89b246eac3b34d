"""What the tracer says is what the program did: lines, sizes, kinds, and nothing is lost."""

from __future__ import annotations

import glob
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from traced_program import (
    CUPTIS,
    FOLDER,
    IS_BUILT,
    PROGRAM,
    codes,
    group_of_line,
    groups_of_line,
    innermost,
    run,
    run_python,
)

from tree import FAKE_FOLDER, FAKE_TRANSFER, ROOT

pytestmark = pytest.mark.skipif(not IS_BUILT, reason=f"the tracer is not built in {FOLDER}")

PYTHONS = sorted(
    {
        sys.executable,
        *glob.glob("/usr/bin/python3.[0-9]*[0-9]"),
        *glob.glob(os.path.expanduser("~/.local/share/uv/python/*/bin/python3.[0-9]*[0-9]")),
        *glob.glob(os.path.expanduser("~/.pyenv/versions/3.[0-9]*/bin/python3.[0-9]*[0-9]")),
        *filter(None, os.environ.get("TRACED_PYTHONS", "").split(":")),
    }
)
PYTHONS = [python for python in PYTHONS if not re.search(r"python3[.][0-8]$", python)]
"""Those of this machine, and those that TRACED_PYTHONS names."""

PLANTED = """
sys.path.insert(0, os.path.dirname(__file__) + "/site-packages")
import package
pinned = ctypes.c_void_p()
cuda.cuMemHostAlloc(ctypes.byref(pinned), size(64 * KIB), 0)  # pin
for _ in range(80):
    runtime.cudaMemcpy(there, host, size(64 * KIB), TO_DEVICE)  # pageable
kept = []
for _ in range(8):
    kept.append(mmap.mmap(-1, 64 * KIB))
    new = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1]))
    runtime.cudaMemcpy(ctypes.c_void_p(new), there, size(64 * KIB), TO_HOST)  # new pages
def pieces():
    for _ in range(2000):
        runtime.cudaMemcpyAsync(there, host, size(64), TO_DEVICE, None)  # pieces
pieces()
for _ in range(5):
    runtime.cudaMemcpyAsync(there, pinned, size(32 * KIB), TO_DEVICE, None)  # pinned
    runtime.cudaStreamSynchronize(None)  # wait
far = device(4 * KIB, 1)
cuda.cuMemcpyAsync(far, there, size(4 * KIB), None)  # peer
cuda.cuMemsetD8_v2(there, 0, size(8 * KIB))  # set
cuda.fake_batch(there, host, size(100), size(30))  # batch
cuda.fake_graph(size(16 * KIB))  # graph
package.copy(lambda: [runtime.cudaMemcpy(there, host, size(9), TO_DEVICE)])  # lambda
package.copy_here(runtime, there, host)  # package
sorted([0], key=lambda _: runtime.cudaMemcpy(there, host, size(77), TO_DEVICE))  # called by C
cuda.cuMemHostRegister_v2(host, size(64 * KIB), 0)  # register
cuda.cuMemHostUnregister(host)
cuda.cuMemFreeHost(pinned)
"""

PACKAGE = """
import ctypes
def copy(function):
    return function()
def copy_here(runtime, there, host):
    runtime.cudaMemcpy(there, host, ctypes.c_uint64(1024), 1)
"""


@pytest.mark.parametrize("cupti", CUPTIS)
@pytest.mark.parametrize("python", PYTHONS)
def test_planted_copies_are_found(python: str, cupti: str, tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "package.py").write_text(PACKAGE)
    traced = run_python(PLANTED, tmp_path, cupti, python)
    assert traced.done.returncode == 0, traced.done.stderr
    process = traced.only
    assert process["process"]["ended"]
    assert codes(process) == set()

    def group(mark: str) -> dict[str, Any]:
        found = group_of_line(process, traced.line(mark))
        assert innermost(process, found["site"])["file"] == str(tmp_path / "program.py")
        return found

    def seen(mark: str) -> tuple[Any, ...]:
        found = group(mark)
        return (
            found["operation"],
            found["direction"],
            found["from"]["kind"],
            found["to"]["kind"],
            found["copies"],
            found["bytes"],
        )

    kib = 1 << 10
    assert seen("pageable") == ("copy", "H2D", "pageable", "device", 80, 80 * 64 * kib)
    assert seen("new pages") == ("copy", "D2H", "device", "pageable", 8, 8 * 64 * kib)
    assert seen("pieces") == ("copy", "H2D", "pageable", "device", 2000, 2000 * 64)
    assert seen("pinned") == ("copy", "H2D", "pinned", "device", 5, 5 * 32 * kib)
    assert seen("peer") == ("peer-copy", "P2P", "device", "device", 1, 4 * kib)
    assert seen("set") == ("set", None, "unknown", "device", 1, 8 * kib)
    assert seen("package") == ("copy", "H2D", "pageable", "device", 1, kib)
    assert seen("lambda") == ("copy", "H2D", "pageable", "device", 1, 9)
    assert seen("called by C") == ("copy", "H2D", "pageable", "device", 1, 77)
    assert group("graph")["graph"]
    assert (group("peer")["from"]["gpu"], group("peer")["to"]["gpu"]) == (0, 1)
    assert group("pieces")["asynchronous"] == 2000
    assert group("pageable")["asynchronous"] == 0
    assert (group("pinned")["waited"], group("pieces")["waited"]) == (5, 0)
    # Records of the first CUPTI do not say how many copies a batched call makes.
    assert group("batch")["copies"] == (1 if cupti == "12.0" else 30)
    assert (group("batch")["calls"], group("batch")["bytes"]) == (1, 3000)
    assert group("new pages")["sampled_pages"] == group("new pages")["new_pages"] == 8 * 16
    assert group("pageable")["new_pages"] == 0
    assert group("pageable")["sampled_pages"] == sum(group("pageable")["nodes"].values()) > 0
    # The device of the tests takes 1 ns for 10 bytes and 1000 ns more.
    assert group("pageable")["device_ns"] == 80 * (1000 + 64 * kib // 10)
    assert group("pageable")["exposed_ns"] == group("pageable")["device_ns"]
    memory = {
        (each["operation"], innermost(process, each["site"])["line"]): each
        for each in process["memory"]
    }
    assert memory["pin-allocate", traced.line("pin")]["bytes"] == 64 * kib
    assert memory["pin-register", traced.line("register")]["calls"] == 1
    assert {operation for operation, _ in memory} >= {"pin-free", "unregister"}
    waits = {innermost(process, each["site"])["line"]: each["calls"] for each in process["waits"]}
    assert waits == {traced.line("wait"): 5}
    gpus = {gpu["gpu"]: gpu for gpu in process["gpus"]}
    assert gpus[0]["name"] == "Fake GPU"
    assert gpus[0]["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


CHAIN = """
def inner():
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # inner
def outer():
    inner()  # outer
outer()  # module
"""


def test_callers_follow_outwards(tmp_path: Path) -> None:
    traced = run_python(CHAIN, tmp_path)
    (group,) = traced.only["groups"]
    frames = traced.only["sites"][group["site"]]["frames"]
    assert [(frame["function"], frame["line"]) for frame in frames] == [
        ("inner", traced.line("inner")),
        ("outer", traced.line("outer")),
        ("<module>", traced.line("module")),
    ]


UNDER_C = """
def below(depth):
    if depth:
        return below(depth - 1)
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # below
def work(number):
    below(number % 40)  # work
    return number
for _ in range(20):
    sorted(range(100), key=work)  # C calls Python
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_frames_between_python_and_c_are_no_callers(python: str, tmp_path: Path) -> None:
    traced = run_python(UNDER_C, tmp_path, python=python)
    assert codes(traced.only) == set()
    for group in traced.only["groups"]:
        frames = traced.only["sites"][group["site"]]["frames"]
        assert {frame["function"] for frame in frames} <= {"below", "work", "<module>"}
        assert frames[0]["line"] == traced.line("below")
    shortest = min((site["frames"] for site in traced.only["sites"] if site["frames"]), key=len)
    assert [(frame["function"], frame["line"]) for frame in shortest] == [
        ("below", traced.line("below")),
        ("work", traced.line("work")),
        ("<module>", traced.line("C calls Python")),
    ]


REUSED = """
for number in range(300):
    text = "\\n" * (number % 7) + "runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)"
    exec(compile(text, f"/made/up/\\u00e9\\u4e2d{number:03}.py", "exec"))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_code_made_at_the_place_of_other_code_is_another(python: str, tmp_path: Path) -> None:
    traced = run_python(REUSED, tmp_path, python=python)
    found = {}
    for group in traced.only["groups"]:
        frame = innermost(traced.only, group["site"])
        found[frame["file"]] = (frame["line"], group["copies"])
    assert found == {
        f"/made/up/\u00e9\u4e2d{number:03}.py": (number % 7 + 1, 1) for number in range(300)
    }


HELD = """
import threading
begin, done = ctypes.c_int(0), ctypes.c_int(0)
holder = ctypes.PyDLL("libcudart.so.12")  # its calls keep the GIL
def copies():
    runtime.fake_copies(there, host, size(64), 1000, *map(ctypes.byref, (begin, done)))  # copies
thread = threading.Thread(target=copies)
thread.start()
holder.fake_hold(ctypes.byref(begin), ctypes.byref(done))
thread.join()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_a_thread_copies_while_another_holds_the_gil(python: str, tmp_path: Path) -> None:
    traced = run_python(HELD, tmp_path, python=python)
    assert traced.done.returncode == 0, traced.done.stderr
    assert group_of_line(traced.only, traced.line("copies"))["copies"] == 1000


THREADS = """
import threading
def work(number):
    for _ in range(500):
        if number % 2:
            runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # odd
        else:
            runtime.cudaMemcpy(host, there, size(64), TO_HOST)  # even
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("conditions", ["", "shuffle,late", "own-clock,late"])
def test_threads_lose_nothing_whatever_the_order_of_records(
    conditions: str, tmp_path: Path
) -> None:
    traced = run_python(THREADS, tmp_path, FAKE_CUPTI=conditions, FAKE_EACH_CALL_HAS_A_NUMBER="1")
    assert group_of_line(traced.only, traced.line("odd"))["copies"] == 2000
    assert group_of_line(traced.only, traced.line("even"))["copies"] == 2000
    process = traced.only["process"]
    for _, _, _, start, end, *_ in traced.only["timeline"]["events"]:
        # The fake clock has the resolution of two clocks that are read one after the other.
        assert process["start_ns"] - 1e8 < start < end < process["last_ns"] + 1e8


def test_lost_records_are_counted(tmp_path: Path) -> None:
    traced = run_python(THREADS, tmp_path, FAKE_CUPTI="drop")
    copies = sum(group["copies"] for group in traced.only["groups"])
    assert (copies, traced.only["dropped_records"]) == (3600, 400)
    assert codes(traced.only) == {"dropped"}


KERNELS = """
for _ in range(20):
    cuda.fake_kernel(b"matmul", 0, size(400_000_000))
cuda.fake_kernel(b"ncclDevKernel_AllReduce_Sum", 0, size(2_000_000_000))
runtime.cudaMemcpy(there, host, size(64 * KIB), TO_DEVICE)  # hidden
cuda.fake_kernel(b"other", 1, size(1000))
cuda.cuMemcpyAsync(device(64 * KIB, 1), host, size(64 * KIB), None)  # exposed
cuda.fake_migration(1, size(1 << 21), 0)
cuda.fake_migration(2, size(1 << 20), 0)
"""


def test_kernels_hide_copies_of_their_gpu(tmp_path: Path) -> None:
    traced = run_python(KERNELS, tmp_path)
    hidden = group_of_line(traced.only, traced.line("hidden"))
    exposed = group_of_line(traced.only, traced.line("exposed"))
    assert hidden["exposed_ns"] == 0
    assert exposed["exposed_ns"] == exposed["alone_ns"] == exposed["device_ns"] > 0
    gpus = {gpu["gpu"]: gpu for gpu in traced.only["gpus"]}
    assert (gpus[0]["kernels"], gpus[0]["kernel_ns"]) == (21, 10_000_000_000)
    assert gpus[0]["collective_ns"] == 2_000_000_000
    assert gpus[0]["exposed_ns"] == 0
    assert gpus[1]["exposed_ns"] == exposed["device_ns"]
    managed = {(each["gpu"], each["direction"]): each for each in traced.only["managed"]}
    assert managed[0, "H2D"]["bytes"] == 1 << 21
    assert managed[0, "D2H"]["bytes"] == 1 << 20


FORKED = """
runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # parent
child = os.fork()
if child == 0:
    runtime.cudaMemcpy(there, host, size(128), TO_DEVICE)  # child
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
idle = os.fork()
if idle == 0:
    sys.exit(0)
os.waitpid(idle, 0)
runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # parent again
"""


def test_a_forked_child_has_a_file_of_its_own_and_nothing_of_its_parent(tmp_path: Path) -> None:
    traced = run_python(FORKED, tmp_path)
    assert traced.done.returncode == 0, traced.done.stderr
    parent, child = sorted(traced.processes, key=lambda process: process["process"]["start_ns"])
    assert child["process"]["parent"] == parent["process"]["pid"]
    assert group_of_line(child, traced.line("child"))["bytes"] == 128
    assert len(child["groups"]) == 1
    assert child["process"]["ended"] and parent["process"]["ended"]
    assert group_of_line(parent, traced.line("parent"))["copies"] == 1
    assert group_of_line(parent, traced.line("parent again"))["copies"] == 1
    assert not groups_of_line(parent, traced.line("child"))


def test_processes_that_are_started_have_a_file_each(tmp_path: Path) -> None:
    body = """
runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)
if len(sys.argv) == 1:
    until_written(1)
    import subprocess
    subprocess.run([sys.executable, __file__, "1"], env={**os.environ, "RANK": "3"}, check=True)
    os.execv(sys.executable, [sys.executable, __file__, "2"])
"""
    traced = run_python(body, tmp_path)
    assert traced.done.returncode == 0, traced.done.stderr
    by_argument = {each["process"]["command"][-1]: each for each in traced.processes}
    assert len(by_argument) == len(traced.processes) == 3
    assert by_argument["1"]["process"]["rank"] == 3
    assert by_argument["2"]["process"]["rank"] is None
    assert all(
        sum(group["copies"] for group in each["groups"]) == 1 for each in by_argument.values()
    )


@pytest.mark.parametrize(
    "end, code",
    [("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL), ("os._exit(7)", 7)],
)
def test_a_process_that_ends_at_once_keeps_what_was_written(
    end: str, code: int, tmp_path: Path
) -> None:
    body = f"""
for _ in range(10):
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # copy
until_written(10)
{end}
"""
    traced = run_python(body, tmp_path)
    assert traced.done.returncode == code
    assert not traced.only["process"]["ended"]
    assert group_of_line(traced.only, traced.line("copy"))["copies"] == 10


COPY = "runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # copy\nsys.exit(4)\n"


def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "trace")
    traced = run_python(COPY, tmp_path, WAYWISER_TRACE_FOLDER=folder)
    assert traced.done.returncode == 4
    assert traced.processes == []
    (line,) = traced.done.stderr.splitlines()
    assert folder in line and "Not a directory" in line


@pytest.mark.parametrize(
    "more, expected",
    [
        ({"FAKE_DRIVER": "9000", "WAYWISER_CUPTI": ""}, "no-cupti"),
        ({"FAKE_CUPTI": "forbidden"}, "not-permitted"),
        ({"FAKE_CUPTI": "taken"}, "subscriber-taken"),
        ({"WAYWISER_TRACE_LINES": "0"}, "no-lines"),
        ({"WAYWISER_TRACE_NEXT_INJECTION": "/nowhere.so"}, "other-injection"),
    ],
)
def test_what_cannot_be_traced_is_said_and_the_program_goes_on(
    more: dict[str, str], expected: str, tmp_path: Path
) -> None:
    traced = run_python(COPY, tmp_path, **more)
    assert traced.done.returncode == 4
    assert traced.done.stderr == ""
    assert expected in codes(traced.only)
    copies = sum(group["copies"] for group in traced.only["groups"])
    assert copies == (0 if expected in ("no-cupti", "not-permitted") else 1)
    if expected in ("subscriber-taken", "no-lines"):
        (group,) = traced.only["groups"]
        assert innermost(traced.only, group["site"]) == {}
        of_calls = ("call_ns", "lost_ns", "waited", "wait_ns", "new_pages")
        assert [group[name] for name in of_calls] == [None] * len(of_calls)


def test_another_profiler_stays_complete(tmp_path: Path) -> None:
    body = "for _ in range(50): runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)\n"
    traced = run_python(
        body,
        tmp_path,
        WAYWISER_TRACE_NEXT_INJECTION=str(FOLDER / "lib" / "libother_profiler.so"),
        FAKE_OTHER_CUPTI=str(CUPTIS["12.9"]),
        FAKE_OTHER_COUNTS=str(tmp_path / "counts"),
    )
    assert traced.done.returncode == 0, traced.done.stderr
    assert (tmp_path / "counts").read_text() == "100 50\n"  # each call has a beginning and an end
    assert codes(traced.only) == {"other-injection", "subscriber-taken", "activity-taken"}
    assert traced.only["groups"] == []


@pytest.mark.parametrize("version", ["3.9.1", "3.10.1", "3.12.1", "3.13.1", "3.15.0", "4.0.0"])
def test_lines_are_off_where_python_is_not_what_it_is_taken_for(
    version: str, tmp_path: Path
) -> None:
    body = "for _ in range(100): runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)\n"
    traced = run_python(
        body,
        tmp_path,
        LD_PRELOAD=str(FOLDER / "lib" / "libpython_version.so"),
        FAKE_PYTHON_VERSION=version,
    )
    assert traced.done.returncode == 0, traced.done.stderr
    if f"{sys.version_info.major}.{sys.version_info.minor}." in version:
        pytest.skip(f"this Python is {version}")
    assert codes(traced.only) == {"frames-unknown"}
    assert sum(group["copies"] for group in traced.only["groups"]) == 100
    for group in traced.only["groups"]:
        assert innermost(traced.only, group["site"])["language"] == "native"


@pytest.mark.parametrize(
    "driver, loaded",
    [("13000", "cu13/lib/libcupti.so.13"), ("12040", "cuda_cupti/lib/libcupti.so.12")],
)
def test_the_cupti_of_a_wheel_is_one_that_the_driver_supports(
    driver: str, loaded: str, tmp_path: Path
) -> None:
    for version, place in (
        ("13.5", "cu13/lib/libcupti.so.13"),
        ("12.9", "cuda_cupti/lib/libcupti.so.12"),
    ):
        wheel = tmp_path / "site-packages" / "nvidia" / place
        wheel.parent.mkdir(parents=True)
        wheel.symlink_to(CUPTIS[version])
    traced = run_python(
        COPY,
        tmp_path,
        WAYWISER_CUPTI="",
        WAYWISER_TRACE_CUPTI_FOLDERS=f"/nowhere:{tmp_path / 'site-packages'}",
        CUDA_HOME="",
        CUDA_PATH="",
        FAKE_DRIVER=driver,
    )
    assert traced.only["cupti"]["path"].endswith(loaded)
    assert traced.only["driver"] == int(driver)
    assert group_of_line(traced.only, traced.line("copy"))["copies"] == 1


LATE = """
late = ctypes.CDLL("liblate_profiler.so")
for _ in range(20):
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # before
assert late.late_start() == 0
for _ in range(30):
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # after
print(late.late_calls(), late.late_records())
"""


@pytest.mark.parametrize("loaded_first", [True, False])
def test_a_profiler_that_the_program_starts_is_complete(loaded_first: bool, tmp_path: Path) -> None:
    body = LATE if loaded_first else LATE.replace("assert late", "time.sleep(1.5)\nassert late")
    if loaded_first:
        body = body.replace('late = ctypes.CDLL("liblate_profiler.so")\n', "")
    traced = run_python(
        body, tmp_path, LD_PRELOAD=str(CUPTIS["12.9"]), LATE_FIRST="1" if loaded_first else ""
    )
    assert traced.done.stdout == "60 30\n", traced.done.stderr
    assert codes(traced.only) == {"subscriber-taken", "activity-taken"}
    assert group_of_line(traced.only, traced.line("before"))["copies"] == 20
    assert not groups_of_line(traced.only, traced.line("after"))


LIBRARY = """
library = ctypes.CDLL("libwaywiser_transfer_traced.so")
runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # before
time.sleep(1.5)  # the library is found within a second
for _ in range(3):
    library.fake_library_copy(there, host, size(32 * KIB))  # library
    runtime.cudaMemcpy(there, host, size(64), TO_DEVICE)  # plain
"""


@pytest.mark.parametrize("numbers", ["", "1"])
def test_chunks_of_the_transfer_library_belong_to_the_line_that_calls_it(
    numbers: str, tmp_path: Path
) -> None:
    more = {"FAKE_EACH_CALL_HAS_A_NUMBER": numbers} if numbers else {}
    traced = run_python(LIBRARY, tmp_path, **more)
    assert traced.done.returncode == 0, traced.done.stderr
    group = group_of_line(traced.only, traced.line("library"))
    assert (group["operation"], group["direction"]) == ("library-copy", "H2D")
    assert (group["copies"], group["calls"], group["bytes"]) == (3, 3, 3 * 32 * 1024)
    assert group["device_ns"] == 6 * (1000 + 16 * 1024 // 10)  # two chunks each
    assert group_of_line(traced.only, traced.line("plain"))["copies"] == 3
    assert len(traced.only["groups"]) == 3


WHOLE_LIBRARY = """
import numpy as np
from fake_gpu import GpuArray, Stream
from waywiser import transfer
context, own = transfer.Context(threads=2), Stream(0)
host, there = np.ones(1 << 20, np.uint8), GpuArray(1 << 20)
time.sleep(1.5)  # the library is found within a second
for _ in range(3):
    context.copy(there, host, stream=own.handle)  # copy
context.copy_async(host, there, stream=own.handle).result()  # asynchronously
context.close()
"""


@pytest.mark.skipif(
    os.environ.get("WAYWISER_TRANSFER_NATIVE") != FAKE_TRANSFER,
    reason=f"the transfer library over the fake GPU is not built in {FAKE_FOLDER}",
)
def test_copies_by_the_transfer_library_are_of_the_line_that_calls_it(tmp_path: Path) -> None:
    paths = [ROOT / "python", FAKE_FOLDER, ROOT / "tests" / "transfer"]
    path = os.pathsep.join(map(str, [*paths, os.environ.get("PYTHONPATH", "")]))
    traced = run_python(WHOLE_LIBRARY, tmp_path, PYTHONPATH=path)
    assert traced.done.returncode == 0, traced.done.stderr
    copies = group_of_line(traced.only, traced.line("copy"))
    assert (copies["operation"], copies["direction"]) == ("library-copy", "H2D")
    assert (copies["copies"], copies["bytes"]) == (3, 3 << 20)
    assert (copies["from"]["kind"], copies["to"]) == ("pageable", {"kind": "device", "gpu": 0})
    back = group_of_line(traced.only, traced.line("asynchronously"))
    assert (back["copies"], back["direction"], back["asynchronous"]) == (1, "D2H", 1)


def test_functions_of_compiled_programs_are_named(tmp_path: Path) -> None:
    traced = run([str(PROGRAM), "copy", "wait", "threads"], tmp_path)
    assert traced.done.returncode == 0, traced.done.stderr
    copies: dict[str, int] = {}
    for group in traced.only["groups"]:
        frame = innermost(traced.only, group["site"])
        assert (frame["language"], frame["module"]) == ("native", str(PROGRAM))
        copies[frame["function"]] = copies.get(frame["function"], 0) + group["copies"]
    assert copies == {"copy_here": 8001, "copy_there": 1}
    (waited,) = [group for group in traced.only["groups"] if group["waited"]]
    assert innermost(traced.only, waited["site"])["function"] == "copy_there"


def test_a_compiled_program_that_forks(tmp_path: Path) -> None:
    traced = run([str(PROGRAM), "copy", "fork", "copy"], tmp_path)
    assert traced.done.returncode == 0, traced.done.stderr
    sizes = [sorted(group["bytes"] for group in process["groups"]) for process in traced.processes]
    assert sorted(sizes) == [[128, 65536], [65536]]


def test_a_program_without_cuda_is_left_alone(tmp_path: Path) -> None:
    traced = run([sys.executable, "-c", "print('nothing')"], tmp_path)
    assert (traced.done.stdout, traced.done.stderr) == ("nothing\n", "")
    assert traced.processes == []
