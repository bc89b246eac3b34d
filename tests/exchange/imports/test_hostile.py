"""Whatever a file holds: a typed error of one line, or a profile; never anything else."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.curves.overview import overview
from waywiser.exchange.imports import benchpress, detect
from waywiser.exchange.imports.foreign_file import ImportFailed
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.words import WaywiserError

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.iterdir())
QUICK = settings(max_examples=60)


def survives(content: bytes, look: bool = False) -> None:
    """Imports it: an `ImportFailed` of one line and nothing left, or a profile."""
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "a.json", Path(folder) / "a.wwp"
        path.write_bytes(content)
        try:
            import_files([path], target)
        except ImportFailed as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
            assert error.exit_code == 2
            assert [each.name for each in Path(folder).iterdir()] == ["a.json"]
            return
        with Profile.open(target) as profile:
            assert profile.workloads()
            if look:
                assert overview(profile).series


@given(st.binary(max_size=400))
@QUICK
def test_random_bytes(content: bytes) -> None:
    survives(content)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_cut_off_anywhere(file: Path) -> None:
    content = file.read_bytes()
    survives(content, look=True)
    rng = random.Random(1)
    for _ in range(25):
        survives(content[: rng.randrange(len(content))])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_with_bytes_changed(file: Path) -> None:
    rng = random.Random(2)
    for _ in range(40):
        content = bytearray(file.read_bytes())
        for _ in range(rng.randrange(1, 6)):
            content[rng.randrange(len(content))] = rng.choice(b'0123456789-+.eE"{}[],: \nN/\xff\0')
        survives(bytes(content))


def figures(path: Path) -> dict[tuple[str, float], str]:
    """(workload, seconds) -> notes, of every sample; empty for a file that is not imported."""
    try:
        found = detect.read(path)
    except ImportFailed:
        return {}
    return {
        (str(each.workload), seconds): " ".join(each.notes)
        for file in found
        for each in file.measured
        for seconds in each.samples.span
    }


LINES = [file for file in FILES if file.suffix in (".txt", ".out", ".log")]


@pytest.mark.parametrize("change", ["dropped", "doubled", "swapped"])
@pytest.mark.parametrize("file", LINES, ids=lambda file: file.name)
def test_a_line_that_is_lost_makes_no_figure_without_a_note(
    file: Path, change: str, tmp_path: Path
) -> None:
    """No figure that the whole file has not, but by an assumption that its notes state."""
    whole = figures(file)
    lines = file.read_text().splitlines(keepends=True)
    path = tmp_path / file.name
    for n in range(len(lines)):
        changed = list(lines)
        if change == "dropped":
            del changed[n]
        elif change == "doubled":
            changed.insert(n, lines[n])
        else:
            changed[n : n + 2] = changed[n : n + 2][::-1]
        path.write_text("".join(changed))
        found = figures(path)
        for new in found.keys() - whole.keys():
            assert "assumed" in found[new] or "of all messages together" in found[new]


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, 10**400, -1, 0, 2**63, 2**64]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["N/A", "nan", "1e999", "\ud800", "x" * 5000, "Comm_/-1/", "/////", "0: (:"]),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
    st.builds(lambda depth: json.loads("[" * depth + "]" * depth), st.integers(1, 200)),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value, as keys and positions from the root."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(part, (*path, key))
    return found


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = odd


JSON = [file for file in FILES if file.suffix == ".json"]


@given(st.data())
@settings(QUICK, max_examples=200)
def test_values_of_wrong_types_and_sizes_anywhere(data: st.DataObject) -> None:
    value = json.loads(data.draw(st.sampled_from(JSON)).read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(value)))
        changed(value, path, data.draw(ODD))
    survives(json.dumps(value).encode("utf-8", errors="replace"))


@given(st.lists(st.text(max_size=30), max_size=12))
@QUICK
def test_lines_below_a_title_of_osu(lines: list[str]) -> None:
    text = "\n".join(["# OSU MPI Bandwidth Test v7.5", "# Size  Bandwidth (MB/s)", *lines])
    survives(text.encode("utf-8", errors="replace"))


ROWS = st.builds(
    lambda head, cells: "\t".join([head, *cells, ""]),
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(["CPU 0 and CPU 1:", "Size 1", "Size 8", "NP 0", "CPU 0, GPU 1:", "app"]),
        st.sampled_from(["GPU on rank 9999 and GPU on rank 0:", "CPU 0, GPU 0 <-> GPU 0:"]),
    ),
    st.lists(st.one_of(st.just("1.000000e-06"), st.text(max_size=12)), max_size=4),
)


@given(
    st.lists(
        st.one_of(ROWS, st.sampled_from([f"{text}:" for text, _, _ in benchpress._TITLES])),
        max_size=12,
    )
)
@settings(QUICK, max_examples=200)
def test_lines_of_benchpress(lines: list[str]) -> None:
    survives("\n".join(lines).encode("utf-8", errors="replace"))


@given(st.lists(st.lists(st.text(max_size=8), max_size=5).map(",".join), max_size=6))
@QUICK
def test_lines_below_the_header_of_csv(lines: list[str]) -> None:
    text = "\n".join(["name,iterations,real_time,cpu_time,time_unit", *lines])
    survives(text.encode("utf-8", errors="replace"))


@pytest.mark.parametrize(
    "content",
    [
        b'{"nvbandwidth":' * 900 + b"1" + b"}" * 900,
        b'{"benchmarks": [' + b"[" * 800 + b"]" * 800 + b"]}",
        b'{"benchmarks": [], "benchmarks": []}',
        b'{"benchmarks": []}',
        b'{"results": []}',
        b'{"nvbandwidth": {}}',
        b"# OSU MPI " + b" " * 100_000 + b"Test",
        b"\n" * 200_000 + b"# OSU MPI Bandwidth Test v7.5",
    ],
)
def test_known_traps(content: bytes) -> None:
    survives(content)


def test_a_bad_topology_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text("<topology><object type='Machine'>")
    with pytest.raises(WaywiserError, match=r"t\.xml"):
        import_files([FILES[0]], tmp_path / "a.wwp", topology=tmp_path / "t.xml")
    assert [each.name for each in tmp_path.iterdir()] == ["t.xml"]


def test_every_format_is_fuzzed() -> None:
    """Each reader has a file whose bytes and lines the tests above change."""
    formats = {found.format for file in FILES for found in detect.read(file)}
    assert formats == set(detect.FORMATS)
