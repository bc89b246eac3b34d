"""The table of verbs: what the help shows, how many options a verb has, and the form of options."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import pytest

from waywiser import cli
from waywiser.cli.call import command
from waywiser.cli.shared_options import _OTHERS, SHARED
from waywiser.cli.verb_table import GROUPS, VERBS
from waywiser.render.program_name import as_called, program_name

FIRST = ["survey", "show", "check", "compare", "advise", "predict", "trace", "doctor"]
OTHERS = ["report", "tune", "import", "export", "cluster", "simulate", "topology"]

MOST_OPTIONS = 16
OF_MEASUREMENTS = ("survey", "tune", "cluster survey")
"""They have an option for each thing that a plan may ask for."""


def options_of(verb: str) -> list[Any]:
    return [each for each in command().commands[verb].params if each.param_type_name == "option"]


def test_the_first_screen_has_eight_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    text = capsys.readouterr().out
    _, first, others, _ = text.split(":\n", 3)[:4]
    found = [
        [line.split()[0] for line in part.splitlines() if line[:2] == "  " and line[2:3].strip()]
        for part in (first, others)
    ]
    assert found == [FIRST, OTHERS]


def test_the_table_has_every_verb() -> None:
    assert [each.name for each in VERBS] == list(command().commands)
    assert {name.split()[0] for name in command().commands if " " in name} == {*GROUPS}
    assert all(each.question.endswith("?") or each.question.endswith(".") for each in VERBS)


@pytest.mark.parametrize("verb", [*(each.name for each in VERBS), "help", "--completion bash"])
def test_a_verb_in_a_text_is_a_command(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/lib/python3/waywiser/__main__.py"])
    assert as_called(f"write waywiser {verb} x") == f"write {program_name()} {verb} x"


@pytest.mark.parametrize("verb", [each.name for each in VERBS])
def test_a_verb_has_few_options(verb: str) -> None:
    names = {each.opts[-1] for each in options_of(verb)}
    assert len(names) <= MOST_OPTIONS or verb in OF_MEASUREMENTS


def test_an_option_of_several_verbs_has_one_form() -> None:
    forms: dict[str, list[str]] = defaultdict(list)
    for verb in command().commands:
        for each in options_of(verb):
            forms[each.opts[-1]].append("" if each.is_flag else each.metavar)
    assert sum(len(found) > 1 for found in forms.values()) > 20
    several = {name: {*found} for name, found in forms.items() if len({*found}) > 1}
    assert several == {"--output": {"FILE", "FOLDER"}}


def test_an_option_of_several_verbs_has_one_meaning() -> None:
    """The help of each verb begins with it, and goes on with what is of this verb."""
    texts: dict[str, list[str]] = defaultdict(list)
    for verb in command().commands:
        for each in options_of(verb):
            texts[each.opts[-1]].append(" ".join(each.help.split()))
    several = {name: found for name, found in texts.items() if len(found) > 1}
    assert len(several) > 20
    for name, found in several.items():
        assert all(text.startswith(SHARED[name].help) for text in found), name
    assert {each.name for each in _OTHERS} <= several.keys(), "what one verb has is declared there"


def test_a_short_option_is_one_option() -> None:
    found = {(each.opts[0], each.opts[-1]) for verb in command().commands
             for each in options_of(verb) if len(each.opts) > 1}  # fmt: skip
    assert len({short for short, _ in found}) == len(found)
