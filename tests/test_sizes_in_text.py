from __future__ import annotations

import pytest

from waywiser.words.sizes_in_text import with_sizes, with_units, without_sizes

COPY = "pinned@numa:0 -> device@gpu:0 by copy-engine"
LIST = "device@gpu:0 -> device@gpu:0 by sm[grid=paper] as list[piece=28672]"


@pytest.mark.parametrize("way", [COPY, LIST])
@pytest.mark.parametrize("size", ["1048576", "1 MiB", "12345", "12345 B"])
def test_a_size_is_removed_with_its_unit(way: str, size: str) -> None:
    read = {"1048576": "1 MiB", "12345": "12345 B"}.get(size, size)
    series = f"{way} of {size}; {way} of {size} (flushed)"
    assert with_sizes(series) == f"{way} of {read}; {way} of {read} (flushed)"
    assert without_sizes(series) == f"{way}; {way} (flushed)"


@pytest.mark.parametrize("text", [COPY, LIST, "malloc[bytes=65536]@numa:0", "11 of 12 blocks", ""])
def test_what_names_no_size_of_a_transfer_stays_as_it_is(text: str) -> None:
    assert with_sizes(text) == without_sizes(text) == text


def test_settings_are_read_with_units_where_they_are_whole() -> None:
    assert with_units("list[piece=28672]") == "list[piece=28KiB]"
    assert with_units("sm[blocks=12,piece=2097152]") == "sm[blocks=12,piece=2MiB]"
