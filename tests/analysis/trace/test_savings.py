"""What lines could save, by a profile that was measured."""

from __future__ import annotations

import msgspec
import pytest

from analysis.trace import recorded_traces as recorded
from kept import RESULTS, unpacked
from waywiser.analysis.trace.patch_comparison import compare_traces
from waywiser.analysis.trace.savings import AdvisedLine, trace_advice
from waywiser.curves.subject import Subject
from waywiser.profile import Profile
from waywiser.profile.trace_file import CopyGroup, MemoryCalls, MemorySide
from waywiser.render.views.trace import headline_of

ONE = RESULTS / "2026-11-24-policy" / "h200-standard.wwp.xz"


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    file = unpacked(ONE, tmp_path_factory.mktemp("trace") / "node.wwp")
    with Profile.open(file) as profile:
        return Subject.of(profile)


def advised(subject: Subject, *groups: CopyGroup, seconds: float = 41.0) -> list[AdvisedLine]:
    uuid = subject.machine.gpus[0].uuid
    sites = [recorded.python_site(n) for n in range(1, len(groups) + 1)]
    named = [msgspec.structs.replace(group, site=n) for n, group in enumerate(groups)]
    trace = recorded.trace(recorded.process(sites, named, uuid=uuid), seconds=seconds)
    return list(trace_advice(trace, subject).lines)


@pytest.mark.parametrize("direction", ["H2D", "D2H"])
def test_pageable_memory_is_pinned_or_staged(subject: Subject, direction: str) -> None:
    (line,) = advised(subject, recorded.group(0, direction, copies=80, seconds=0.8))
    kinds = [each.kind for each in line.savings]
    assert set(kinds) >= {"pin", "library"}
    for each in line.savings:
        assert each.seconds is not None and each.low is not None and each.high is not None
        assert 0 < each.low <= each.seconds <= each.high < 0.8
    pinned = next(each for each in line.savings if each.kind == "pin")
    rate = float(pinned.best.split(",")[0])
    expected = 0.8 - 80 * 64 * recorded.MIB / (rate * 1e9)
    assert pinned.seconds == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("addressed", "repeated", "is_pinned"), [
    (0, 0, True), (80, 79, True), (80, 40, True), (80, 3, False),
])  # fmt: skip
def test_memory_that_is_copied_once_is_not_pinned(
    subject: Subject, addressed: int, repeated: int, is_pinned: bool
) -> None:
    own = recorded.group(0, addressed=addressed, repeated=repeated)
    (line,) = advised(subject, own)
    kinds = [each.kind for each in line.savings]
    assert "library" in kinds and ("pin" in kinds) == is_pinned


def test_what_is_hidden_behind_kernels_saves_nothing(subject: Subject) -> None:
    hidden = recorded.group(0, seconds=0.8, exposed_ns=0, alone_ns=0)
    half = recorded.group(1, seconds=0.8, exposed_ns=400_000_000)
    whole = recorded.group(2, seconds=0.8)
    lines = {line.line.place: line for line in advised(subject, hidden, half, whole)}
    assert not lines["train.py:1"].savings
    saved = [lines[place].best for place in ("train.py:2", "train.py:3")]
    assert saved[0] is not None and saved[1] is not None
    assert saved[0].seconds == pytest.approx((saved[1].seconds or 0.0) / 2)


@pytest.mark.parametrize("slept", [None, 0, 20, 60, 80])
def test_what_a_sleeping_thread_saves_is_an_upper_limit(
    subject: Subject, slept: int | None
) -> None:
    (line,) = advised(subject, recorded.group(0, copies=80, slept_after=slept, sleeps=4))
    (usual,) = advised(subject, recorded.group(0, copies=80))
    assert line.best is not None and usual.best is not None and usual.best.seconds is not None
    assert line.best.high == usual.best.high
    if slept is not None and slept > 48:  # most of them
        assert line.best.seconds is None and line.best.low == 0
    else:
        share = 1 - (slept or 0) / 80
        assert line.best.seconds == pytest.approx(share * usual.best.seconds)
        assert line.best.low == pytest.approx(share * usual.best.low)


def test_a_note_names_the_lines_whose_threads_sleep(subject: Subject) -> None:
    sites = [recorded.python_site(n) for n in (1, 2)]
    groups = [
        recorded.group(0, slept_after=80, sleeps=80),
        recorded.group(1, slept_after=80, sleeps=3),  # it waits for some files, say
    ]
    uuid = subject.machine.gpus[0].uuid
    trace = recorded.trace(recorded.process(sites, groups, uuid=uuid))
    found = trace_advice(trace, subject)
    (note,) = (each for each in found.notes if each.startswith("≤"))
    assert "train.py:1:" in note and "train.py:2" not in note
    assert found.saved is not None and found.saved_high > found.saved > 0
    alone = recorded.trace(recorded.process(sites, groups[:1], uuid=uuid))
    text = headline_of(alone, trace_advice(alone, subject))
    assert "at most" in text and "about" not in text


def test_many_small_copies_are_one_list(subject: Subject) -> None:
    small = recorded.group(0, copies=20_000, size=64, seconds=0.04, lost_ns=340_000_000)
    (line,) = advised(subject, small)
    assert line.best is not None and line.best.kind == "list"
    assert line.best.seconds is not None and 0.25 < line.best.seconds < 0.34
    few = recorded.group(0, copies=20, size=64, seconds=0.04, lost_ns=340_000_000)
    (line,) = advised(subject, few)
    assert all(each.kind != "list" for each in line.savings)


def test_pinned_copies_at_full_speed_have_no_faster_method(subject: Subject) -> None:
    now = recorded.group(0, host="pinned", copies=40, seconds=40 * 64 * recorded.MIB / 55e9,
                         asynchronous=40)  # fmt: skip
    (line,) = advised(subject, now)
    assert line.savings == ()
    assert line.why_not == "nothing: it is as fast as measured"
    blocking = msgspec.structs.replace(now, asynchronous=0)
    (line,) = advised(subject, blocking)
    assert [each.kind for each in line.savings] == ["asynchronous"]
    assert line.best is not None and line.best.seconds is None, "how much is hidden is not known"
    assert line.best.low == 0.0 and line.best.high == pytest.approx(line.line.exposed_seconds)


def test_a_slow_link_is_named(subject: Subject) -> None:
    slow = recorded.group(0, host="pinned", copies=40, seconds=40 * 64 * recorded.MIB / 20e9,
                          asynchronous=40)  # fmt: skip
    (line,) = advised(subject, slow)
    assert [each.kind for each in line.savings] == ["link"]
    assert line.best is not None and line.best.seconds is None, "no change of the program does it"
    beside = msgspec.structs.replace(slow, alone_ns=0)
    (line,) = advised(subject, beside)
    assert not line.savings, "another copy ran at the same time"
    assert line.why_not.startswith("slower than measured here")


def test_what_is_too_little_is_not_advised(subject: Subject) -> None:
    (line,) = advised(subject, recorded.group(0, copies=1, seconds=0.01), seconds=41.0)
    assert not line.savings
    (line,) = advised(subject, recorded.group(0, copies=1, seconds=0.01), seconds=1.0)
    assert line.savings


def test_what_another_copy_covers_is_no_certain_saving(subject: Subject) -> None:
    """Two lines whose copies ran at the same time for 0.7 of 0.8 s."""
    groups = [recorded.group(n, seconds=0.8, alone_ns=100_000_000) for n in (0, 1)]
    one, _ = advised(subject, *groups)
    alone, _ = advised(subject, *(recorded.group(n, seconds=0.8) for n in (0, 1)))
    assert one.best is not None and alone.best is not None
    assert one.best.seconds == pytest.approx((alone.best.seconds or 0.0) / 8)
    assert one.best.high == pytest.approx(alone.best.high)
    covered = msgspec.structs.replace(groups[0], alone_ns=0)
    (line,) = advised(subject, covered)
    assert line.best is not None and line.best.seconds is None and line.best.high > 0
    uuid = subject.machine.gpus[0].uuid
    sites = [recorded.python_site(1)]
    found = trace_advice(recorded.trace(recorded.process(sites, [covered], uuid=uuid)), subject)
    assert found.saved == 0.0


def test_processes_run_side_by_side(subject: Subject) -> None:
    """The sums are of the process with the most exposed time."""
    uuid = subject.machine.gpus[0].uuid
    site = [recorded.python_site(1)]
    times = (0.2, 0.8, 0.4)
    ranks = [
        recorded.process(site, [recorded.group(0, copies=80, seconds=each)], uuid=uuid, pid=pid)
        for pid, each in enumerate(times)
    ]
    found = trace_advice(recorded.trace(*ranks), subject)
    alone = trace_advice(recorded.trace(ranks[1]), subject)
    assert found.processes == 3 and found.lines[0].line.copies == 240
    for name in ("copies", "copy_seconds", "exposed_seconds", "saved", "saved_low", "saved_high"):
        assert getattr(found, name) == getattr(alone, name)


def test_without_kernels_nothing_is_certain(subject: Subject) -> None:
    uuid = subject.machine.gpus[0].uuid
    process = recorded.process([recorded.python_site(1)], [recorded.group(0)], uuid=uuid)
    process = msgspec.structs.replace(process, kernels_recorded=False)
    found = trace_advice(recorded.trace(process), subject)
    assert found.saved is None and not found.are_kernels_known
    assert all(each.seconds is None for each in found.lines[0].savings)
    assert any("kernels were not recorded" in note for note in found.notes)


@pytest.mark.parametrize(("change", "why"), [
    ({"operation": "set", "direction": None}, "no copy"),
    ({"operation": "library-copy"}, "waywiser.transfer"),
    ({"graph": True}, "CUDA graph"),
    ({"device_ns": 0}, "not known"),
    ({"exposed_ns": 0, "alone_ns": 0}, "kernels hide it"),
    ({"copies": 2000, "calls": 20, "bytes": 2000 * 64}, "batched already"),
])  # fmt: skip
def test_what_has_no_advice_says_why(subject: Subject, change: dict[str, object], why: str) -> None:
    (line,) = advised(subject, msgspec.structs.replace(recorded.group(0), **change))
    assert not line.savings and why in line.why_not


def test_results_that_are_read_one_by_one_may_be_needed_so(subject: Subject) -> None:
    items = recorded.group(0, "D2H", copies=800, size=4, seconds=0.001, lost_ns=100_000_000)
    (line,) = advised(subject, items, seconds=1.0)
    assert line.best is not None and line.best.kind == "list" and line.best.seconds is None


def test_without_a_profile_nothing_is_claimed() -> None:
    found = trace_advice(recorded.training(), None)
    assert found.saved is None and all(not line.savings for line in found.lines)


def test_a_profile_of_another_machine_says_so(subject: Subject) -> None:
    found = trace_advice(recorded.training("GPU-other"), subject)
    assert all("other GPUs" in line.why_not for line in found.lines) and found.saved is None


def test_memory_without_advice_says_why(subject: Subject) -> None:
    managed = recorded.group(0, source=MemorySide("managed"))
    (line,) = advised(subject, managed)
    assert "managed" in line.why_not


@pytest.mark.parametrize(("freed", "saved"), [(10, 0.45), (4, 0.2), (1, None), (0, None)])
def test_memory_that_is_pinned_again_and_again_could_be_kept(
    freed: int, saved: float | None
) -> None:
    memory = [MemoryCalls(0, "pin-allocate", 10, 500_000_000, 640 * recorded.MIB),
              MemoryCalls(0, "pin-free", freed, 90_000_000),
              MemoryCalls(0, "pin-register", 1, 50_000_000, 64 * recorded.MIB)]  # fmt: skip
    process = recorded.process([recorded.python_site(5)], [], memory=memory)
    processes = [msgspec.structs.replace(process) for _ in range(8)]
    loop, once = trace_advice(recorded.trace(*processes), None).pinning
    assert loop.calls == 10 and loop.saved == (saved and pytest.approx(saved))
    assert once.saved is None


def test_lost_records_and_killed_processes_are_said() -> None:
    lost = recorded.process([], [], ended=False, notes={"no-cupti": "no CUPTI was found"},
                            dropped_records=7)  # fmt: skip
    found = trace_advice(recorded.trace(lost), None)
    assert found.dropped == 7
    assert any("did not end normally" in note for note in found.notes)
    assert "no CUPTI was found" in found.notes


def test_a_change_is_compared_with_what_was_predicted(subject: Subject) -> None:
    before = recorded.training(subject.machine.gpus[0].uuid)
    predicted = trace_advice(before, subject)
    saving = predicted.lines[0].best
    assert saving is not None and saving.seconds is not None
    groups = list(before.processes[0].groups)
    ns = groups[0].device_ns - round(saving.seconds * 1e9)
    groups[0] = msgspec.structs.replace(
        groups[0], device_ns=ns, exposed_ns=ns, alone_ns=ns, call_ns=ns, source=MemorySide("pinned")
    )
    process = msgspec.structs.replace(before.processes[0], groups=tuple(groups))
    now = msgspec.structs.replace(before, processes=(process,), seconds=40.5)
    found = compare_traces(before, now, predicted)
    first = found.lines[0]
    assert first.place == "train.py:12" and first.is_as_predicted
    assert first.saved == pytest.approx(saving.seconds, abs=1e-6)
    assert found.reason == ""
    others = [line for line in found.lines[1:] if line.predicted is not None]
    assert others and not any(line.is_as_predicted for line in others), "they did not change"


def test_a_patched_program_is_compared_with_what_the_library_saves(subject: Subject) -> None:
    """The library makes the copies of the same line; it makes no lists."""
    uuid = subject.machine.gpus[0].uuid
    small = recorded.group(1, copies=20_000, size=64, seconds=0.04, lost_ns=340_000_000)
    sites = [recorded.python_site(n) for n in (1, 2)]
    before = recorded.trace(recorded.process(sites, [recorded.group(0), small], uuid=uuid))
    predicted = trace_advice(before, subject)
    (library,) = (each for each in predicted.lines[0].savings if each.kind == "library")
    assert library.seconds is not None and predicted.lines[0].best != library
    ns = round((0.8 - library.seconds) * 1e9)
    by_library = recorded.group(0, operation="library-copy", seconds=ns / 1e9)
    process = recorded.process(sites, [by_library, small], uuid=uuid)
    now = msgspec.structs.replace(recorded.trace(process), patched=True)
    lines = {line.place: line for line in compare_traces(before, now, predicted).lines}
    assert len(lines) == 2
    assert lines["train.py:1"].predicted == library.seconds
    assert lines["train.py:1"].is_as_predicted
    assert lines["train.py:2"].predicted is None


def test_copies_that_are_gone_are_no_proof(subject: Subject) -> None:
    uuid = subject.machine.gpus[0].uuid
    before = recorded.training(uuid)
    predicted = trace_advice(before, subject)
    for now in (recorded.trace(), recorded.training(uuid, exit_code=1)):
        found = compare_traces(before, now, predicted)
        assert found.reason
    gone = compare_traces(before, recorded.trace(), predicted)
    assert all(line.is_as_predicted is None for line in gone.lines)


def test_lines_of_several_gpus_are_compared_each(subject: Subject) -> None:
    site = [recorded.python_site(7)]
    other = MemorySide("device", 1)
    groups = [recorded.group(0, copies=3), recorded.group(0, copies=5, destination=other)]
    trace = recorded.trace(recorded.process(site, groups))
    found = compare_traces(trace, trace, trace_advice(trace, None))
    assert sorted((line.copies_before, line.copies_now) for line in found.lines) == [(3, 3), (5, 5)]


def test_a_line_of_one_run_only_is_shown(subject: Subject) -> None:
    site = [recorded.python_site(7)]
    before = recorded.trace(recorded.process(site, [recorded.group(0)]))
    now = recorded.trace(recorded.process([recorded.python_site(8)], [recorded.group(0)]))
    found = compare_traces(before, now, trace_advice(before, None))
    assert {(line.place, line.copies_before, line.copies_now) for line in found.lines} == {
        ("train.py:7", 80, 0), ("train.py:8", 0, 80),
    }  # fmt: skip
