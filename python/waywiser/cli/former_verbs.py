"""Verbs and options of earlier versions, and what is written instead."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

Today = Callable[[Sequence[str]], list[str]]
"""The command of today for the words behind a verb."""


def _normal(words: Sequence[str]) -> list[str]:
    words = _split(words)
    if "--as-rows" in words:
        source, others = _taken(words, "--as-rows")
        return ["export", *others, "--for", "normal-values", "--source", *source]
    tables = {at + 1 for at, word in enumerate(words) if word == "--values"}
    files = [word for at, word in enumerate(words) if word[:1] != "-" and at not in tables]
    return ["check", *words] if files else ["survey", "--normal", *words]


def _list(words: Sequence[str]) -> list[str]:
    return ["survey", *words] if "--normal" in words else ["survey", "--list", *words]


def _policy(words: Sequence[str]) -> list[str]:
    words = _split(words)
    if "--compare" in words:
        files = [word for word in words if word[:1] != "-"]
        others = [word for word in words if word[:1] == "-" and word != "--compare"]
        return ["advise", *files[1:2], "--against", *files[:1], *others]
    if {"-o", "--output"} & {*words}:
        return ["export", *words, "--for", "waywiser"]
    return ["advise", *words]


def _model(words: Sequence[str]) -> list[str]:
    words = _split(words)
    if "--export" not in words:
        return ["predict", *words]
    program, others = _taken(words, "--export")
    return ["export", *others, "--for", *("model" if each == "json" else each for each in program)]


def _places(words: Sequence[str]) -> list[str]:
    kept = ["--format=json" if word == "--json" else word for word in _split(words)]
    return ["export", *(word for word in kept if word != "--placement")]


def _check(words: Sequence[str]) -> list[str]:
    return ["check", *(part for word in _split(words) for part in _OF_CHECK.get(word, (word,)))]


_OF_CHECK = {
    "--no-measure": ("--within", "0"),
    "--measure": (),
    "--labels": ("--values",),
    "--fleet": ("--baseline",),
    "--dask": ("--part",),
}


def _assumed(verb: str) -> Today:
    def today(words: Sequence[str]) -> list[str]:
        count, others = _taken(_split(words), "--gpus")
        at = _split(words).index("--gpus")
        return [verb, *others[:at], "--set", *(f"gpus={each}" for each in count), *others[at:]]

    return today


def _topology(words: Sequence[str]) -> list[str]:
    return ["topology", *(word for word in _split(words) if word != "--xml")]


def _tune(words: Sequence[str]) -> list[str]:
    return ["tune", *("--only" if word == "--paths" else word for word in _split(words))]


def _taken(words: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """The value of an option, and the other words."""
    at = words.index(option)
    return list(words[at + 1 : at + 2]), [*words[:at], *words[at + 2 :]]


def _split(words: Sequence[str]) -> list[str]:
    """``--values FILE`` of ``--values=FILE``."""
    return [part for word in words for part in _parted(word)]


def _parted(word: str) -> list[str]:
    name, equals, value = word.partition("=")
    return [name, value] if equals and name.startswith("--") else [word]


FORMER: dict[str, Today] = {
    "fleet": lambda words: ["check", *words],
    "history": lambda words: ["check", *words],
    "normal": _normal,
    "list": _list,
    "mpi": lambda words: ["doctor", "--mpi", *words],
    "completion": lambda words: ["--completion", *(words or ["bash"])],
    "policy": _policy,
    "model": _model,
}
"""The command of today for the words behind a former verb."""

FORMER_OPTIONS: dict[tuple[str, str], Today] = {
    ("advise", "--for"): _places,
    ("advise", "--ranks-per-gpu"): _places,
    ("check", "--dask"): _check,
    ("check", "--fleet"): _check,
    ("check", "--labels"): _check,
    ("check", "--measure"): _check,
    ("check", "--no-measure"): _check,
    ("predict", "--gpus"): _assumed("predict"),
    ("simulate", "--gpus"): _assumed("simulate"),
    ("topology", "--xml"): _topology,
    ("tune", "--paths"): _tune,
}
"""The command of today for the words behind a verb with a former option of it."""


def command_of_today(words: Sequence[str]) -> str:
    """``waywiser check nodes`` of ``fleet nodes``; empty if the verb is one of today."""
    if not words or words[0] not in FORMER:
        return ""
    return shlex.join(["waywiser", *FORMER[words[0]](words[1:])])


def option_of_today(words: Sequence[str]) -> tuple[str, str]:
    """A former option among the words of a command line, and the command of today; empty texts if
    there is none."""
    for word in _split(words[1:]):
        if word == "--":
            break
        if today := FORMER_OPTIONS.get((words[0], word)):
            return word, shlex.join(["waywiser", *today(words[1:])])
    return "", ""
