"""How an option of a command is declared: once, as a field of a table.

A table is a frozen dataclass whose fields are made by `option`, `argument` or `like`. The command
line makes the parameters of the command from it, Python checks arguments with it, and the request
and the selection that a profile stores are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from waywiser.words import Bounds


class Stored(NamedTuple):
    """Where a profile stores an option: in the request of its plan, or in the selection of the
    machine. ``convert`` makes what is stored of what was given."""

    part: Literal["request", "selection"]
    field: str
    convert: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Option:
    """What a command says of one of its options or arguments."""

    help: str
    """What it means, for each verb that has it."""
    metavar: str = ""
    name: str = ""
    """As the command line has it, by default that of the field: ``--no-scratch``."""
    short: str = ""
    bounds: Bounds | None = None
    """None if it is no number."""
    takes_numbers: bool = False
    """Whether Python takes numbers in place of a text."""
    stored: Stored | None = None
    """None: `--resume` may change it."""
    is_argument: bool = False
    more: str = ""
    """What it does in this verb, and its default."""

    @property
    def text(self) -> str:
        """What the help says."""
        return f"{self.help} {self.more}".strip()


_KEY = "option"


def option(help: str, *, default: Any = None, **declared: Any) -> Any:
    """A field of a table. ``declared`` are the other fields of `Option`."""
    return field(default=default, metadata={_KEY: Option(help, **declared)})


def argument(help: str, metavar: str) -> Any:
    """A field of a table that the command line takes without a name, and that must be given."""
    return field(default=MISSING, metadata={_KEY: Option(help, metavar, is_argument=True)})


def like(table: type, name: str, default: Any = MISSING, **other: Any) -> Any:
    """A field as that of another table; ``other`` are the fields of `Option` that differ. The
    meaning is one."""
    found = next(each for each in fields(table) if each.name == name)
    declared = replace(options_of(table)[name], **other)
    return field(
        default=found.default if default is MISSING else default, metadata={_KEY: declared}
    )


def options_of(table: Any) -> dict[str, Option]:
    """The options of a table, or of its values, by the names of its fields."""
    found = {each.name: each.metadata[_KEY] for each in fields(table)}
    return {
        name: replace(option, name=option.name or f"--{name.replace('_', '-')}")
        for name, option in found.items()
    }


def given(values: Any) -> dict[str, Any]:
    """The values of a table that differ from the defaults, by the names of the fields."""
    found = ((each.name, getattr(values, each.name), each.default) for each in fields(values))
    return {name: value for name, value, default in found if value != default}


def stored(values: Any, part: Literal["request", "selection"]) -> dict[str, Any]:
    """What a profile stores of the values that were given, by the fields of a part of its plan.
    Raises what the conversions raise."""
    declared = options_of(values)
    found = ((declared[name].stored, value) for name, value in given(values).items())
    return {to.field: to.convert(value) for to, value in found if to and to.part == part}
