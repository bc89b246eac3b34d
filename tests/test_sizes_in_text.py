from __future__ import annotations

import pytest

from waywiser.words.sizes_in_text import (
    bytes_of_each,
    size_of,
    with_sizes,
    with_units,
    without_sizes,
    without_units,
)

COPY = "pinned@numa:0 -> device@gpu:0 by copy-engine"
LIST = "device@gpu:0 -> device@gpu:0 by sm[grid=paper] as list[piece=28672]"


@pytest.mark.parametrize("way", [COPY, LIST])
@pytest.mark.parametrize("size", ["1048576", "1 MiB", "12345", "12345 B"])
def test_a_size_is_removed_with_its_unit(way: str, size: str) -> None:
    read = {"1048576": "1 MiB", "12345": "12345 B"}.get(size, size)
    series = f"{way} of {size}; {way} of {size} (flushed)"
    shown = way.replace("28672", "28KiB")
    assert with_sizes(series) == f"{shown} of {read}; {shown} of {read} (flushed)"
    assert without_sizes(series) == f"{way}; {way} (flushed)"


@pytest.mark.parametrize("text", [COPY, LIST, "malloc[bytes=65536]@numa:0", "11 of 12 blocks", ""])
def test_what_names_no_size_of_a_transfer_stays_as_it_is(text: str) -> None:
    assert without_sizes(text) == text
    assert with_sizes(text) == with_units(text)


def test_settings_are_read_with_units_where_they_are_whole() -> None:
    assert with_units("list[piece=28672]") == "list[piece=28KiB]"
    assert with_units("sm[blocks=12,piece=2097152]") == "sm[blocks=12,piece=2MiB]"
    assert with_units("malloc[bytes=65536]@numa:0") == "malloc[bytes=64KiB]@numa:0"
    assert with_units("bytes=65536") == "bytes=64KiB"


@pytest.mark.parametrize(
    "text", [f"{COPY} of 67108864", f"{LIST} of 8", "malloc[bytes=65536]@numa:0"]
)
def test_a_text_that_was_shown_is_read_back(text: str) -> None:
    assert without_units(with_sizes(text)) == without_units(text) == text
    assert without_units(with_sizes(text).casefold()) == text


def test_what_is_no_size_in_a_pattern_stays() -> None:
    for pattern in (
        "h2d sm",
        "threads=4KiB",
        "piece=4x",
        "piece=*",
        "of 64 MiBs",
        f"of {'9' * 20}GiB",
    ):
        assert without_units(pattern) == pattern


def test_counts_are_no_sizes() -> None:
    settings = "cpu[threads=1024] as box[height=2048,width=512]"
    assert with_units(settings) == with_sizes(settings) == settings


def test_the_size_of_equal_transfers_is_that_of_each() -> None:
    assert size_of(f"{COPY} of 1048576") == "1 MiB"
    assert size_of(f"{LIST} of 1048576; {COPY} of 1048576 (flushed)") == "2 × 1 MiB"
    assert size_of(f"{COPY} of 8; {LIST} of 16") == "24 B"
    assert size_of("malloc[bytes=65536]@numa:0") == size_of(COPY) == ""
    assert bytes_of_each(f"{COPY} of 8; {COPY} of 8") == 8
    assert bytes_of_each(f"{COPY} of 8; {COPY} of 16") == 24
    assert bytes_of_each(COPY) == 0
