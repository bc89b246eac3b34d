"""Messages in the words of Python: they name arguments of `waywiser.survey`, not options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager

import waywiser
from waywiser.words import WaywiserError

_COMMAND = r"\bwaywiser [a-z]+(?: --?[a-z][a-z-]*(?:[ =](?:'[^']*'|[^\s';,)]+))?)*"
"""A command for a shell, which keeps its options."""

_OPTION = r"(?<![\w-])(?:-o|--(?P<name>[a-z][a-z-]*))\b"

_PLAIN = r"\d(?:[\w.:,]*\w)?|h2d|FILE|none|check|quick|standard|full"
"""Values that messages write without quotes."""

_VALUE = rf"""(?:[ =](?P<value>'[^']*'|"[^"]*"|(?:{_PLAIN})\b))?"""

_WORDS = re.compile(f"{_COMMAND}|{_OPTION}{_VALUE}")


@contextmanager
def python_arguments() -> Iterator[None]:
    """Errors name ``only='h2d'`` instead of ``--only 'h2d'``, and ``only=`` instead of ``--only``.

    Commands for a shell, and options that `waywiser.survey` does not have, stay as they are.
    """
    try:
        yield
    except WaywiserError as error:
        what, remedy = in_python(error.what), in_python(error.remedy)
        WaywiserError.__init__(error, what, where=error.where, remedy=remedy)
        raise


def in_python(text: str) -> str:
    """The text with arguments of `waywiser.survey` in place of options."""
    return _WORDS.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    if found[0].startswith("waywiser"):
        return found[0]
    name = (found["name"] or "output").replace("-", "_")
    parameter = inspect.signature(waywiser.survey).parameters.get(name)
    if parameter is None:
        return found[0]
    value = found["value"]
    if parameter.default is False:
        return f"{name}=True" + (f" {value}" if value else "")
    if value and not value.isdecimal() and value[0] not in "'\"":
        value = repr(value)
    return f"{name}={value or ''}"
