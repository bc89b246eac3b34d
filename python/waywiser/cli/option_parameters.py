"""Parameters of commands, made from tables of options (`waywiser.measure.option`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from waywiser.measure.option import Option, options_of
from waywiser.measure.survey_options import OptionError
from waywiser.words import WordError


def with_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb for typer. Instead of a parameter ``options``, a table, it has a parameter for each
    field of the table, and calls ``verb`` with a value of the table."""
    if "options" not in verb.__annotations__:
        return verb
    signature = inspect.signature(verb, eval_str=True)
    table = signature.parameters["options"].annotation
    parameters = [
        each
        for parameter in signature.parameters.values()
        for each in (_parameters(table) if parameter.name == "options" else (parameter,))
    ]

    def called(**words: Any) -> Any:
        values = {each.name: words.pop(each.name) for each in fields(table)}
        chosen = {name: value for name, value in values.items() if value is not None}
        lists = {name: tuple(value) for name, value in chosen.items() if isinstance(value, list)}
        return verb(**words, options=table(**{**chosen, **lists}))

    for name in ("__name__", "__doc__", "__module__"):
        setattr(called, name, getattr(verb, name))
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__annotations__["return"] = signature.return_annotation
    return called


def option_of(option: Option, is_decimal: bool = False) -> Any:
    """The same option as typer has it."""
    if option.is_argument:
        return typer.Argument(metavar=option.metavar, help=option.text)
    names = [option.short] * bool(option.short) + [option.name]
    more: dict[str, Any] = {"metavar": option.metavar} if option.metavar else {}
    if option.bounds is not None:
        read = option.bounds.decimal if is_decimal else option.bounds.whole
        more["parser"] = _number(option.name, read)
    return typer.Option(*names, help=option.text, **more)


def read_plainly(parameters: list[Any]) -> list[Any]:
    """Returns the parameters of a command of typer. Those that are text, a flag or have a parser
    read their words here: since 0.29 typer reads words by pydantic, which takes 0.1 s to load."""
    for each in parameters:
        described = getattr(each, "type_descriptor", None)  # older releases have none
        if described is not None and (
            described.parameter_info.parser or described.annotation in (str, bool, list[str])
        ):
            each.get_runtime_param = _Words
    return parameters


class _Words:
    """Reads the words of a parameter, for typer."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter: a list if it may have several."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        read = param.type_descriptor.parameter_info.parser or _same
        return [read(each) for each in value] if several else read(value)


def _same(value: Any) -> Any:
    return value


def _parameters(table: type) -> Iterator[inspect.Parameter]:
    """One for each field, those of the table that it extends last."""
    assert is_dataclass(table)
    declared, hints = options_of(table), get_type_hints(table)
    for each in sorted(fields(table), key=lambda each: each.name not in table.__annotations__):
        hint, default = hints[each.name], each.default
        if hint == tuple[str, ...]:
            hint, default = list[str] | None, None
        yield inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=Annotated[hint, option_of(declared[each.name], hint == float | None)],
        )


def _number(name: str, read: Callable[[str, str], float]) -> Callable[[Any], Any]:
    def number(text: Any) -> Any:
        if not isinstance(text, str):
            return text  # a default
        try:
            return read(text, name)
        except WordError as error:  # typer would catch it and write words around it
            raise OptionError(error.what) from None

    return number
