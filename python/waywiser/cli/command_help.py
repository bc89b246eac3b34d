"""What ``--help`` shows: one sentence, arguments and options, two examples, exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperGroup

from waywiser.cli.option_parameters import read_plainly
from waywiser.cli.verb_table import GROUPS, VERBS


class Example(NamedTuple):
    """A command line, which a test runs. ``node.wwp`` is a profile, ``before.wwp`` and ``now.wwp``
    are an older and a newer one of a machine, ``nodes`` is a folder of profiles of several."""

    command: str
    does: str


COMMAND_EXAMPLES = (
    Example("waywiser survey --preset quick -o node.wwp", "measure this machine in half a minute"),
    Example("waywiser show node.wwp --only 'h2d latency'", "show H2D latencies of the profile"),
)
"""Those of the command without a verb."""

EXAMPLES: dict[str, tuple[Example, ...]] = {}
"""Those of each verb."""

EXIT_CODES = {
    0: "Fine: done, and nothing was found. A survey that skips paths is done too, and lists them.",
    1: "Found. doctor: something of --severity or above, whatever else it shows; compare: a "
    "regression or a missing path; check: also a missing GPU, a slow link, an error, a host that "
    "is bad beside its peers or a path that is slower than on former nights; cluster: what is "
    "slow, fails or was not reached, with --dry-run what the survey lacks.",
    2: "Not done: one line on standard error says what is wrong with the command line, a file or "
    "the machine, and what to do. A survey of which most visits failed is not done.",
    3: "Not decided. compare, check: a loss is suspected and not confirmed, or nothing could be "
    "compared; check: also if a large loss could be hidden; "
    "cluster: the survey is not complete, or has two nodes only.",
    130: "Interrupted by Ctrl-C or a signal. What a survey has finished is in its profile, and "
    "--resume goes on; the same command of tune goes on.",
}
"""The exit codes of all commands, but for ``trace``, whose program has its own."""

OF_TRACE = "trace ends with the code of its program, or with 2 if it was not traced."

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
"""How help is asked for, as click takes it for a context."""

GLOSSARY = "docs/glossary.md"

SEE = f"Words: {GLOSSARY}. Exit codes: waywiser --help."


class Verb(TyperCommand):
    """A command with examples. Its usage has the names of its files as they are written here: some
    releases of typer put braces and dots around them."""

    def get_params(self, ctx: Any) -> list[Any]:
        return read_plainly(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [p.metavar or "" for p in self.params if p.param_type_name == "argument"]
        return ["[OPTIONS]", *arguments]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_rows(formatter, "Arguments", argument_rows(self.params))
        write_rows(formatter, "Options", option_rows(self.params))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(formatter, EXAMPLES.get(self.name or "", ()))
        formatter.write(f"\n{SEE}\n")


class Waywiser(TyperGroup):
    """The command with its verbs."""

    def get_params(self, ctx: Any) -> list[Any]:
        return read_plainly(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_rows(formatter, "Commands", self._rows(is_first=True))
        write_rows(formatter, "More commands", self._rows(is_first=False))
        write_rows(formatter, "Options", option_rows(self.params))

    def _rows(self, *, is_first: bool) -> Iterator[tuple[str, str]]:
        """The verbs with a sentence each; those of two words are one."""
        shown = [each.name for each in VERBS if each.is_first is is_first]
        for name in dict.fromkeys(each.split()[0] for each in shown):
            verb = self.commands.get(name)
            yield name, GROUPS[name] if verb is None else verb.short_help or verb.help or ""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(formatter, COMMAND_EXAMPLES)
        write_rows(formatter, "Exit codes", ((str(n), what) for n, what in EXIT_CODES.items()))
        formatter.write(f"\n{OF_TRACE}\n")
        formatter.write(f"\nwaywiser help COMMAND is waywiser COMMAND --help. Words: {GLOSSARY}.\n")


def group_help(first: str, verbs: Mapping[str, Any]) -> str:
    """The help of verbs of two words that begin with ``first``."""
    lines = [f"Usage: waywiser {first} COMMAND [OPTIONS]", "", "Commands:"]
    width = max(map(len, verbs))
    lines += (f"  {name:<{width}}  {verb.short_help or verb.help}" for name, verb in verbs.items())
    return "\n".join([*lines, "", f"waywiser {first} COMMAND --help says more.", SEE])


def argument_rows(params: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Name and meaning of each argument."""
    for param in params:
        if param.param_type_name == "argument":
            yield param.metavar, param.help


def option_rows(params: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Names and meaning of each option, ``--help`` the last."""
    for param in params:
        if param.param_type_name == "option":
            names = ", ".join(param.opts)
            if param.secondary_opts:
                names += f" / {', '.join(param.secondary_opts)}"
            required = " Required." if param.required else ""
            yield names if param.is_flag else f"{names} {param.metavar}", param.help + required
    yield "-h, --help", "Show this help and exit."


def write_rows(formatter: Any, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Writes a section, if it has any rows."""
    if found := list(rows):
        with formatter.section(title):
            formatter.write_dl(found)


def write_examples(formatter: Any, examples: Sequence[Example]) -> None:
    """Writes commands unfolded, so that they work when copied."""
    if examples:
        formatter.write("\nExamples:\n")
    for example in examples:
        formatter.write(f"  {example.command}\n      {example.does}\n")
