"""Documents, messages, examples, benchmarks and tests name verbs and options of today alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tree import ROOT
from waywiser.cli.call import command
from waywiser.cli.former_verbs import FORMER, FORMER_OPTIONS

KINDS = ("md", "py", "pyi", "toml", "sh", "yml", "yaml", "j2", "cpp", "hpp", "cu", "h", "ipynb")
FORMER_ARE_NAMED_IN = (
    *("CHANGELOG.md", "docs/former-verbs.md", "docs/former_verbs.py"),
    *("python/waywiser/cli/former_verbs.py", "tests/cli/test_check_here.py"),
    "tests/cli/test_command_lines_in_texts.py",
)
"""What says which command replaces which, and what has changed."""

SAID = re.compile(rf"\bwaywiser ({'|'.join(FORMER)})\b(?! index\b| [0-9]+ export\b)")
"""A former verb behind the name of the program, and not the noun."""

CODE = re.compile(
    r"^(?:\$ )?(?:\.venv/bin/)?(waywiser [a-z][^\n]*)$|`(waywiser [a-z][^`\n]*)`", re.MULTILINE
)
"""A command line in a document: a line of a block, or in a sentence."""

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")

ENDS = re.compile(r"\s(?:#|\||&&|;|>|<|\\$)|[;)]")
"""What ends a command line, or begins a comment."""

WORD = re.compile(r"(?:^|\s)(--?[a-zA-Z][a-z-]*)")


def texts(*kinds: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file that git tracks, but for those that name former verbs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        suffix = path.suffix.removeprefix(".")
        is_script = name.startswith(("scripts/", ".ci/")) and not suffix
        if name in FORMER_ARE_NAMED_IN or not (suffix in kinds or (is_script and "sh" in kinds)):
            continue
        if path.is_file():
            yield name, path.read_text()


def test_no_text_names_a_former_verb() -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, each.start()) + 1}: {each[0]}"
        for name, text in texts(*KINDS)
        for each in SAID.finditer(text)
    ]
    assert found == []


def command_lines(text: str) -> Iterator[str]:
    for each in CODE.finditer(text):
        line = QUOTED.sub("TEXT", (each[1] or each[2]).split(" -- ")[0])
        yield ENDS.split(line)[0].rstrip()


def wrong_words(line: str) -> list[str]:
    """The words of a command line that are no verb, or no option of its verb."""
    commands = command().commands
    _, first, *others = line.split()
    verb = " ".join([first, *others[:1]])
    verb = verb if verb in commands else first
    if verb in ("help", "cluster"):
        return []
    if verb not in commands:
        return [verb] if verb in FORMER else []  # a line of another program's output
    options = {"-h", "--help"}
    for each in commands[verb].params:
        options |= {*each.opts, *each.secondary_opts}
    return [word for word in WORD.findall(line) if word not in options]


def test_command_lines_of_documents_have_options_of_today() -> None:
    wrong, seen = [], 0
    for name, text in texts("md"):
        for line in command_lines(text):
            seen += 1
            wrong += [f"{name}: {word}: {line}" for word in wrong_words(line)]
    assert seen > 100
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("waywiser show node.wwp --only h2d", []),
        ("waywiser policy node.wwp", ["policy"]),
        ("waywiser show node.wwp --teleport", ["--teleport"]),
        ("waywiser cluster show c --exclude", []),
        ("waywiser cluster show c --exclud", ["--exclud"]),
    ],
)
def test_a_wrong_command_line_is_found(line: str, wrong: list[str]) -> None:
    assert wrong_words(line) == wrong
    assert list(command_lines(f"text `{line}`; more\n{line}  # so\n")) == [line, line]


def test_former_options_are_no_options_of_today() -> None:
    for verb, option in FORMER_OPTIONS:
        names = {name for each in command().commands[verb].params for name in each.opts}
        assert option not in names
