"""The decorator that makes a function a verb, with the help that is in its docstring:

    @verb("Show or write which method is fastest for each copy.")
    def policy(files: list[str], output: str = "", json: Json = False) -> int:
        '''Show which method is fastest for each copy by its size.

        FILE...: Profiles of one machine.
        -o, --output FILE: Write the policy to FILE.

        waywiser policy node.wwp -o machine.json
            write the policy of this machine
        '''

The first paragraph is the help of the verb, the last has its examples. Those between describe the
parameters in their order, but for those whose annotation does (`Json`) and for ``options``, whose
table does (`waywiser.measure.option`). A number has bounds: ``count: Annotated[int, COUNTS]``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from waywiser.cli.app import app
from waywiser.cli.command_help import EXAMPLES, HELP_OPTIONS, Example, Verb
from waywiser.cli.option_parameters import option_of, with_options
from waywiser.measure.option import Option
from waywiser.words.numbers import Bounds

Function = TypeVar("Function", bound=Callable[..., Any])


def verb(
    short_help: str | None = None, *, name: str | None = None, cls: type[Verb] = Verb
) -> Callable[[Function], Function]:
    """``name`` is that of the verb if the function has another one. Raises `ValueError` for a
    docstring that describes more or fewer parameters than the function has."""

    def register(function: Function) -> Function:
        about, *others = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        if others:  # python -OO leaves docstrings out
            *described, examples = map(_entries, others)
            EXAMPLES[name or function.__name__] = tuple(map(_example, examples))
            _describe(function, (entry for entries in described for entry in entries))
        called = with_options(function)
        app.command(
            name, cls=cls, help=about, short_help=short_help, context_settings=HELP_OPTIONS
        )(called)
        return function

    return register


def _entries(paragraph: str) -> list[str]:
    """Its lines that are not indented, each with the indented lines below it."""
    return re.split(r"\n(?! )", paragraph)


def _example(entry: str) -> Example:
    command, does = entry.split("\n", 1)
    return Example(command, _joined(does))


def _describe(function: Callable[..., Any], entries: Iterable[str]) -> None:
    """Annotates the parameters as typer reads them."""
    hints = get_type_hints(function, include_extras=True)
    del hints["return"]
    own = [(name, hint) for name, hint in hints.items() if not _is_described(hint)]
    for (name, hint), entry in zip(own, map(_joined, entries), strict=True):
        bounds = hint.__metadata__[0] if get_origin(hint) is Annotated else None
        head, does = entry.split(": ", 1)
        option = _option(head, does, bounds)
        plain = get_args(hint)[0] if bounds else hint
        function.__annotations__[name] = Annotated[plain, option_of(option)]


def _is_described(hint: Any) -> bool:
    """Whether a table or an annotation describes the parameter."""
    if get_origin(hint) is Annotated:
        return not isinstance(hint.__metadata__[0], Bounds)
    return is_dataclass(hint)


def _option(head: str, does: str, bounds: Bounds | None) -> Option:
    """``-o, --output FILE`` as an option, ``FILE...`` as an argument."""
    if not head.startswith("-"):
        return Option(does, metavar=head, is_argument=True)
    words = head.replace(",", "").split()
    *short, name = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(short) + 1 :])
    return Option(does, metavar, name, "".join(short), bounds)


def _joined(lines: str) -> str:
    return " ".join(lines.split())
