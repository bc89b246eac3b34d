"""Work divided among copies of a process; in processes of their own, since tests have threads."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

from waywiser import children


def run(script: str) -> object:
    """What the script prints as JSON, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_each_job_is_done_by_another_process_and_in_order() -> None:
    found = run("""
import json, os, time
from waywiser.children import side_by_side

def job(n):
    time.sleep(0.05 * (3 - n))  # the first is done last
    return f"{n} {os.getpid() != parent}".encode() * 50_000  # more than a pipe holds

parent = os.getpid()
found = side_by_side([lambda n=n: job(n) for n in range(3)])
print(json.dumps([[each[:6].decode(), len(each)] for each in found]))
""")
    assert found == [[f"{n} True", 300_000] for n in range(3)]


def test_a_job_that_fails_gives_nothing_and_the_others_what_they_have() -> None:
    found = run("""
import json, os, signal
from waywiser.children import side_by_side

def fails(): raise ValueError("odd")
def dies(): os.kill(os.getpid(), signal.SIGKILL)
def leaves(): os._exit(0)

found = side_by_side([fails, dies, lambda: b"whole", leaves, lambda: b""])
print(json.dumps([each.decode() if each is not None else None for each in found]))
""")
    assert found == [None, None, "whole", None, ""]


def test_none_is_left_behind_and_nothing_is_written_twice() -> None:
    found = run("""
import json, os, sys
from waywiser.children import side_by_side

sys.stdout.write("[")  # still in the buffer when copies are made
before = len(os.listdir("/proc/self/fd"))
side_by_side([lambda: b"1", lambda: b"2"])
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
print(json.dumps(left), ",", len(os.listdir("/proc/self/fd")) - before, "]")
""")
    assert found == [False, 0]


def test_where_no_process_can_be_made_nothing_is_given() -> None:
    found = run("""
import json, os
from waywiser.children import side_by_side

def no_more(): raise BlockingIOError("no more processes")

os.fork = no_more
print(json.dumps(side_by_side([lambda: b"1", lambda: b"2"])))
""")
    assert found == [None, None]


def test_a_process_with_threads_works_alone() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert children.useful() == 1
    finally:
        stop.set()
        thread.join()
    most = run("import json, waywiser.children as c; print(json.dumps([c.useful(), c.MOST]))")
    assert isinstance(most, list) and 1 <= most[0] <= most[1]
