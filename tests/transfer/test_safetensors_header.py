"""Headers of safetensors files are hostile input: what is accepted is right, and all else is an
error of one line."""

from __future__ import annotations

import json
import os
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transfer.safetensors_files import file_of, header_of
from waywiser.transfer.safetensors_header import (
    DTYPE_BITS,
    HEADER_BYTES_LIMIT,
    RANK_LIMIT,
    Header,
    SafetensorsError,
    parse_header,
    read_header,
)
from waywiser.transfer.strict_json import VALUES_LIMIT

ONE = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def parsed(header: object, data_bytes: int = 24) -> Header:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return parse_header(raw, data_bytes, "model.safetensors")


def error_text(header: object, data_bytes: int = 24) -> str:
    with pytest.raises(SafetensorsError) as caught:
        parsed(header, data_bytes)
    message = str(caught.value)
    assert message.startswith("model.safetensors: ")
    assert message.endswith(")"), "it names a remedy"
    assert message.isprintable(), "it is one line that steers no terminal"
    assert len(message) < 400
    return message


def changed(**fields: Any) -> dict[str, Any]:
    return {"a": {**ONE, **fields}}


def without(field: str) -> dict[str, Any]:
    return {"a": {name: value for name, value in ONE.items() if name != field}}


def test_a_valid_header_is_read_whole() -> None:
    raw = json.dumps(
        {
            "late": {"dtype": "BF16", "shape": [3], "data_offsets": [24, 30]},
            "__metadata__": {"format": "pt"},
            "a": ONE,
            "scalar": {"dtype": "U8", "shape": [], "data_offsets": [30, 31]},
            "empty": {"dtype": "F64", "shape": [0, 7], "data_offsets": [24, 24]},
        }
    ).encode()
    header = parse_header(raw + b"   ", 31, "x")
    start = 8 + len(raw) + 3
    assert header.metadata == {"format": "pt"}
    assert [tuple(entry) for entry in header.tensors.values()] == [
        ("a", "F32", (2, 3), start, 24),
        ("empty", "F64", (0, 7), start + 24, 0),
        ("late", "BF16", (3,), start + 24, 6),
        ("scalar", "U8", (), start + 30, 1),
    ]


def test_a_file_without_tensors_is_valid() -> None:
    assert parsed({}, 0) == Header({}, {})
    assert parsed({"__metadata__": {}}, 0) == Header({}, {})


@pytest.mark.parametrize("dtype", sorted(DTYPE_BITS))
def test_each_type_has_the_bytes_of_the_format(dtype: str) -> None:
    nbytes = DTYPE_BITS[dtype]
    assert parsed(header_of({"a": (dtype, [2, 4], nbytes)}), nbytes).tensors["a"].nbytes == nbytes
    assert "its type and shape need" in error_text(
        header_of({"a": (dtype, [2, 4], nbytes + 1)}), nbytes + 1
    )


def test_elements_of_less_than_a_byte_fill_bytes() -> None:
    assert "its type and shape need 1.5" in error_text(header_of({"a": ("F4", [3], 1)}), 1)
    assert "its type and shape need 1.5" in error_text(header_of({"a": ("F4", [3], 2)}), 2)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "does not start with '{'"),
        (b"[]", "does not start with '{'"),
        (b" {}", "does not start with '{'"),
        (b"\xef\xbb\xbf{}", "does not start with '{'"),
        (b"{", "not JSON"),
        (b"{}{}", "not JSON"),
        (b"{}x", "not JSON"),
        (b"{}\x00", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'{"\xff": 1}', "not UTF-8 text at byte 2"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a\nb": 1}', "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"\\ud800": 1}', "not Unicode text"),
        (b'{"a": "\\ud800"}', "not Unicode text"),
        (b'{"a": 1, "a": 1}', "occurs twice"),
        (b'{"__metadata__": {"k": "1", "k": "2"}}', "'k' occurs twice"),
        (b'{"a": {"dtype": "F32", "dtype": "F32"}}', "'dtype' occurs twice"),
        ({"a": 1}, "does not have exactly data_offsets, dtype, shape"),
        ({"a": None}, "does not have exactly"),
        ({"a": []}, "does not have exactly"),
        ({"a": {}}, "does not have exactly"),
        (without("dtype"), "does not have exactly"),
        (without("shape"), "does not have exactly"),
        (without("data_offsets"), "does not have exactly"),
        (changed(more=1), "does not have exactly"),
        (changed(dtype="F33"), "a type that the format does not know"),
        (changed(dtype="f32"), "a type that the format does not know"),
        (changed(dtype=None), "a type that the format does not know"),
        (changed(dtype=["F32"]), "a type that the format does not know"),
        (changed(dtype={"F32": 1}), "a type that the format does not know"),
        (changed(shape=6), "not a list of at most 64 sizes"),
        (changed(shape="23"), "not a list of at most 64 sizes"),
        (changed(shape=None), "not a list of at most 64 sizes"),
        (changed(shape={"2": 3}), "not a list of at most 64 sizes"),
        (changed(shape=[[2, 3]]), "not a list of at most 64 sizes"),
        (changed(shape=["2", "3"]), "not a list of at most 64 sizes"),
        (changed(shape=[True, 6]), "not a list of at most 64 sizes"),
        (changed(shape=[1] * RANK_LIMIT + [6]), "not a list of at most 64 sizes"),
        (changed(shape=[-2, -3]), "negative number '-2'"),
        (changed(shape=[2.0, 3]), "the number '2.0', which is not an integer"),
        (b'{"a": {"dtype": "F32", "shape": [6e0], "data_offsets": [0, 24]}}', "not an integer"),
        (b'{"a": {"dtype": "F32", "shape": [-0], "data_offsets": [0, 0]}}', "negative"),
        (changed(shape=[2**32, 2**32]), "2^63 bytes or more"),
        (changed(shape=[2**61]), "2^63 bytes or more"),
        (changed(shape=[2**62, 0, 2]), "2^63 bytes or more"),
        (changed(shape=[2**62, 2**62, 0]), "2^63 bytes or more"),
        (changed(shape=[9] * RANK_LIMIT), "2^63 bytes or more"),
        (changed(shape=[10**18 * 9] * RANK_LIMIT), "2^63 bytes or more"),
        (changed(shape=[10**19]), "a number of 20 digits"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "a number of 100000 digits"),
        (changed(shape=[2, 2]), "has 24 bytes, and its type and shape need 16"),
        (changed(data_offsets=[0]), "are not [begin, end]"),
        (changed(data_offsets=[0, 12, 24]), "are not [begin, end]"),
        (changed(data_offsets=[24, 0]), "are not [begin, end]"),
        (changed(data_offsets=[False, 24]), "are not [begin, end]"),
        (changed(data_offsets="0,24"), "are not [begin, end]"),
        (changed(data_offsets=None), "are not [begin, end]"),
        (
            changed(data_offsets=[2**63, 2**63 + 24]),
            "9,223,372,036,854,775,808 bytes before tensor 'a' belong to no tensor",
        ),
        (changed(data_offsets=[8, 32]), "8 bytes before tensor 'a' belong to no tensor"),
        ({"a": ONE, "b": ONE}, "tensors 'b' and 'a' overlap"),
        (
            {"a": ONE, "b": {"dtype": "U8", "shape": [1], "data_offsets": [23, 24]}},
            "tensors 'b' and 'a' overlap",
        ),
        (
            {"a": ONE, "b": {"dtype": "U8", "shape": [0], "data_offsets": [3, 3]}},
            "tensors 'b' and 'a' overlap",
        ),
        (
            {"a": ONE, "b": {"dtype": "U8", "shape": [0], "data_offsets": [25, 25]}},
            "1 bytes before tensor 'b' belong to no tensor",
        ),
        ({"__metadata__": 1}, "__metadata__ is not an object of texts"),
        ({"__metadata__": []}, "__metadata__ is not an object of texts"),
        ({"__metadata__": {"epoch": 1}}, "__metadata__ is not an object of texts"),
        ({"__metadata__": {"a": {"b": "c"}}}, "__metadata__ is not an object of texts"),
        (b'{"__metadata__": {"a": "\\udfff"}}', "not Unicode text"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_an_error(header: object, words: str) -> None:
    assert words in error_text(header)


def test_a_file_that_was_cut_is_an_error() -> None:
    assert "its tensors have 24 bytes and the file has 23 after" in error_text({"a": ONE}, 23)


def test_bytes_of_no_tensor_at_the_end_are_errors() -> None:
    assert "its tensors have 24 bytes and the file has 25 after" in error_text({"a": ONE}, 25)
    assert "its tensors have 0 bytes and the file has 1 after" in error_text({}, 1)


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "\u202egnp", "x" * 10_000, "\x7f"])
def test_a_hostile_name_makes_no_hostile_message(name: str) -> None:
    assert "overlap" in error_text({name: ONE, "b": ONE})
    assert "type" in error_text({name: {**ONE, "dtype": "\x1b[2J"}})


def test_a_header_of_very_many_values_is_an_error_before_it_is_parsed() -> None:
    assert f"more than {VALUES_LIMIT:,} values" in error_text(b"[" * (VALUES_LIMIT + 1))
    assert "values" in error_text(b'{"a":[' + b"[]," * VALUES_LIMIT + b"0]}")


def test_the_largest_header_of_the_format_is_parsed() -> None:
    text = b'{"__metadata__": {"a": "%s"}}'
    text = text.replace(b"%s", b"x" * (HEADER_BYTES_LIMIT - len(text) + 2))
    assert len(text) == HEADER_BYTES_LIMIT
    assert len(parsed(text, 0).metadata["a"]) > HEADER_BYTES_LIMIT - 100


def opened_header(content: bytes, file_bytes: int | None = None) -> Header:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        size = len(content) if file_bytes is None else file_bytes
        return read_header(file.fileno(), size, "model.safetensors")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty (download"),
        (b"\x02\0\0\0\0\0\0", "the file ends at byte 7, within its header (check"),
        (b"\x00" * 8, "does not start with '{'"),
        (b"\x03\0\0\0\0\0\0\0{}", "would have 3 bytes and the file has 10"),
        (b"\xff" * 8 + b"{}", "would have 18,446,744,073,709,551,615 bytes and the format allows"),
        (struct.pack("<Q", HEADER_BYTES_LIMIT + 1) + b"{}", "and the format allows 100,000,000"),
        (
            struct.pack("<Q", HEADER_BYTES_LIMIT) + b"{}",
            "would have 100,000,000 bytes and",
        ),
        (struct.pack(">Q", 2) + b"{}", "and the format allows"),
        (b"PK\x03\x04 a zip file, as torch.save makes", "and the format allows"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_a_file_that_is_no_safetensors_file_is_an_error(content: bytes, words: str) -> None:
    with pytest.raises(SafetensorsError) as caught:
        opened_header(content)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_file_that_ends_within_its_header_is_an_error() -> None:
    with pytest.raises(SafetensorsError, match="the file ends at byte 10, within its header"):
        opened_header(struct.pack("<Q", 20) + b"{}", file_bytes=28)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(
    lambda name: name != "__metadata__"
)
SHAPES = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def headers(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A valid header object and the bytes that follow it. Its members are in any order."""
    tensors: dict[str, tuple[str, list[int], int]] = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=8)):
        dtype = draw(st.sampled_from(sorted(DTYPE_BITS)))
        shape = [*draw(SHAPES), 4] if DTYPE_BITS[dtype] < 8 else draw(SHAPES)
        bits = DTYPE_BITS[dtype]
        for size in shape:
            bits *= size
        tensors[name] = (dtype, shape, bits // 8)
    header = header_of(tensors)
    if draw(st.booleans()):
        header["__metadata__"] = draw(st.dictionaries(NAMES, NAMES, max_size=2))
    members = draw(st.permutations(sorted(header)))
    return {name: header[name] for name in members}, sum(each[2] for each in tensors.values())


@given(headers(), st.integers(0, 9), st.booleans())
@settings(deadline=None)
def test_every_valid_header_is_accepted_as_it_is(
    made: tuple[dict[str, Any], int], padding: int, ascii_only: bool
) -> None:
    header, data_bytes = made
    raw = json.dumps(header, ensure_ascii=ascii_only).encode() + b" " * padding
    found = parse_header(raw, data_bytes, "x")
    start = 8 + len(raw)
    assert found.metadata == header.pop("__metadata__", {})
    assert found.tensors.keys() == header.keys()
    for name, entry in found.tensors.items():
        begin, end = header[name]["data_offsets"]
        assert entry == (
            name,
            header[name]["dtype"],
            tuple(header[name]["shape"]),
            start + begin,
            end - begin,
        )
    offsets = [entry.offset for entry in found.tensors.values()]
    assert offsets == sorted(offsets)


@given(st.binary(max_size=200), st.integers(0, 300))
@settings(deadline=None)
def test_any_bytes_are_accepted_or_an_error(raw: bytes, data_bytes: int) -> None:
    try:
        parse_header(b"{" + raw, data_bytes, "x")
    except SafetensorsError as error:
        assert str(error).isprintable()


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["F32", "U8", "dtype", "shape", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["a", "b", "dtype", "shape", "data_offsets", "__metadata__"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON_VALUES, st.integers(0, 64))
@settings(deadline=None)
def test_any_json_is_accepted_or_an_error(value: object, data_bytes: int) -> None:
    try:
        parsed(value, data_bytes)
    except SafetensorsError as error:
        assert str(error).isprintable()


VALID = json.dumps(
    {
        "__metadata__": {"format": "pt"},
        "model.embed.weight": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]},
        "model.norm.weight": {"dtype": "F32", "shape": [8], "data_offsets": [64, 96]},
        "scale": {"dtype": "F8_E4M3", "shape": [], "data_offsets": [96, 97]},
        "empty": {"dtype": "I64", "shape": [0, 3], "data_offsets": [97, 97]},
    },
    separators=(",", ":"),
).encode()
VALID_DATA = 97
TOKENS = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"-", b"0", b"9", b".", b"e", b"\\", b"\x00"),
    *(b"\xff", b"\xc3", b"\\ud800", b"\\u0000", b"null", b"true", b"NaN", b"1e999", b" ", b"\n"),
    *(b"[0,64]", b'"shape"', b'"dtype"', b'"data_offsets"', b'"__metadata__"', b'"F4"', b"97"),
    *(b"9223372036854775807", b"18446744073709551616", b"4294967296", b"[]", b"{}", b'"a":{},'),
]


def mutated(random_: random.Random, raw: bytes) -> bytes:
    """The header with one to four changes of bytes, tokens, numbers or spans."""
    made = bytearray(raw)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(made) + 1)
        change = random_.randrange(6)
        if change == 0:
            made[at:at] = random_.choice(TOKENS)
        elif change == 1:
            made[at : at + random_.randint(1, 8)] = b""
        elif change == 2:
            made[at : at + 1] = bytes([random_.randrange(256)])
        elif change == 3:
            other = random_.randrange(len(made) + 1)
            made[at:at] = made[other : other + random_.randint(1, 40)]
        elif change == 4:
            numbers = [i for i, byte in enumerate(made) if 48 <= byte <= 57]
            if numbers:
                made[random_.choice(numbers)] = random_.randrange(48, 58)
        else:
            made[at : at + random_.randint(0, 4)] = random_.choice(TOKENS)
    return bytes(made)


def check_invariants(header: Header, header_bytes: int, data_bytes: int) -> None:
    """What every user of a header relies on."""
    reached = 8 + header_bytes
    for name, entry in header.tensors.items():
        assert name == entry.name
        elements = 1
        for size in entry.shape:
            assert type(size) is int and size >= 0
            elements *= size
        assert elements * DTYPE_BITS[entry.dtype] == 8 * entry.nbytes
        assert entry.offset == reached
        reached += entry.nbytes
    assert reached == 8 + header_bytes + data_bytes
    assert all(
        isinstance(each, str) and each.encode() is not None
        for pair in header.metadata.items()
        for each in pair
    )


def fuzzed(count: int, seed: int) -> list[tuple[bytes, Header | None]]:
    """Mutated headers, and what was read of each: None if it was rejected."""
    random_ = random.Random(seed)
    read: list[tuple[bytes, Header | None]] = []
    for _ in range(count):
        raw = mutated(random_, VALID)
        try:
            header = parse_header(raw, VALID_DATA, "model.safetensors")
        except SafetensorsError as error:
            assert str(error).isprintable()
            read.append((raw, None))
        else:
            check_invariants(header, len(raw), VALID_DATA)
            read.append((raw, header))
    return read


def test_mutated_headers_are_errors_or_right() -> None:
    check_invariants(parse_header(VALID, VALID_DATA, "x"), len(VALID), VALID_DATA)
    read = fuzzed(20_000, seed=10)
    accepted = sum(header is not None for _, header in read)
    assert 100 < accepted < 15_000, "mutations reach both sides"


def test_safetensors_accepts_what_is_accepted(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
    path = tmp_path / "model.safetensors"
    accepted = [(raw, header) for raw, header in fuzzed(4_000, seed=11) if header is not None]
    assert accepted
    for raw, header in accepted:
        path.write_bytes(file_of(raw, bytes(VALID_DATA), pad=1))
        with safetensors.safe_open(os.fspath(path), "numpy") as theirs:
            assert set(theirs.keys()) == set(header.tensors)
            assert (theirs.metadata() or {}) == header.metadata
            for name, entry in header.tensors.items():
                part = theirs.get_slice(name)
                assert (part.get_dtype(), tuple(part.get_shape())) == (entry.dtype, entry.shape)
