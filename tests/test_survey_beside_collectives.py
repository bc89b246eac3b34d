"""A collective with copies and compute, measured over the fake GPU and the fake NCCL: the survey,
and what verbs make of its profile."""

from __future__ import annotations

from pathlib import Path

from own_lock import commands, finish
from tree import FAKE_FOLDER
from waywiser.profile import Profile

ALLREDUCE = "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allreduce] of 64KiB"
COPY = "device@gpu:0 -> pageable@numa:0 by copy-engine of 4MiB"
PINNED = "device@gpu:0 -> pinned@numa:0 by copy-engine of 4MiB"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product of 64KiB"
SETS = (f"{ALLREDUCE}; {PINNED}", f"{PRODUCT}; {COPY}; {ALLREDUCE}")

FAKES = {
    "WAYWISER_FAKE": "devices=2;d2h=0.5",
    "WAYWISER_FAKE_NCCL": "rate=0.2;busy=6",
    "WAYWISER_NCCL": str(FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"),
}


def test_a_planted_slowdown_is_found_and_every_verb_takes_the_profile(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    options = [word for text in (*SETS, PINNED) for word in ("--workload", text)]
    command = ("survey", "--preset", "quick", "-o", "a.wwp", *options)
    with commands(tmp_path, {**fake_native_environment, **FAKES}) as start:
        code, out, err = finish(start(*command, "--dry-run"))
        assert code == 0, err
        assert "by nccl[collective=allreduce]; " in out
        code, _, err = finish(start(*command))
        assert code == 0, err
        code, out, err = finish(start("survey", "--resume", *command[1:]))
        assert code == 0, err
        shown = {verb[-1] if "--for" in verb else verb[0]: finish(start(*verb)) for verb in (
            ("show", "a.wwp"),
            ("advise", "a.wwp", "--from", "device@gpu:0", "--to", "pinned@numa:0", "--bytes",
             "4MiB", "--beside", "allreduce"),
            ("export", "a.wwp", "--for", "waywiser"),
            ("report", "a.wwp", "-o", "a.html"),
            ("compare", "a.wwp", "a.wwp"),
            ("export", "a.wwp", "--format", "json", "-o", "a.json"),
        )}  # fmt: skip
    code, _, err = shown.pop("compare")
    assert (code, err) == (3, ""), "a survey by few processes decides nothing beside itself"
    assert {verb: (code, err) for verb, (code, _, err) in shown.items() if code} == {}
    with Profile.open(tmp_path / "a.wwp") as profile:
        visits = {str(visit.workload): visit for visit in profile.visits()}
    assert len(visits) == 3 and all(visit.failure is None for visit in visits.values())
    for text, visit in visits.items():
        members = text.split("; ")
        assert all(len(row) == len(members) for row in visit.samples.alone)
        if len(members) > 1:
            at = next(n for n, member in enumerate(members) if "nccl" in member)
            samples = zip(visit.samples.transfers, visit.samples.alone, strict=True)
            assert max(together[at] / alone[at] for together, alone in samples) > 1.5
    assert "allreduce gpu:0-1 of 64 KiB" in shown["show"][1]
    assert "Why: allreduce takes" in shown["advise"][1]
    assert "calls of allreduce" in shown["advise"][1]
    assert "Beside: collectives, copies and compute" in (tmp_path / "a.html").read_text()
    assert '"alone"' in (tmp_path / "a.json").read_text()
