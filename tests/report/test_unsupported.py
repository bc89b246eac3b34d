from __future__ import annotations

from collections.abc import Iterable

import msgspec

import profiles
from waywiser.render.parts import Words
from waywiser.render.views.unsupported import all_unsupported_words, reasons_of, unsupported_words
from waywiser.words.records import Unsupported

HOST = msgspec.structs.replace(profiles.machine(), gpus=(), gpu_reason="no driver")
GPU_PATHS = [profiles.H2D, profiles.D2H, "kernel-launch@gpu:0"]
FILE = f"{profiles.HOST} as list[piece=4096]"


def texts(words: Iterable[Words]) -> list[str]:
    return [" " * each.indent + each.text for each in words]


def test_what_needs_a_gpu_is_counted_apart_from_other_reasons() -> None:
    groups = {"no driver": GPU_PATHS, "no such file": [FILE], "no reason": []}
    assert texts(unsupported_words(groups.items(), HOST, "--all")) == [
        "not measured: 2 paths and 1 operation that need a GPU: no driver; --all lists them",
        f"not measured: {profiles.HOST} as list[piece=4KiB]: no such file",
    ]


def test_one_reason_is_one_line_also_when_it_is_given_twice() -> None:
    groups = [("no driver", GPU_PATHS[:1]), ("no driver", GPU_PATHS[2:])]
    assert texts(unsupported_words(groups, HOST, "--all")) == [
        "not measured: 1 path and 1 operation that need a GPU: no driver; --all lists them"
    ]
    assert texts(unsupported_words(groups[1:], HOST, "--all")) == [
        "not measured: 1 operation that needs a GPU: no driver; --all lists them"
    ]


def test_on_a_machine_with_gpus_a_reason_is_like_any_other() -> None:
    groups = {"no driver": [profiles.H2D, profiles.D2H]}
    assert texts(unsupported_words(groups.items(), profiles.machine(), "--all")) == [
        "not measured: no driver (2 paths); --all lists them"
    ]


def test_many_reasons_are_one_line() -> None:
    groups = {f"reason {n}": [FILE, "device -> file by sm"] for n in range(4)}
    assert texts(unsupported_words(groups.items(), HOST, "--json")) == [
        "not measured: 4 paths, for 4 reasons; --json lists them"
    ]
    pairs = {reason: members[1:] for reason, members in groups.items()}
    assert texts(unsupported_words(pairs.items(), HOST, "--json")) == [
        "not measured: 4 pairs of memories, for 4 reasons; --json lists them"
    ]
    assert texts(unsupported_words({}.items(), HOST, "--all")) == []


def test_all_are_listed_by_reason() -> None:
    unsupported_paths = [Unsupported(path, "no driver") for path in GPU_PATHS]
    assert texts(all_unsupported_words(reasons_of(unsupported_paths).items())) == [
        "not measured: no driver (2 paths and 1 operation)",
        *(f"  {path}" for path in GPU_PATHS),
    ]
