"""The page with the verbs and options of before: it is current, and what it names exists."""

from __future__ import annotations

from typing import Any

import pytest

from script_module import script_module
from tree import ROOT
from waywiser.cli.call import command
from waywiser.cli.command_help import argument_rows, option_rows
from waywiser.cli.former_verbs import FORMER, FORMER_OPTIONS

PAGE = script_module(ROOT / "docs" / "former_verbs.py")


def test_the_page_is_current() -> None:
    path = ROOT / "docs" / "former-verbs.md"
    made = "run: python docs/former_verbs.py > docs/former-verbs.md"
    assert path.read_text() == PAGE.document(), made


def names_of(parameters: list[Any]) -> set[str]:
    """Each argument and option of a verb as it is written."""
    found = {name for name, _ in argument_rows(parameters)}
    for names, _ in option_rows(parameters):
        *short, last = names.split(", ")
        form = last.partition(" ")[2]
        found |= {names, last, *(f"{each} {form}".strip() for each in short)}
    return found


@pytest.mark.parametrize(("before", "now", "note"), list(PAGE.rows()))
def test_what_is_named_today_exists(before: str, now: str, note: str) -> None:
    group = command()
    verb = next((name for name in group.commands if f"{now} ".startswith(f"{name} ")), "")
    rest = now.removeprefix(verb).strip()
    known = names_of(group.commands[verb].params if verb else group.params)
    known |= {"--for waywiser"} if verb == "export" else set()
    while rest:
        part = max(
            (each for each in known if f"{rest} ".startswith(f"{each} ")), key=len, default=""
        )
        assert part, f"{now}: {rest!r} is nothing of today"
        rest = rest.removeprefix(part).strip()


def test_what_is_no_more_has_another_place() -> None:
    """What prints its command of today when it is used has a row that says where it is."""
    moved = {*PAGE.MOVED}
    assert {verb for verb in FORMER if verb in PAGE.FORMER} <= moved
    for verb, option in FORMER_OPTIONS:
        assert any(name.startswith(f"{verb} ") and option in name for name in moved), option


def test_nothing_of_today_is_a_former_verb() -> None:
    assert not {*FORMER} & {*command().commands}
    assert {verb for verb in PAGE.FORMER if verb} - {*FORMER} == {*command().commands}
