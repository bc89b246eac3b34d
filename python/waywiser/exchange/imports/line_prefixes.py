"""What launchers and logs put before every line of a program, found by rule.

The title of a result is known. What stands before it in its line is a prefix if most lines around
begin with text of the same shape: the same words, and at their places a time, a counter, a rank, a
host. It is taken away. Where lines of several sources (ranks, pods, hosts) have a title each, the
lines of each are a text. Every line keeps its number.

A launcher that puts its tag before each piece that a program wrote makes several pieces of a line:
they are joined again, for each source.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from waywiser.exchange.imports.foreign_file import clipped

TITLE = re.compile(
    r"#[ \t]*OSU[ \t]+[A-Z]|#[ \t]*nThreads?:?[ \t]+[0-9]+[ \t]+nGpus"
    r"|#[ \t]*Collective test starting|#[ \t]*(?:nccl|rccl)-tests version"
    r"|nvbandwidth Version:|Running [a-z0-9]+_[a-z0-9_]+\.[ \t]*$"
    r"|TransferBench (?:Client )?v[0-9]|EnvVar,Value,|Test#,Transfer#,|SRC,DST,Direction"
    r"|Bytes Per Direction\b|(?:Uni|Bi)directional copy peak bandwidth"
    r"|GPU-GFX (?:All-To-All|Scaling)|Benchmark\s+Time\s+CPU\s+Iterations"
    r"|name,iterations,real_time|(?i:numCycle,collective|\bname),(?i:[\w,#]{0,200}\bbusbw\b)"
    r"|Profiling (?:Standard CPU|GPU) Ping"
    r"|Timing (?:Max-Rate|GPU M|CPU M)|Memcpy (?:Host|Device) To"
    r"|\b(?:cpu|gpu[0-9]{1,4})_(?:to|and)_(?:cpu|gpu)\w*_by_"
)
"""How results begin, wherever it stands in a line."""
_OF_TITLES = re.compile(
    r"OSU|nThread|Collective test|-tests version|nvbandwidth Version|Running |TransferBench|EnvVar,"
    r"|Test#,|SRC,|Bytes Per|copy peak|GPU-GFX|Benchmark|name,iterations|Profiling |Timing |Memcpy "
    r"|_by_"
)
"""What each title has, but for one whose case is free: most lines have none of it, and it is found
faster than a title."""
_OBJECT = re.compile(r'\{(?:\s*$|\s*"(?:nvbandwidth|context|version|nccl_version)")')
"""The beginning of a JSON result."""

LEAST_LINES = 3
LEAST_SHARE = 0.5
"""Lines that must have a prefix, from the first to the last one with it. What the launcher itself
prints has none."""
LEAST_SHARE_OF_BLANKS = 0.8
"""The same for blanks alone, which other lines begin with, too."""
MOST_TITLES = 200
LONGEST = 240
"""Characters of a prefix."""

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|[a-z]*info|[a-z]*warn)"
_TOKENS = re.compile(
    r"(?P<time>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?:[T _][0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
    r"(?:[.,][0-9]{1,9})?(?:Z|[-+][0-9:]{4,6})?)?"
    r"|[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[-+][0-9:]{4,6})?(?:\s?[AP]M)?"
    r"|[0-9]{1,2}/(?:[0-9]{1,2}|[A-Z][a-z]{2})/[0-9]{2,4}"
    r"|(?<![A-Za-z])(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"(?![A-Za-z]))"
    rf"|(?P<level>(?<![A-Za-z]){_LEVEL}(?![A-Za-z])|(?<![A-Za-z])std(?:out|err)(?: [FP](?= ))?)"
    r"|(?P<word>[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[A-Za-z_][\w.-]*[0-9][\w.-]*|[0-9]+[A-Za-z_-][\w.-]*)"
    r"|(?P<decimal>[0-9]+\.[0-9]+)|(?P<number>[0-9]+)|(?P<blank>[ \t]+)"
    r"|(?P<other>[A-Za-z]+|.)"
)
_CLOCK = (
    r"(?:[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?:[T _][0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]{1,9})?"
    r"(?:Z|[-+][0-9:]{4,6})?)?|[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[-+][0-9:]{4,6})?"
    r"(?:\s?[AP]M)?|[0-9]{1,2}/\w{1,3}/[0-9]{2,4}|[A-Z][a-z]{2})"
)


class CapturedText(NamedTuple):
    """A text without what launchers and logs put before its lines."""

    text: str
    source: str = ""
    """The rank, pod or host that its lines are of, if others have lines between them."""
    notes: tuple[str, ...] = ()
    """What was taken away."""


class _Shape(NamedTuple):
    """What a prefix looks like, whatever its times and numbers are."""

    pattern: re.Pattern[str]
    example: str
    is_counter: bool
    """Whether it has neither a word nor a mark: only numbers of lines look so."""
    is_tag: bool
    """Whether it may stand within a line as well: nothing else looks like it."""


def without_prefixes(text: str) -> list[CapturedText]:
    """The texts of all sources; the text itself if its lines have no prefix."""
    lines = text.split("\n")
    if (unwrapped := _of_json_log(lines)) is not None:
        inner = without_prefixes("\n".join(unwrapped))
        count = sum(1 for line in lines if line.strip())
        note = f"each of {count} lines was taken out of the JSON object of a log"
        return [each._replace(notes=(note, *each.notes)) for each in inner]
    if listed := _of_json_list(lines):
        return listed
    titles = list(_titles(lines))
    shapes = list(_shapes(lines, titles))
    for shape in (*_together(lines, shapes), *shapes):
        if (found := _without(lines, shape, {n for n, _ in titles})) is not None:
            return found
    return [CapturedText(text)]


def _titles(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(line, column) of titles."""
    count = 0
    seen_object = False
    for n, line in enumerate(lines):
        may_have = _OF_TITLES.search(line, 0, 1000) or "busbw" in line[:1000].casefold()
        found = TITLE.search(line, 0, 1000) if may_have else None
        if found is None and not seen_object and "{" in line:
            found = _OBJECT.search(line, 0, 1000)
            seen_object = True
            if found and '"' in line[: found.start()]:
                found = None
        if found and found.start() <= LONGEST:
            yield n, found.start()
            count += 1
        if count >= MOST_TITLES:
            return


def _shapes(lines: Sequence[str], titles: Iterable[tuple[int, int]]) -> Iterator[_Shape]:
    """The shapes of what stands before titles, each once; none if a title has nothing before it,
    as then it is the text that has titles within its lines."""
    seen: set[str] = set()
    for n, column in titles:
        if column and (shape := _shape(lines[n][:column])).pattern.pattern not in seen:
            seen.add(shape.pattern.pattern)
            yield shape


def _together(lines: Sequence[str], shapes: Sequence[_Shape]) -> Iterator[_Shape]:
    """Several shapes as one, if each has the lines of a whole result: sources whose names differ in
    letters alone."""
    whole = [
        each
        for each in shapes
        if each.example.strip()
        and sum(1 for line in lines if each.pattern.match(line)) >= LEAST_LINES
        and not each.is_counter
    ]
    if len(whole) < 2:
        return
    parts = []
    for n, each in enumerate(whole):
        own = re.sub(r"\(\?P<(\w+)>", rf"(?P<\1_{n}>", each.pattern.pattern)
        parts.append(own if "(?P<s" in own else f"(?P<s_{n}>{own})")
    pattern = re.compile("|".join(f"(?:{part})" for part in parts))
    yield _Shape(pattern, whole[0].example, False, all(each.is_tag for each in whole))


def _shape(prefix: str) -> _Shape:
    body = prefix.rstrip(" \t")
    parts: list[str] = []
    kinds: list[str] = []
    for n, token in enumerate(_TOKENS.finditer(body)):
        kind, text = token.lastgroup or "other", token[0]
        kinds.append(kind)
        match kind:
            case "time":
                parts.append(_CLOCK)
            case "level":
                is_stream = text.startswith("std")
                parts.append(r"std(?:out|err)(?: [FP])?" if is_stream else _LEVEL)
            case "word":
                parts.append(rf"(?P<s{n}>[\w.-]+)")
            case "decimal":
                parts.append(r"[0-9]+\.[0-9]+")
            case "number":
                parts.append(rf"(?P<n{n}>[0-9]+)")
            case "blank":
                parts.append(r"[ \t]*" if n == 0 else r"[ \t]+")
            case _:
                parts.append(re.escape(text))
    if kinds[:1] in (["number"], ["decimal"]):
        parts.insert(0, r"[ \t]*")
    blanks = len(prefix) - len(body)
    end = rf"(?:{re.escape(prefix[len(body) :])}|[ \t]{{0,{blanks}}}$)" if blanks else ""
    if not body:
        end = rf"(?:{re.escape(prefix)}|[ \t]*$)"
    has_mark = any(kind in ("other", "word", "time", "level") for kind in kinds)
    is_tag = len(body) >= 5 and any(mark in body for mark in "[<(") and has_mark
    return _Shape(re.compile("".join(parts) + end), prefix, not has_mark and bool(body), is_tag)


_Key = tuple[str, ...]
"""What varies like a source."""

_ROW = re.compile(r"\s*[0-9]+\s+\S")
"""What rows of tables begin with."""


class _Prefixed(NamedTuple):
    """The lines of a text, each with its prefix and the source that this names."""

    lines: Sequence[str]
    shape: _Shape
    matches: Sequence[re.Match[str] | None]
    counters: set[str]
    keys: Sequence[_Key | None]
    titled: set[_Key | None]
    """The sources with a title."""


def _without(lines: Sequence[str], shape: _Shape, titles: set[int]) -> list[CapturedText] | None:
    """The texts of the lines without prefixes of a shape; None if too few have it."""
    matches = [shape.pattern.match(line) for line in lines]
    numbers = [n for n, match in enumerate(matches) if match and match.end()]
    if not numbers or not _is_common(lines, numbers, shape):
        return None
    counters = _counters(matches, titles)
    if shape.is_counter and not counters:
        return None
    keys = [_key(match, counters) if match else None for match in matches]
    titled = {keys[n] for n in titles}
    text = _Prefixed(lines, shape, matches, counters, keys, titled)
    note = _note(shape, len(numbers))
    joined = list(_joined(text))
    sources: Sequence[_Key | None] = _sources(text, joined)
    if None in titled and len(titled) > 1:
        sources = _in_order(keys, titled)
    if not sources:
        others = _rows_of_others(text, joined)
        own = "\n".join("" if n in others else line for n, (_, line) in enumerate(joined))
        if others:
            note += f"; {len(others)} rows of sources without a title were skipped"
        return [CapturedText(own, "", (note,))]
    names = {key: NO_PREFIX if key is None else "/".join(key) for key in sources}
    everywhere = () if None in sources else (None,)
    listed = ", ".join(list(names.values())[:4]) + (" …" if len(names) > 4 else "")
    split = f"lines of {len(sources)} sources were separated by it: {listed}"
    return [
        CapturedText(
            "\n".join(line if each in (*everywhere, key) else "" for each, line in joined),
            names[key],
            (note, split),
        )
        for key in sources
    ]


NO_PREFIX = "lines-without-a-prefix"
"""The source of lines without a prefix that have a title of their own."""


def _in_order(keys: Iterable[_Key | None], titled: set[_Key | None]) -> list[_Key | None]:
    """The sources with a title, in the order of their first lines."""
    return list(dict.fromkeys(key for key in keys if key in titled))


def _is_common(lines: Sequence[str], numbers: Sequence[int], shape: _Shape) -> bool:
    filled = [n for n in range(numbers[0], numbers[-1] + 1) if lines[n].strip()]
    share = LEAST_SHARE if shape.example.strip() else LEAST_SHARE_OF_BLANKS
    own = sum(1 for n in numbers if lines[n].strip())
    least = min(LEAST_LINES, sum(1 for line in lines if line.strip()))
    return own >= least and own > share * len(filled)


def _counters(matches: Sequence[re.Match[str] | None], titles: set[int]) -> set[str]:
    """The groups that are no source: those that count lines or seconds."""
    values: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for n, match in enumerate(matches):
        if match:
            for name, value in match.groupdict().items():
                if value is not None:
                    values[name].append((n, value))
    found = set()
    for name, listed in values.items():
        if not name.startswith("n"):
            continue
        numbers = [int(value) for _, value in listed]
        distinct = len(set(numbers))
        grows = all(one <= other for one, other in pairwise(numbers))
        titled = {value for n, value in listed if n in titles}
        counts = distinct > len(numbers) / 2 or len(titled) < distinct
        if grows and distinct > 1 and counts and (distinct > 2 or distinct == len(numbers)):
            found.add(name)
    return found


def _key(match: re.Match[str], counters: set[str]) -> _Key:
    return tuple(
        value.strip(" \t[]():|<>")
        for name, value in match.groupdict().items()
        if value is not None and name not in counters
    )


def _sources(text: _Prefixed, joined: Sequence[tuple[_Key | None, str]]) -> list[_Key]:
    """The sources with a title of their own, if they are several whose lines alternate, or that
    have all rows; empty if one has all titles."""
    bounds: dict[_Key, tuple[int, int]] = {}
    for n, key in enumerate(text.keys):
        if key is not None and key in text.titled:
            bounds[key] = (bounds.get(key, (n, n))[0], n)
    ordered = sorted(bounds.items(), key=lambda each: each[1])
    overlap = any(one[1][1] > other[1][0] for one, other in pairwise(ordered))
    rows = {key for key, line in joined if key and _ROW.match(line)}
    is_whole = len(ordered) > 1 and rows <= bounds.keys()
    return [key for key, _ in ordered] if overlap or is_whole else []


def _rows_of_others(text: _Prefixed, joined: Sequence[tuple[_Key | None, str]]) -> set[int]:
    """The rows of sources without a title, if the sources with one have rows of their own: they are
    of a table whose title is not in the text."""
    rows = [(n, key) for n, (key, line) in enumerate(joined) if key and _ROW.match(line)]
    others = {n for n, key in rows if key not in text.titled}
    return others if len(others) < len(rows) else set()


def _joined(text: _Prefixed) -> Iterator[tuple[_Key | None, str]]:
    """(source, line) for each line, without prefixes: a line ends in the line of its last piece."""
    open_pieces: dict[_Key, str] = {}
    for line, match, key in zip(text.lines, text.matches, text.keys, strict=True):
        if match is None or key is None:
            yield None, line
            continue
        rest = line[match.end() :]
        if text.shape.is_tag:
            rest, key = _last_piece(text, rest, key, open_pieces)
        elif match[0].strip()[:1] == "[" and match[0].strip()[-1:] == "]":
            rest = rest.replace(match[0], "")
        yield key, open_pieces.pop(key, "") + rest


def _last_piece(
    text: _Prefixed, rest: str, key: _Key, open_pieces: dict[_Key, str]
) -> tuple[str, _Key]:
    """Keeps the pieces of a line that do not end it; returns the last one with its source."""
    at = 0
    for each in text.shape.pattern.finditer(rest):
        if each.start() < at or not each[0].strip():
            continue
        open_pieces[key] = open_pieces.get(key, "") + rest[at : each.start()]
        key, at = _key(each, text.counters), each.end()
    return rest[at:], key


def _note(shape: _Shape, count: int) -> str:
    if not shape.example.strip():
        return f"{len(shape.example)} blanks were removed from the beginning of {count} lines"
    return f"the prefix {clipped(shape.example, 60)!r} and its like were removed from {count} lines"


_LOG_KEYS = ("log", "message", "msg", "line", "text", "MESSAGE")


def _of_json_log(lines: Sequence[str]) -> list[str] | None:
    """The lines within a log whose every line is a JSON object with one of them; None for any other
    text."""
    filled = [line for line in lines if line.strip()]
    sources: list[str] = []
    if len(filled) < LEAST_LINES or not all(line[:1] == "{" and line[-1:] == "}" for line in
                                            (each.strip() for each in filled)):  # fmt: skip
        return None
    found = []
    for line in lines:
        try:
            value = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            return None
        text = next((value[key] for key in _LOG_KEYS if isinstance(value.get(key), str)), None)
        if line.strip() and text is None:
            return None
        found.append((text or "").removesuffix("\n"))
        sources.append("/".join(_source_fields(value)))
    if len({each for each in sources if each}) < 2:
        return found
    pairs = zip(found, sources, strict=True)
    return [f"[{source}] {text}" if source else text for text, source in pairs]


_SOURCE_FIELDS = re.compile(
    r"(?:\w+_)?(?:pod|pod_?name|host|host_?name|node|node_?name|container|container_?name|rank|task|source"
    r"|instance|service)",
    re.IGNORECASE,
)


def _source_fields(value: dict[str, Any]) -> Iterator[str]:
    """Yields what the object of a line states of its source, also one level down."""
    for name, each in value.items():
        if isinstance(each, dict):
            yield from (str(v) for k, v in each.items() if _SOURCE_FIELDS.fullmatch(k)
                        and isinstance(v, str | int))  # fmt: skip
        elif _SOURCE_FIELDS.fullmatch(name) and isinstance(each, str | int):
            yield str(each)


_QUOTED = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*$')
_OF_HOST = re.compile(r"\s*(?:ok|changed|fatal|failed): \[([^\]]{1,80})\]")


def _of_json_list(lines: Sequence[str]) -> list[CapturedText]:
    """The lines that are strings of a JSON list, as a tool of configuration shows them; a text for
    each host. Empty for any other text."""
    hosts: dict[str, list[str]] = defaultdict(lambda: [""] * len(lines))
    host, count = "", 0
    titled: set[str] = set()
    for n, line in enumerate(lines):
        if found := _OF_HOST.match(line):
            host = found[1]
        if (quoted := _QUOTED.match(line)) is None:
            continue
        try:
            hosts[host][n] = text = str(json.loads(quoted[1]))
        except ValueError:
            return []
        count += 1
        if TITLE.match(text):
            titled.add(host)
    if not titled or count < LEAST_LINES or any(map(TITLE.match, lines)):
        return []
    note = f"{count} lines were taken out of a JSON list"
    return [
        CapturedText("\n".join(each), name if len(titled) > 1 else "", (note,))
        for name, each in hosts.items()
        if name in titled
    ]
