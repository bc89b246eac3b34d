from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine.captured import ALL, CAPTURES
from script_module import script_module
from waywiser.machine import native
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import (
    LIMIT_BYTES,
    SCHEMA,
    CaptureError,
    capture_live,
    capture_text,
    load_capture,
)
from waywiser.words import WaywiserError


@pytest.mark.parametrize("name", ALL)
def test_a_capture_saves_and_loads_unchanged(name: str, tmp_path: Path) -> None:
    capture = load_capture(CAPTURES / f"{name}.json")
    (tmp_path / "copy.json").write_text(capture_text(capture), encoding="utf-8")
    assert load_capture(tmp_path / "copy.json") == capture


def test_the_synthesised_captures_are_current() -> None:
    synthesise = script_module(CAPTURES / "synthesise.py")
    for name, made in synthesise.MACHINES.items():
        assert (CAPTURES / f"{name}.json").read_bytes() == synthesise.text_of(made()), name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "neither a capture nor hwloc XML"),
        ("plain words", "neither a capture"),
        ("{}", "not a capture"),
        ('{"schema": 1}', "missing required field `hwloc`"),
        ('{"schema": 99, "hwloc": "", "new": 1}', "reads up to 1"),
        ('{"schema": 1, "hwloc": "<x/>"}', "its hwloc XML"),
        ("<x/>", "its root is <x>"),
        ("<topology", "not XML"),
    ],
)
def test_a_file_that_is_no_capture_is_named_with_the_reason(
    text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad"
    file.write_text(text)
    with pytest.raises(WaywiserError, match=why) as caught:
        load_capture(file)
    assert str(file) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nowhere\.xml: cannot be read: No such file"):
        load_capture(tmp_path / "nowhere.xml")


def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(CaptureError, match=r": is a .* not a regular file"):
            load_capture(path)


def test_a_file_above_the_limit_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "a.xml").open("wb") as file:
        file.truncate(LIMIT_BYTES + 1)  # sparse
    with pytest.raises(CaptureError, match="at most 32 MiB are read"):
        load_capture(tmp_path / "a.xml")


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with pytest.raises(WaywiserError):
            load_capture(file.name)


def test_without_the_native_library_a_live_capture_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    native.load.cache_clear()
    monkeypatch.setenv(native.MODULE_VARIABLE, "no_such_library")
    with pytest.raises(native.NativeError, match="make survey"):
        capture_live()
    native.load.cache_clear()


def test_a_live_capture_is_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hwloc's answer for another machine, so that no build is needed."""
    xml = load_capture(CAPTURES / "no-gpu.json").hwloc
    native.load.cache_clear()
    monkeypatch.setitem(sys.modules, "stand_in", SimpleNamespace(hwloc_xml=lambda: xml))
    monkeypatch.setenv(native.MODULE_VARIABLE, "stand_in")
    capture = capture_live()
    native.load.cache_clear()
    assert (capture.schema, capture.hwloc) == (SCHEMA, xml)
    assert capture.nvml is not None
    assert set(capture.system.affinity) == os.sched_getaffinity(0)
    assert machine_from(capture).hostname == capture.system.hostname


def test_hwlocs_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise ValueError("hwloc cannot read this machine")

    native.load.cache_clear()
    monkeypatch.setitem(sys.modules, "stand_in", SimpleNamespace(hwloc_xml=fail))
    monkeypatch.setenv(native.MODULE_VARIABLE, "stand_in")
    with pytest.raises(CaptureError, match="cannot read this machine"):
        capture_live()
    native.load.cache_clear()
