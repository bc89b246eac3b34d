"""The executor of the guide, which declares no traits: measured over the fake GPU, compared and
reported like any other."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from own_lock import commands, finish
from tree import FAKE_FOLDER, ROOT
from waywiser.curves.kinds import kind_of
from waywiser.curves.subject import Subject
from waywiser.machine.traits import ExecutorTraits
from waywiser.profile import Profile
from waywiser.words import Transfer

GUIDE = ROOT / "docs" / "how-to" / "add-an-executor.md"
PATH = "pageable@numa:0 -> pageable@numa:0 by chunked"
SMALLER = ("--sizes", "64KiB:256KiB", "--preset", "quick")
"""Sizes instead of those of the guide."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs ``waywiser`` with the example beside all other executors, over a fake GPU."""
    if not list(FAKE_FOLDER.glob("waywiser_example/_native.*.so")):
        pytest.skip(f"the native library with the example is not built in {FAKE_FOLDER}")
    environment = {
        **os.environ,
        "WAYWISER_NATIVE": "waywiser_example._native",
        "WAYWISER_FAKE": "devices=1;latency=1;event=1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(FAKE_FOLDER)]),
    }
    with commands(tmp_path, environment) as start:
        yield lambda *arguments, **more: finish(start(*arguments, **more))


def command_of_the_guide() -> list[str]:
    """What the guide says to type after ``waywiser``, with smaller sizes."""
    found = re.search(r"^\.venv/bin/waywiser (survey --only .*)$", GUIDE.read_text(), re.MULTILINE)
    assert found is not None
    words = shlex.split(found[1])
    at = words.index("--sizes")
    return [*words[:at], *words[at + 2 :], *SMALLER]


def test_the_example_declares_nothing() -> None:
    assert "traits()" not in (ROOT / "docs" / "how-to" / "examples" / "chunked.cpp").read_text()


def test_the_example_is_listed_measured_assessed_and_reported(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("survey", "--list")
    assert code == 0 and "one thread of the CPU copies in chunks" in out
    for file in ("a.wwp", "b.wwp"):
        code, out, err = run(*command_of_the_guide(), "-o", file)
        assert code == 0, err
        assert any(line.startswith(f"{PATH} ") for line in out.splitlines())

    with Profile.open(tmp_path / "a.wwp") as profile:
        subject = Subject.of(profile)
        assert all(visit.failure is None for visit in profile.visits())
    assert {curve.path.executor for curve in subject.curves if curve.path} == {"chunked"}
    assert subject.machine.traits.executors
    assert subject.machine.traits.executor("chunked") == ExecutorTraits("chunked")
    assert subject.machine.traits.executor("relay").route == "over relays"
    kind = kind_of(Transfer.parse(PATH), subject.machine)
    assert str(kind) == "pageable -> pageable by chunked" and not kind.is_quiet
    assert subject.curve(PATH) is not None

    # Readers need no native library.
    nowhere = {"WAYWISER_NATIVE": "there_is_none"}
    code, out, err = run(
        "report", "--format", "md", "--all", "-o", "-", "a.wwp", "b.wwp", **nowhere
    )
    assert code == 0, err
    assert "by chunked" in out
    code, out, err = run("compare", "--all", "a.wwp", "b.wwp", **nowhere)
    assert code in (0, 1, 3), err
    assert "by chunked" in out
    code, out, err = run("show", "a.wwp", **nowhere)
    assert code == 0 and PATH in out, err
