"""A line of a shell as simple commands, and these as words.

Quotes, escapes, ``$(…)``, ``$((…))`` and ``${…}`` keep what they hold in one word. Redirections are
left out, and so is everything that follows a pipe but the commands themselves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

MOST_WORDS = 2_000

_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&")
_REDIRECTION = re.compile(r"(?:[0-9]?|&)(?:>>|>\||>&|<<<|>|<)(?:&?[0-9-](?=\s|$))?")
_LOCATED = re.compile(r"(?:\$\(|`)\s*(?:which|command -v|type -p)\s+([\w./-]+)\s*(?:\)|`)")
"""A program that the shell looks for."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}]*))?\}|([A-Za-z_]\w*))")


def simple_commands(text: str) -> list[list[str]]:
    """The words of each simple command of a line; empty for quotes that do not end."""
    return [words for words, _ in commands_with_files(text)]


def commands_with_files(text: str) -> list[tuple[list[str], str]]:
    """(words, the file that its output goes to and not to the terminal) of each simple command."""
    commands: list[list[str]] = [[]]
    files: list[str] = [""]
    to_file = False
    at, count = 0, 0
    skip = False
    while at < len(text) and count < MOST_WORDS:
        if text[at].isspace():
            at += 1
        elif operator := next((each for each in _OPERATORS if text.startswith(each, at)), ""):
            if operator == "&" and text.startswith("&>", at):
                at, skip = _REDIRECTION.match(text, at).end(), True  # type: ignore[union-attr]
                to_file = True
                continue
            commands.append([])
            files.append("")
            at += len(operator)
        elif text[at] == "#" and (at == 0 or text[at - 1].isspace()) and any(commands):
            break
        elif found := _REDIRECTION.match(text, at):
            at = found.end()
            skip = not found[0][-1:].isdigit() and not found[0].endswith("-")
            to_file = skip and found[0].lstrip("1&") in (">", ">>", ">|", ">&")
        else:
            word, at = _word(text, at)
            if at < 0:
                return []
            if not skip:
                commands[-1].append(word)
            elif to_file and not word.startswith(("/dev/std", "/dev/tty", "(")):
                files[-1] = word
            skip = to_file = False
            count += 1
    return [(words, file) for words, file in zip(commands, files, strict=True) if words]


def _word(text: str, at: int) -> tuple[str, int]:
    """The word that begins at ``at``, and where it ends; -1 if its quotes do not end."""
    found = ""
    while at < len(text) and not text[at].isspace() and text[at] not in ";|&<>":
        character = text[at]
        if character == "\\":
            found += text[at + 1 : at + 2]
            at += 2
        elif character in "'\"":
            end = _end_of_quote(text, at)
            if end < 0:
                return "", -1
            inner = text[at + 1 : end]
            found += inner if character == "'" else re.sub(r'\\(["\\$`])', r"\1", inner)
            at = end + 1
        elif text.startswith(("$(", "${"), at):
            end = _end_of_brackets(text, at + 1)
            if end < 0:
                return "", -1
            found += text[at:end]
            at = end
        elif character == "`":
            end = text.find("`", at + 1)
            if end < 0:
                return "", -1
            found += text[at : end + 1]
            at = end + 1
        else:
            found += character
            at += 1
    return found, at


def _end_of_quote(text: str, at: int) -> int:
    quote = text[at]
    for end in range(at + 1, len(text)):
        if text[end] == quote and (quote == "'" or text[end - 1] != "\\"):
            return end
    return -1


def _end_of_brackets(text: str, at: int) -> int:
    """Where the brackets that open at ``at`` are closed; -1 if they are not."""
    pairs = {"(": ")", "{": "}"}
    opening, closing = text[at], pairs[text[at]]
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == opening) - (text[end] == closing)
        if not depth:
            return end + 1
    return -1


def expanded(word: str, known: dict[str, str]) -> str:
    """The word with the variables that are ``known``, and with the defaults of ``${NAME:-…}``."""

    word = _LOCATED.sub(r"\1", word)

    def value(found: re.Match[str]) -> str:
        default = found[2] if found[2] is not None else found[0]
        return known.get(found[1] or found[3], default)

    return _VARIABLE.sub(value, word)


def split_words(words: Sequence[str], known: dict[str, str]) -> list[str]:
    """The words with the variables that are ``known``: one that is a variable alone may be several,
    except where a shell takes it as a line."""
    found: list[str] = []
    for n, word in enumerate(words):
        value = expanded(word, known)
        is_line = n > 0 and re.fullmatch(r"-\w*c", words[n - 1])
        if value != word and _VARIABLE.fullmatch(word) and not is_line:
            found += value.split()
        else:
            found.append(value)
    return found


def folder_in(base: str, folder: str) -> str:
    """A folder as a path from the one that is named by ``base``, which may be empty."""
    folder = re.sub(r"^\$(?:HOME\b|\{HOME\})", "~", folder)
    if folder.startswith(("/", "~", "$")):
        return posixpath.normpath(folder)
    joined = posixpath.normpath(posixpath.join(base, folder))
    return "" if joined == "." else joined
