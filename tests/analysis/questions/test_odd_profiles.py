"""Whatever a profile lacks, every analysis answers, and no figure lies outside its interval."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from msgspec.structs import replace
from subjects import curve, postal, subject
from tests import profiles

from waywiser.analysis.questions import across
from waywiser.analysis.questions.all_answers import answers
from waywiser.curves.answer import Answer, Exhibit
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine, NumaNode, Package
from waywiser.words.records import SUMMARY, VOID, Failure, Samples, Series, Visit

SPARSE = "managed@numa:0 -> managed@gpu:{a} by page-fault[chunk=8,stride=65536]"
PATHS = (
    "pinned@numa:0 -> device@gpu:{a} by copy-engine",
    "device@gpu:{a} -> pinned@numa:0 by copy-engine",
    "pageable@numa:0 -> device@gpu:{a} by copy-engine",
    "pageable@numa:1 -> device@gpu:{a} by copy-engine",
    "pinned@numa:0 -> device@gpu:{a} by sm",
    "device@gpu:{a} -> device@gpu:{b} by copy-engine",
    "device@gpu:{a} -> device@gpu:{b} by copy-engine[peer=off]",
    "device@gpu:{a} -> device@gpu:{a} by copy-engine",
    "managed@numa:0 -> managed@gpu:{a} by page-fault",
    "managed@numa:0 -> managed@gpu:{a} by prefetch",
    SPARSE,
    "pageable@numa:0 -> pageable@numa:1 by cpu[threads=2]",
    "pinned@numa:0 -> device@gpu:{a} by copy-engine (flushed)",
)
SIZES: tuple[tuple[int, ...], ...] = (
    (64,), (2**26,), (1000, 3000), (8, 2**20, 2**26), tuple(2**n for n in range(10, 27, 2)),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_every_analysis_answers(seed: int) -> None:
    found = odd(random.Random(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _is_finite(across.tables([found, found]))
        for answer in answers(found):
            assert _is_finite(answer)
            assert all(map(_holds, _exhibits_of(answer)))


def _is_finite(found: object) -> bool:
    text = msgspec.json.encode(found).decode()
    return not {"nan", "inf", "NaN"} & set(text.replace('"', " ").split())


def _exhibits_of(answer: Answer) -> Iterator[Exhibit]:
    for finding in answer.findings:
        yield from finding.exhibits
        if finding.effect is not None:
            yield Exhibit(finding.id, "effect", finding.effect, "ratio", finding.interval)


def _holds(result: Exhibit) -> bool:
    span = result.interval
    return span is None or span.low - 1e-9 <= result.value <= span.high * (1 + 1e-9) + 1e-9


def test_where_no_byte_is_rated_nothing_is_said_of_rates() -> None:
    sparse = SPARSE.format(a=0)
    found = subject(
        curve(sparse, postal(1e-5, 1e9), SIZES[-1]),
        curve(f"{sparse}; {SPARSE.format(a=1)}", postal(1e-5, 1e9), SIZES[-1]),
    )
    said = [finding for answer in answers(found) for finding in answer.findings]
    assert all(exhibit.unit != "B/s" for finding in said for exhibit in finding.exhibits)


def odd(rng: random.Random) -> Subject:
    """None to 16 GPUs, some paths, of which visits failed, were skipped, hold one sample, another
    tool's summary, or times that no clock shows."""
    gpus, numa = rng.choice([0, 1, 2, 3, 8, 16]), rng.choice([1, 2, 4])
    texts = dict.fromkeys(
        path.format(a=a, b=(a + 1) % max(gpus, 1))
        for path in rng.sample(PATHS, rng.randint(0, 7))
        if numa > 1 or "numa:1" not in path
        if gpus > 1 or "{b}" not in path
        for a in (range(min(gpus, 3)) if "{a}" in path else (0,))
    )
    bare = [text for text in texts if "(" not in text]
    for _ in range(2):
        if len(bare) > 2:
            texts["; ".join(rng.sample(bare, rng.choice([2, 3])))] = None
    return subject(*(_curve(rng, text) for text in texts), machine=_machine(rng, gpus, numa))


def _curve(rng: random.Random, text: str) -> list[Series]:
    truth = postal(rng.choice([1e-6, 1e-5]), rng.choice([1e9, 5e10]))
    made = curve(
        text, truth, rng.choice(SIZES), blocks=rng.choice([1, 2, 6]),
        count=rng.choice([1, 3, 6, 12]), between=rng.choice([0.0, 0.002, 0.1]),
        noise=rng.choice([0.0, 0.002, 0.2]),
    )  # fmt: skip
    if rng.random() < 0.5:
        return made
    return [replace(each, visits=_spoiled(rng, each.visits)) for each in made]


def _spoiled(rng: random.Random, visits: Sequence[Visit]) -> tuple[Visit, ...]:
    def spoil(visit: Visit) -> Visit:
        taken = visit.samples
        first, count = taken.span[:1], len(taken)
        lost = replace(visit, samples=Samples(), stop="failed", failure=Failure("timeout", "late"))
        return rng.choice(
            [
                visit,
                lost,
                replace(lost, stop="skipped", failure=Failure("skipped", "saturated")),
                replace(visit, samples=Samples(first, repetitions=(1,), flags=(SUMMARY,))),
                replace(visit, samples=Samples(first, repetitions=(1,), flags=(0,))),
                replace(visit, samples=replace(taken, flags=(VOID,) * count)),
                replace(visit, samples=replace(taken, span=first * count)),
                replace(visit, samples=replace(taken, span=(0.0,) * count)),
                replace(visit, samples=replace(taken, host=(), transfers=())),
            ]
        )

    return tuple(map(spoil, visits))


def _machine(rng: random.Random, gpus: int, numa: int) -> Machine:
    usual = profiles.machine()
    return replace(
        usual,
        gpus=tuple(
            replace(
                usual.gpus[0],
                index=index,
                uuid=f"GPU-{index}",
                pci=f"0000:{index + 1:02x}:00.0",
                numa=rng.choice([-1, index % numa]),
                peers=tuple(other for other in range(gpus) if other != index),
            )
            for index in range(gpus)
        ),
        numa=tuple(NumaNode(n, tuple(range(8 * n, 8 * n + 8)), 2**35, n) for n in range(numa)),
        packages=tuple(Package(n, "Test CPU", 8, 16) for n in range(numa)),
    )
