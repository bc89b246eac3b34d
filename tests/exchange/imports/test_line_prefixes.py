"""What launchers and logs put before every line is found by its shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.imports.test_made_texts import read
from waywiser.exchange.imports.line_prefixes import (
    LONGEST,
    NO_PREFIX,
    TITLE,
    _titles,
    without_prefixes,
)

LINES = ("# OSU MPI Latency Test v7.5", "# Size       Avg Latency(us)", "",
         *(f"{2**n:<12}{n + 1.25:>16.2f}" for n in range(9)))  # fmt: skip

PREFIXES: dict[str, Callable[[int], str]] = {
    "glog": lambda n: f"I1014 12:01:0{n % 10}.123456  4711 run.cc:42] ",
    "syslog": lambda n: f"<13>1 2026-10-14T12:01:{n:02d}.123Z node7 bench 4711 - - ",
    "logfmt level": lambda n: f"2026/10/14 12:01:{n:02d} [notice] ",
    "seconds": lambda n: f"[{n * 3:>5}] ",
    "dmesg": lambda n: f"[{n:>5}.{n:06d}] ",
    "line numbers": lambda n: f"{n + 40:>6}  ",
    "am and pm": lambda n: f"12:01:{n:02d} PM ",
    "kubectl": lambda n: "[pod/bench-7d9f8-x2k4p/main] ",
    "nomad": lambda n: f"2026-10-14T12:01:{n:02d}.000+02:00 [task=bench alloc=ab12] ",
    "ansible": lambda n: "node7 | CHANGED | ",
    "quoted mail": lambda n: "> ",
    "a comment": lambda n: "## ",
    "tabs": lambda n: "\t",
    "hex": lambda n: "bench@0x7f3a: ",
    "torchrun": lambda n: "[rank3]: ",
    "GitHub": lambda n: f"test\tbench\t2026-10-14T12:01:{n:02d}.1234567Z ",
    "epoch": lambda n: f"17289072{n:02d}.5 stdout ",
}


def values(text: str, folder: Path) -> list[list[float]]:
    path = folder / "a.txt"
    path.write_text(text)
    return [[each.samples.span[0] for each in file.measured] for file in read(path)]


@pytest.mark.parametrize("strip", [False, True])
@pytest.mark.parametrize("name", PREFIXES)
def test_a_prefix_of_any_shape_changes_nothing(name: str, strip: bool, tmp_path: Path) -> None:
    lines = [f"{PREFIXES[name](n)}{line}" for n, line in enumerate(LINES)]
    text = "\n".join(line.rstrip() if strip else line for line in ["launching", *lines, "done"])
    assert values(text, tmp_path) == values("\n".join(LINES), tmp_path)
    (captured,) = without_prefixes(text)
    assert len(captured.notes) == 1


@pytest.mark.parametrize(
    "prefix",
    [
        lambda source: f"{source}: ",
        lambda source: f"[1,{source}]<stdout>:",
        lambda source: f"[pod/w-{source}/bench] ",
        lambda source: f"w-{source}.svc | ",
        lambda source: f"2026-10-14T12:01:05Z node{source} bench[47{source}]: ",
        lambda source: f"(bench pid=47{source}, ip=10.0.0.{source}) ",
    ],
)
@pytest.mark.parametrize("sources", [2, 5])
def test_lines_of_several_sources_are_texts_of_their_own(
    prefix: Callable[[int], str], sources: int, tmp_path: Path
) -> None:
    lines = []
    for line in LINES:
        for source in range(sources):
            lines.append(f"{prefix(source)}{line.replace('.25', f'.{30 + source}')}")
    found = values("\n".join(lines), tmp_path)
    expected = values("\n".join(LINES), tmp_path)[0]
    assert len(found) == sources
    for source, each in enumerate(found):
        assert each == pytest.approx([e + (0.05 + source / 100) * 1e-6 for e in expected])


@pytest.mark.parametrize("prefix", ["{}: ", "gpu-node{}: ", "logs/case{}.out:", "[1,{}]<stdout>:"])
@pytest.mark.parametrize("sources", [2, 4])
def test_sources_one_after_the_other_are_not_blocks(
    prefix: str, sources: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        "\n".join(f"{prefix.format(source)}{line}" for source in range(sources) for line in LINES)
    )
    found = [str(each.workload) for file in read(path) for each in file.measured]
    assert len(found) == len(set(found)) == 9 * sources


def test_pieces_of_a_line_are_joined_for_each_source() -> None:
    tag = "[1,0]<stdout>:"
    text = (
        f"{tag}# OSU MPI Latency Test v7.5\n{tag}# Size  Avg Latency(us)\n"
        f"{tag}8 {tag}   1.5{tag}  1000\n"
        f"{tag}16 [1,2]<stdout>:w-1 NCCL INFO x\n{tag}  2.5\n"
    )
    (captured,) = without_prefixes(text)
    assert captured.text.split("\n") == [
        "# OSU MPI Latency Test v7.5", "# Size  Avg Latency(us)", "8    1.5  1000",
        "w-1 NCCL INFO x", "16   2.5", "",
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["log", "message", "msg"])
def test_a_log_of_json_objects_has_the_lines(key: str, tmp_path: Path) -> None:
    text = "\n".join(json.dumps({key: f"{line}\n", "time": "x"}) for line in LINES)
    assert values(text, tmp_path) == values("\n".join(LINES), tmp_path)


@pytest.mark.parametrize(
    "text",
    ["\n".join(LINES), "see # OSU MPI Latency Test v7.5\n" + "\n".join(LINES), "a\nb\n", ""],
)
def test_a_text_without_a_prefix_stays(text: str) -> None:
    assert [each.text for each in without_prefixes(text)] == [text]


def test_short_tags_within_a_line_are_those_of_the_line_alone() -> None:
    lines = ["[0] # OSU MPI Latency Test v7.5", "[0] # Size  Avg Latency(us)", "[0] 8 [0] 1.5",
             "[1] n7:1:1 [1] NCCL INFO x", "[0] 16 [0] 2.5"]  # fmt: skip
    (captured,) = without_prefixes("\n".join(lines))
    assert captured.text.split("\n")[2:] == ["8 1.5", "n7:1:1 NCCL INFO x", "16 2.5"]


def test_rows_of_a_source_whose_title_is_cut_off_are_of_no_other_table(tmp_path: Path) -> None:
    lines = [f"{rank}: {line.replace('.25', f'.{rank}5')}" for line in LINES for rank in (3, 4)]
    found = values("\n".join(line for line in lines if not line.startswith("4: #")), tmp_path)
    assert found == values("\n".join(LINES).replace(".25", ".35"), tmp_path)


@pytest.mark.parametrize("hosts", [("w1",), ("w1", "w2")])
def test_a_json_list_has_the_lines_of_each_host(hosts: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    blocks = [
        f'ok: [{host}] => {{\n  "run.stdout_lines": [\n'
        + ",\n".join(f"    {json.dumps(line)}" for line in LINES)
        + "\n  ]\n}"
        for host in hosts
    ]
    path.write_text("\n".join(blocks))
    found = [str(each.workload) for file in read(path) for each in file.measured]
    assert len(found) == len(set(found)) == 9 * len(hosts)


def by_source(text: str, folder: Path) -> dict[str, int]:
    path = folder / "a.txt"
    path.write_text(text)
    found: dict[str, int] = {}
    for each in (each for file in read(path) for each in file.measured):
        source = "".join(e for e in each.settings or () if e.startswith("source="))
        found[source.removeprefix("source=")] = found.get(source.removeprefix("source="), 0) + 1
    return found


@pytest.mark.parametrize("form", ["[{}] ", "{}: ", "logs/{}.out:", "bench-{}  | "])
@pytest.mark.parametrize("turns", [True, False])
def test_sources_whose_names_differ_in_letters(form: str, turns: bool, tmp_path: Path) -> None:
    one, other = ([form.format(name) + line for line in LINES] for name in ("east", "west"))
    lines = [each for pair in zip(one, other, strict=True) for each in pair]
    found = by_source("\n".join(lines if turns else [*one, *other]), tmp_path)
    assert len(found) == 2
    assert len(set(found.values())) == 1
    assert {"east" in name for name in found} == {True, False}


def test_lines_without_a_prefix_are_a_source_if_they_have_a_title(tmp_path: Path) -> None:
    text = "\n".join([*(f"> {line}" for line in LINES), *LINES])
    assert set(by_source(text, tmp_path)) == {"", NO_PREFIX}


@pytest.mark.parametrize("inner", [False, True])
def test_objects_of_a_log_name_the_source_of_their_line(inner: bool, tmp_path: Path) -> None:
    def of(pod: str, line: str) -> str:
        source = {"kubernetes": {"pod_name": pod}} if inner else {"pod": pod}
        return json.dumps({"log": f"{line}\n", **source})

    lines = [of(pod, line) for line in LINES for pod in ("red", "blue")]
    assert set(by_source("\n".join(lines), tmp_path)) == {"red", "blue"}


@given(st.from_regex(TITLE))
def test_every_title_is_found(line: str) -> None:
    title = TITLE.search(line, 0, 1000)
    if title and title.start() <= LONGEST:
        assert list(_titles([line])) == [(0, title.start())]
