"""Python and the native library read the same words: what one takes, the other takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine import native
from waywiser.words import (
    Layout,
    Memory,
    Operation,
    Path,
    Place,
    Transfer,
    WordError,
    format_bytes,
    format_settings,
)
from waywiser.words.numbers import MOST_BYTES, MOST_INDEX
from waywiser.words.sizes import parse_bytes

NUMBERS = [
    "", "0", "7", "007", "0" * 19 + "1", "0" * 20 + "1", str(MOST_INDEX), str(MOST_INDEX + 1),
    "4294967295", "4294967296", str(MOST_BYTES), str(MOST_BYTES + 1), str(2**64), "9" * 20,
    "9" * 21, "9" * 5000, "-1", "-0", "+1", "1_0", "1.5", "1e3", "0x10", "nan", "inf", " 1", "1 ",
    "٣", "²", "１", "1\x00", "1\n",
]  # fmt: skip
"""What is a whole number in one of the languages or in both."""

WORDS = [
    "a", "copy-engine", "a-", "x9", "", "A", "-a", "9a", "a b", "a_b", "é", "ａ", "a@b",
    "a[b]", "a\n",
]  # fmt: skip

PLACES = [f"{kind}:{number}" for kind in ("numa", "gpu", "rank") for number in NUMBERS] + [
    "", "numa", "gpu", ":0", "cpu:0", "NUMA:0", "numa:0:1", "file:", "file:x", "file:/data/a b",
    "file:a:b", "numa :0", "file:gpu:1",
]  # fmt: skip

SETTINGS = [
    {}, {"a": "1"}, {"a": ""}, {"": "1"}, {"a": "b=c"}, {"a=b": "c"}, {"a": "b,c"}, {"a,b": "c"},
    {"a": "b]"}, {"[a": "b"}, {"a": "b c"}, {" a": "b"}, {"a": "b "}, {"a": "é"}, {"é": "a"},
    {"a": "\t"}, {"a": "b\x7f"}, {"a": "~!"}, {"A.b": "C+D/e:f"},
]  # fmt: skip

numbers = st.sampled_from(NUMBERS) | st.integers(-5, 2**70).map(str) | st.text(max_size=4)
words = st.sampled_from(WORDS) | st.text(max_size=4) | st.from_regex("[a-z][a-z0-9-]{0,5}")
places = (
    st.sampled_from(PLACES)
    | st.builds("{}:{}".format, st.sampled_from(["numa", "gpu", "rank"]), numbers)
    | st.builds("file:{}".format, st.from_regex("[!-~]([ -~]{0,6}[!-~])?", fullmatch=True))
)
settings = st.sampled_from(SETTINGS) | st.dictionaries(
    st.text(max_size=3), st.text(max_size=3), max_size=2
)
sized_settings = st.dictionaries(
    st.sampled_from(["piece", "width", "height", "threads", "chunk", "stride", "scattered"]),
    numbers | st.sampled_from(["28KiB", "1 MiB", "both", "1.5KiB"]),
    max_size=3,
)
EXECUTORS = [
    "pageable@numa:0 -> pageable@numa:0 by cpu",
    "pinned@numa:0 -> device@gpu:0 by staged",
    "device@gpu:0 -> device@gpu:1 by relay",
    "managed@numa:0 -> managed@gpu:0 by page-fault",
]
byte_counts = st.integers(0, 2**64 - 1) | st.sampled_from([0, MOST_BYTES, MOST_BYTES + 1])


def taken_natively(make: Any, *arguments: Any) -> str | None:
    """The text of what the native library makes; None if it does not take the arguments."""
    try:
        return str(make(*arguments))
    except native.load().NotSupported:
        return None


def read_back(value: Memory | Operation | Transfer) -> str | None:
    """The text of a value, if the value can be read from it; None if it cannot."""
    try:
        return str(value) if type(value).parse(str(value)) == value else None
    except WordError:
        return None


@given(places)
def test_places(text: str) -> None:
    same_place(text)


@pytest.mark.parametrize("text", PLACES)
def test_each_place(text: str) -> None:
    same_place(text)


def same_place(text: str) -> None:
    if text != text.strip():
        return  # Python strips what surrounds a place in a longer text
    try:
        expected = str(Memory("a", Place.parse(text)))
    except WordError:
        expected = None
    assert taken_natively(native.load().Memory, "a", text, {}) == expected


@given(words, settings)
def test_memories_and_operations(word: str, chosen: dict[str, str]) -> None:
    same_memory_and_operation(word, chosen)


@pytest.mark.parametrize("word", WORDS)
def test_each_word(word: str) -> None:
    same_memory_and_operation(word, {})


@pytest.mark.parametrize("chosen", SETTINGS, ids=str)
def test_each_setting(chosen: dict[str, str]) -> None:
    same_memory_and_operation("a", chosen)


def same_memory_and_operation(word: str, chosen: dict[str, str]) -> None:
    place, library = Place("numa", 1), native.load()
    memory, operation = Memory(word, place, chosen), Operation(word, place, chosen)
    assert taken_natively(library.Memory, word, "numa:1", chosen) == read_back(memory)
    assert taken_natively(library.Operation, word, "numa:1", chosen) == read_back(operation)


@given(words, byte_counts, settings)
def test_transfers(word: str, size: int, chosen: dict[str, str]) -> None:
    same_transfer(word, size, chosen)


@pytest.mark.parametrize("size", [1, MOST_BYTES, MOST_BYTES + 1, 2**62, 2**64 - 1])
def test_each_number_of_bytes(size: int) -> None:
    same_transfer("a", size, {})


def same_transfer(executor: str, size: int, chosen: dict[str, str]) -> None:
    end, library = Memory("a", Place("numa", 1)), native.load()
    transfer = Transfer(Path(end, end, executor), size, chosen)
    there = library.Memory("a", "numa:1", {})
    made = taken_natively(library.Transfer, there, there, executor, size, chosen)
    # No bytes are not written in Python's text, which has to be that of a path too.
    assert (made.removesuffix(" of 0") if made else made) == read_back(transfer)


@given(st.sampled_from(["box", "list", "heap", ""]), settings | sized_settings)
def test_layouts(kind: str, chosen: dict[str, str]) -> None:
    same_layout(kind, chosen)


@pytest.mark.parametrize("number", NUMBERS)
def test_each_number_of_a_layout(number: str) -> None:
    same_layout("list", {"piece": number})


def same_layout(kind: str, chosen: dict[str, str]) -> None:
    """What Python reads from the text, with sizes as numbers of bytes, is what is taken."""
    library = native.load()
    end = library.Memory("a", "numa:1", {})
    try:
        found = Layout.parse(f"{kind}{format_settings(chosen)}")
    except WordError:
        found = None
    if found is None or found.settings.keys() != chosen.keys():
        assert taken_natively(library.Transfer, end, end, "a", 8, {}, kind, chosen) is None
    else:
        made = taken_natively(library.Transfer, end, end, "a", 8, {}, kind, found.settings)
        assert made is not None and f" as {found} of 8" in made


@given(byte_counts)
def test_sizes(size: int) -> None:
    """Sizes are numbers of bytes before they are passed on: the greatest is the same."""
    end = native.load().Memory("a", "numa:1", {})
    taken = taken_natively(native.load().Transfer, end, end, "a", size, {}) is not None
    try:
        read = parse_bytes(format_bytes(size))
    except WordError:
        read = None
    assert read == (size if taken else None)


@given(
    st.sampled_from(EXECUTORS), settings | sized_settings, st.sampled_from([8, 4096, MOST_BYTES])
)
def test_any_settings_have_an_answer(text: str, chosen: dict[str, str], size: int) -> None:
    """Whether a transfer can be made is answered before it is: nothing else is raised."""
    library = native.load()
    path = Path.parse(text)
    machine = library.Machine([library.NumaNode(0, [0, 1])], [], [])
    try:
        transfer = library.Transfer(
            *(library.Memory(each.kind, str(each.place), {}) for each in path.ends),
            path.executor, size, chosen,
        )  # fmt: skip
    except library.NotSupported:
        return
    assert library.unsupported_reason(transfer, machine) != ""
    for question in (library.requirements, library.timing, library.parameters):
        try:
            question(transfer, machine)
        except library.NotSupported as error:
            assert str(error)
