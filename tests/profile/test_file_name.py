from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.profile import default_name

NOON = datetime(2026, 11, 20, 12, 30, 5, tzinfo=UTC)


def test_host_and_utc_time() -> None:
    assert default_name("node7", NOON) == Path("node7-20261120T123005Z.wwp")
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    assert default_name("node7", east) == default_name("node7", NOON)


@pytest.mark.parametrize("hostname", ["", "..", "///"])
def test_a_name_without_letters_is_host(hostname: str) -> None:
    assert default_name(hostname, NOON) == Path("host-20261120T123005Z.wwp")


@given(st.text(max_size=30))
def test_any_host_gives_a_file_of_the_current_folder(hostname: str) -> None:
    name = default_name(hostname, NOON)
    assert name.parent == Path() and name.suffix == ".wwp"
    assert not str(name).startswith(("-", "."))
