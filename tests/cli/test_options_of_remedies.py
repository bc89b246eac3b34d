"""Remedies name only options that the command has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tree import ROOT
from waywiser.cli.call import command

PACKAGE = ROOT / "python" / "waywiser"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
COMMAND = re.compile(r"waywiser ((?:cluster )?[a-z]+)([^;,()]*)")

OF_OTHER_PROGRAMS = {"--cpus", "--shm-size", "--pids-limit", "--ulimit", "--set-cc-mode", "--label"}

VERBS_OF_MODULES = {
    "measure/ranks/placement.py": ("survey", "tune"),
    "measure/ranks/": ("doctor", "survey", "tune", "cluster survey"),
    "cluster/connection/joining.py": ("cluster join",),
    "cluster/node/agent.py": ("cluster join",),
    "words/user_cache.py": ("doctor", "survey", "cluster join"),
    "words/trusted_file.py": ("doctor", "survey", "cluster join"),
    "machine/rank_limits.py": ("survey", "doctor", "cluster survey"),
}
"""The verbs that may print the remedies of a module; the first entry that it begins with counts."""


@cache
def remedies() -> list[tuple[str, str]]:
    """The file and the text of each remedy: an argument of that name, or a constant."""
    return list(_remedies())


def _remedies() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        text = path.read_text()
        if "remedy" not in text.lower():
            continue
        for node in ast.walk(ast.parse(text)):
            values: list[ast.expr] = []
            if isinstance(node, ast.Call):
                values = [each.value for each in node.keywords if each.arg == "remedy"]
            elif isinstance(node, ast.Assign):
                targets = (each.id for each in node.targets if isinstance(each, ast.Name))
                values = [node.value] if any("REMEDY" in each.upper() for each in targets) else []
            for value in values:
                parts = [
                    each.value
                    for each in ast.walk(value)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
                if said := " ".join(parts):
                    yield name, said


def options_of(verb: str) -> set[str]:
    return {option for each in command().commands[verb].params for option in each.opts} | {"--help"}


def verbs_of(file: str) -> tuple[str, ...]:
    """The verbs that may print what a module says; empty if the table does not list it."""
    stem = Path(file).stem.replace("_", " ")
    if file.startswith("cli/") and stem in command().commands:
        return (stem,)
    return next((verbs for name, verbs in VERBS_OF_MODULES.items() if file.startswith(name)), ())


def test_there_are_remedies_to_check() -> None:
    found = [text for _, text in remedies() if OPTION.search(text)]
    assert len(found) > 50


def test_the_options_of_a_named_command_are_its_own() -> None:
    wrong = [
        f"{file}: {text}"
        for file, text in remedies()
        for verb, words in COMMAND.findall(text)
        if verb in command().commands
        and not set(OPTION.findall(words)) <= options_of(verb) | OF_OTHER_PROGRAMS
    ]
    assert wrong == []


def test_other_options_are_those_of_the_verbs_that_print_the_remedy() -> None:
    known = set.union(*map(options_of, command().commands))
    wrong = []
    for file, text in remedies():
        named = set(OPTION.findall(COMMAND.sub("", text))) - OF_OTHER_PROGRAMS
        for verb in verbs_of(file):
            if missing := named - options_of(verb):
                wrong.append(f"{file}: {verb} has no {missing}: {text}")
        if missing := named - known:
            wrong.append(f"{file}: no verb has {missing}: {text}")
    assert wrong == []


@pytest.mark.parametrize("verb", ["doctor", "survey"])
def test_what_starts_ranks_has_the_options_of_launches(verb: str) -> None:
    assert {"--mpicc", "--launcher"} <= options_of(verb)
