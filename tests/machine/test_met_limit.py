from __future__ import annotations

import errno
import os
import resource
import subprocess
import threading

import pytest

from waywiser.machine import met_limit as module
from waywiser.machine.met_limit import how_to_raise, limit_in, met_limit
from waywiser.words import WaywiserError


def of(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (of(errno.EMFILE), "ulimit -n allows"),
        (of(errno.ENFILE), "fs.file-max"),
        (of(errno.ENOMEM), "memory is used up"),
        (MemoryError("std::bad_alloc"), "memory is used up"),
        (RuntimeError("can't start new thread"), "a thread or process cannot be started"),
        (RuntimeError("Resource temporarily unavailable"), "raise the limit of processes"),
        (ImportError("x.so: failed to map it: Cannot allocate memory"), "memory is used up"),
    ],
)
def test_a_limit_is_named_with_a_remedy_also_if_it_was_wrapped(error: Exception, says: str) -> None:
    assert says in str(met_limit(error))
    try:
        try:
            raise error
        except Exception as cause:
            raise WaywiserError("cannot be read", remedy="ask its owner") from cause
    except WaywiserError as wrapped:
        assert says in str(met_limit(wrapped))


@pytest.mark.parametrize(
    "error",
    [
        of(errno.EAGAIN),  # a lock that another has, or a pipe that is full
        of(errno.ENOENT),
        ImportError("x.so: failed to map segment from shared object: Operation not permitted"),
        WaywiserError("odd"),
        RuntimeError("odd"),
        ImportError("No module named 'x'"),
    ],
)
def test_other_errors_are_no_limits(error: Exception) -> None:
    assert met_limit(error) is None


def test_a_process_that_cannot_be_started_is_a_limit() -> None:
    code = compile("raise error", subprocess.__file__, "exec")
    with pytest.raises(BlockingIOError) as caught:
        exec(code, {"error": of(errno.EAGAIN)})
    assert "a thread or process cannot be started" in str(met_limit(caught.value))


def test_the_number_of_a_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {resource.RLIMIT_AS: 200 << 20, resource.RLIMIT_NOFILE: 17}
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(
        module.resource, "getrlimit", lambda which: (limits.get(which, unlimited), unlimited)
    )
    assert "ulimit -v allows 200 MiB" in str(limit_in("std::bad_alloc"))
    assert "ulimit -n allows 17" in str(limit_in("Too many open files: x"))


def test_a_thread_of_python_that_cannot_start_is_recognised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "_start_new_thread", fails)
    with pytest.raises(RuntimeError) as caught:
        threading.Thread(target=print).start()
    assert met_limit(caught.value) is not None


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (10, resource.RLIM_INFINITY, "raise it, as by ulimit -f unlimited"),
        (1024, 4096, "raise it, as by ulimit -f 4, its hard limit"),
        (4096, 4096, "its hard limit is the same: "),
    ],
)
def test_a_limit_is_raised_to_its_hard_limit_at_most(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, expected: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda number: (soft, hard))
    assert how_to_raise("-f", resource.RLIMIT_FSIZE, unit=1024).startswith(expected)
