"""Host lists: Slurm's grammar there and back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waywiser.words import WordError
from waywiser.words.host_list import (
    MOST_HOSTS,
    compress_hosts,
    expand_hosts,
    is_host_name,
    natural_key,
)

NUMBERS = st.one_of(
    st.integers(0, 1200).map(str),
    st.tuples(st.integers(0, 1200), st.integers(1, 5)).map(lambda each: f"{each[0]:0{each[1]}d}"),
)
PREFIXES = st.sampled_from(["n", "gpu-a1-b", "rack7_", "", "n0", "node.", "x10y"])
NAMES = st.tuples(PREFIXES, NUMBERS).map("".join) | st.sampled_from(["login", "n1.example", "a-b"])


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n[001-003,7]", "n001 n002 n003 n7"),
        ("gpu-a[1-2]-b[0-1]", "gpu-a1-b0 gpu-a1-b1 gpu-a2-b0 gpu-a2-b1"),
        ("n[001-002,7],gpu-a[1-2]-b[0-1]", "n001 n002 n7 gpu-a1-b0 gpu-a1-b1 gpu-a2-b0 gpu-a2-b1"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("n[98-101]", "n98 n99 n100 n101"),
        ("b,a n3\n", "b a n3"),
        ("n1,n1", "n1 n1"),
        ("unit[0-1]rack", "unit0rack unit1rack"),
        ("10.0.0.[1-2]", "10.0.0.1 10.0.0.2"),
        ("", ""),
    ],
)
def test_a_list_is_expanded(text: str, hosts: str) -> None:
    assert expand_hosts(text) == tuple(hosts.split())


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ("n001 n002 n003 n7", "n[7,001-003]"),
        ("n3 n1 n2 n2", "n[1-3]"),
        ("n08 n09 n10 n11", "n[08-11]"),
        ("n8 n9 n10", "n[8-10]"),
        ("a n1 login", "a,login,n1"),
        ("gpu-a1-b0 gpu-a1-b1 gpu-a2-b0", "gpu-a1-b[0-1],gpu-a2-b0"),
        ("n1.example n2.example", "n1.example,n2.example"),
        ("n n1 n2", "n,n[1-2]"),
        ("", ""),
    ],
)
def test_hosts_are_compressed(hosts: str, text: str) -> None:
    assert compress_hosts(hosts.split()) == text


@given(st.lists(NAMES, max_size=60))
@example(["n0", "n00", "n000", "n1", "n01", "n10", "n010"])
@example(["n099", "n100", "n0100", "n99"])
def test_what_is_compressed_expands_to_the_same_hosts(hosts: list[str]) -> None:
    text = compress_hosts(hosts)
    expanded = expand_hosts(text)
    assert len(expanded) == len(set(expanded))
    assert set(expanded) == set(hosts)
    assert compress_hosts(expanded) == text


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(1, 4))
def test_neighbours_are_one_range(first: int, number: int, digits: int) -> None:
    hosts = [f"n{each:0{digits}d}" for each in range(first, first + number)]
    assert compress_hosts(hosts).count(",") == 0 or len(hosts[0]) < len(hosts[-1])
    assert set(expand_hosts(compress_hosts(hosts))) == set(hosts)


@given(st.text(alphabet="n0123456789[]-, \n\tä.$;\0", max_size=40) | st.text(max_size=40))
def test_any_text_is_hosts_or_one_clear_error(text: str) -> None:
    try:
        hosts = expand_hosts(text)
    except WordError as error:
        assert "\n" not in str(error)
    else:
        assert all(map(is_host_name, hosts))
        assert set(expand_hosts(compress_hosts(hosts))) == set(hosts)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n[1-3", "not closed"),
        ("n1-3]", "not closed or not opened"),
        ("n[1-[2]]", "not closed"),
        ("n[3-1]", "counts down"),
        ("n[]", "'' is no number"),
        ("n[a-b]", "'a-b' is no number"),
        ("n[1-2;rm]", "'1-2;rm' is no number"),
        ("n1;reboot", "'n1;reboot' is no host name"),
        ("-n", "'-n' is no host name"),
        ("n" * 300, "is no host name"),
        (f"n[0-{MOST_HOSTS}]", "more than 100,000 hosts"),
        ("n[0-999]-[0-999]", "more than 100,000 hosts"),
        ("n[1-99999999999999999999]", "is no number"),
        (",".join(["n[0-50000]"] * 3), "more than 100,000 hosts"),
    ],
)
def test_what_is_no_list_is_said(text: str, says: str) -> None:
    with pytest.raises(WordError, match=says.replace("[", r"\[")):
        expand_hosts(text)


def test_names_sort_by_their_numbers() -> None:
    assert sorted(["n10", "n9", "a2", "n9b"], key=natural_key) == ["a2", "n9", "n9b", "n10"]
