"""Scripts that complete the command line of ``waywiser``, from templates: for bash 4.4 and later
(not using the package bash-completion), for zsh (by ``source``, or as ``_waywiser`` in a folder of
``fpath``), and for fish 3 and later."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple


class Values(NamedTuple):
    """What may follow an option, or stand as an argument."""

    kind: Literal["nothing", "words", "pattern", "profiles", "files", "folders"]
    """A ``pattern`` is several of the words, in quotes."""
    words: tuple[str, ...] = ()


class OptionWords(NamedTuple):
    names: tuple[str, ...]
    does: str
    values: Values | None
    """None for an option that takes no value."""

    @property
    def sentence(self) -> str:
        """What it does in the first words, which fit beside the name."""
        return self.does.partition(": ")[0].partition("; ")[0].partition(". ")[0].rstrip(".")


class VerbWords(NamedTuple):
    name: str
    """Empty for the command without a verb."""
    does: str
    options: tuple[OptionWords, ...]
    arguments: Values
    is_group: bool = False
    """Whether it is the first of two words."""


NOTHING, PROFILES, FILES = Values("nothing"), Values("profiles"), Values("files")

SUFFIX = "wwp"
"""The suffix of the names of profiles."""


SHELLS = ("bash", "zsh", "fish")

_TEMPLATES = Path(__file__).parent / "templates"


def completion_script(shell: str, verbs: Sequence[VerbWords]) -> str:
    """The script for one of `SHELLS`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        # Scripts of shells are full of the usual marks.
        variable_start_string="@{",
        variable_end_string="}@",
        comment_start_string="@#",
        comment_end_string="#@",
        line_statement_prefix="%%",
    )
    environment.filters |= {
        "call": _call,
        "quote": shlex.quote,
        "fish_condition": _fish_condition,
        "fish_name": _fish_name,
        "fish_quote": _fish_quoted,
        "fish_values": _fish_values,
    }
    return environment.get_template(f"complete.{shell}.j2").render(verbs=verbs, shell=shell)


def _call(values: Values) -> str:
    """The call of a function of the scripts for bash and zsh."""
    match values.kind:
        case "nothing":
            return ":"
        case "words" | "pattern":
            return shlex.join([f"_waywiser_{values.kind}", *values.words])
        case "profiles":
            return f"_waywiser_files {SUFFIX}"
    return f"_waywiser_{values.kind}"


def _fish_condition(verb: VerbWords, verbs: Sequence[VerbWords]) -> str:
    """When fish offers the words of a verb: its own words were given, and no other verb's."""
    if not verb.name:
        return "__fish_use_subcommand"
    groups = " ".join(each.name for each in verbs if each.is_group)
    seconds = " ".join(each.name.split()[1] for each in verbs if " " in each.name)
    seen = "__fish_seen_subcommand_from"
    if verb.is_group:
        return f"{seen} {verb.name}; and not {seen} {seconds}"
    first, *second = verb.name.split()
    if second:
        return f"{seen} {first}; and {seen} {second[0]}"
    return (
        f"{seen} {first}; and not {seen} {groups}"
        if first in seconds.split()
        else f"{seen} {first}"
    )


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _fish_values(values: Values) -> str:
    words = " ".join(values.words)
    match values.kind:
        case "nothing":
            return "-f"
        case "words":
            return f"-f -a {_fish_quoted(words)}"
        case "pattern":
            return f"-f -a {_fish_quoted(f'(__waywiser_pattern {words})')}"
        case "profiles":
            return "-f -a '(__waywiser_profiles)'"
        case "folders":
            return "-f -a '(__fish_complete_directories (commandline -ct))'"
    return "-F"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
