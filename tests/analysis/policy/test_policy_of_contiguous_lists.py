"""Policies of lists that are contiguous in host memory: rows that no other list has."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.analysis.questions.subjects import Seconds, curve, postal, subject

from waywiser import __version__
from waywiser.analysis.policy.advice import CopyRequest, advise
from waywiser.analysis.policy.build import build_policy, decision_tables, why_not_written
from waywiser.analysis.policy.difference import compare_policies
from waywiser.analysis.policy.errors import NotAPolicy, NotMeasured, PolicyError
from waywiser.analysis.policy.file import decoded
from waywiser.analysis.policy.table import Policy
from waywiser.curves.subject import Subject
from waywiser.profile import Run
from waywiser.render.parts import Section
from waywiser.render.views.advice import advice_parts
from waywiser.render.views.policy import policy_parts
from waywiser.words.records import Series

TO_HOST = "device@gpu:0 -> pinned@numa:0"
SIZES = (2**20, 2**24, 2**26)
KERNEL, ENGINE = postal(10e-6, 40e9), postal(2e-3, 20e9)
PIPELINE = postal(60e-6, 52e9)
"""The pipeline is as fast as the kernel at 8.7 MB, and faster above."""
CROSSOVER = 8.7e6


def lists(executor: str, seconds: Seconds, piece: int = 4096, side: str = "source") -> list[Series]:
    scattered = f",scattered={side}" if side else ""
    return curve(f"{TO_HOST} by {executor} as list[piece={piece}{scattered}]", seconds, SIZES)


def surveyed(*more: list[Series], pipeline: Seconds = PIPELINE) -> Subject:
    return subject(
        *more,
        lists("sm", KERNEL), lists("batch", ENGINE), lists("gather-scatter", pipeline),
        lists("sm", KERNEL, side=""), lists("batch", ENGINE, side=""),
    )  # fmt: skip


def executors(policy: Policy, count: int, *, contiguous: bool) -> set[str]:
    found = policy.class_of("device", "pinned")
    assert found is not None
    row = found.row(4096, count, 64, host_contiguous=contiguous)
    return {row.executor} if row is not None else set()


def test_they_have_rows_of_their_own() -> None:
    made = surveyed()
    run = Run(0, "2026-11-27T00:00:00+00:00", None, __version__, ())
    overview = msgspec.structs.replace(made.overview, runs=(run,))
    policy = build_policy([msgspec.structs.replace(made, seen=overview)])
    (found,) = policy.classes
    assert {row.executor for row in found.rows} == {"sm"}
    assert {row.executor for row in found.host_contiguous} == {"sm", "gather-scatter"}
    assert executors(policy, 64, contiguous=True) == {"sm"}
    assert executors(policy, 10_000, contiguous=True) == {"gather-scatter"}
    assert executors(policy, 10_000, contiguous=False) == {"sm"}
    for row in found.host_contiguous:
        assert row.from_bytes == 1 and row.count > 1
        if row.executor == "gather-scatter":
            assert row.bytes * row.pieces > CROSSOVER / 1.5
            assert row.settings.keys() == {"chunk", "slots", "blocks"}
            assert row.next is not None and row.next.executor == "sm"


def test_the_file_has_them_under_a_key_of_their_own_that_others_lack() -> None:
    policy = build_policy([surveyed()])
    data = policy.to_json()
    assert decoded(data) == policy
    (written,) = json.loads(data)["classes"]
    assert len(written["host_contiguous"]) == len(policy.classes[0].host_contiguous)
    usual = build_policy([subject(lists("sm", KERNEL, side=""), lists("batch", ENGINE, side=""))])
    assert b"host_contiguous" not in usual.to_json()
    assert usual.classes[0].rows == policy.classes[0].rows


def test_a_row_of_one_copy_among_them_is_damage() -> None:
    policy = build_policy([surveyed()])
    (found,) = policy.classes
    one = msgspec.structs.replace(found.host_contiguous[0], count=1)
    text = msgspec.structs.replace(
        policy, classes=(msgspec.structs.replace(found, host_contiguous=(one,)),)
    ).to_json()
    with pytest.raises(NotAPolicy, match="a row of one copy is among those of lists"):
        decoded(text)


def test_pieces_that_one_executor_alone_moved_decide_nothing_beside_others() -> None:
    """Earlier surveys measured the pipeline alone."""
    alone = subject(*(lists("gather-scatter", PIPELINE, piece) for piece in (4096, 2**17)))
    (table, *_) = decision_tables([alone])
    assert "only gather-scatter was measured, and not" in why_not_written(table)
    assert build_policy([alone]).classes == ()
    more = lists("gather-scatter", KERNEL, 2**17)
    mixed = build_policy([surveyed(more)])
    assert {row.bytes for row in mixed.classes[0].host_contiguous} == {4096}


def test_lists_that_are_contiguous_on_the_gpu_are_none_of_them() -> None:
    others = [
        lists(each, KERNEL, side="destination") for each in ("sm", "batch", "copy-engine")
    ]  # fmt: skip
    policy = build_policy([surveyed(*others)])
    assert policy == build_policy([surveyed()])


def shown(policy: Policy, *of: Subject) -> list[str]:
    parts = policy_parts(policy, decision_tables(of) if of else ())
    return [part.title for part in parts if isinstance(part, Section) and part.title]


def test_they_are_shown_and_compared_apart() -> None:
    fast, slow = surveyed(), surveyed(pipeline=postal(60e-6, 30e9))
    policy, other = build_policy([fast]), build_policy([slow])
    titles = shown(policy, fast)
    assert any(title.startswith("device -> pinned, lists of 2") for title in titles)
    contiguous = "device -> pinned, contiguous in host memory"
    assert any(title.startswith(f"{contiguous}, lists of 2") for title in titles)
    found = compare_policies(policy, other, decision_tables([fast]), decision_tables([slow]))
    assert found.differences
    assert {str(each.kind) for each in found.differences} == {contiguous}
    assert {str(method.executor) for each in found.differences for method in each.methods} == {
        "sm", "gather-scatter",
    }  # fmt: skip
    without = build_policy([subject(lists("sm", KERNEL, side=""), lists("batch", ENGINE, side=""))])
    assert list(map(str, compare_policies(policy, without).only_first)) == [contiguous]
    (only,) = build_policy([
        subject(lists("sm", KERNEL), lists("batch", ENGINE), lists("gather-scatter", PIPELINE))
    ]).classes  # fmt: skip
    assert only.rows == () and only.host_contiguous
    assert shown(msgspec.structs.replace(policy, classes=(only,)))


def request(count: int, *, contiguous: bool = True, size: int = 4096) -> CopyRequest:
    ends = TO_HOST.split(" -> ")
    return CopyRequest.of(*ends, size, count=count, host_contiguous=contiguous)


def test_advice_is_that_of_the_policy() -> None:
    profile = surveyed()
    policy = build_policy([profile])
    for count in (256, 4096, 16384):
        for contiguous in (False, True):
            found = advise([profile], request(count, contiguous=contiguous))
            chosen = {found.best.method.executor}
            assert chosen == executors(policy, count, contiguous=contiguous)
            text = " ".join(getattr(part, "text", "") for part in advice_parts(found))
            assert ("contiguous in host memory" in text) == contiguous
    without = subject(lists("sm", KERNEL, side=""))
    with pytest.raises(NotMeasured, match=r"lists .*, contiguous in host memory"):
        advise([without], request(256))


def test_one_copy_and_copies_without_host_memory_have_no_such_advice() -> None:
    with pytest.raises(PolicyError, match="one copy is contiguous on both sides"):
        request(1)
    with pytest.raises(PolicyError, match="is not between a GPU and host memory"):
        CopyRequest.of("device@gpu:0", "device@gpu:1", 4096, count=9, host_contiguous=True)
