"""This very machine through hwloc, with the native library as it was built for the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from machine.captured import CAPTURES
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import Capture, load_capture


def run(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_this_machine_has_places_that_we_may_use(fake_native_environment: dict[str, str]) -> None:
    text = run(
        "import msgspec\n"
        "from waywiser.machine.assemble import machine_from\n"
        "from waywiser.machine.capture import capture_live\n"
        "print(msgspec.json.encode(machine_from(capture_live())).decode())",
        fake_native_environment,
    )
    machine = json.loads(text)
    cpus = {cpu for node in machine["numa"] for cpu in node["cpus"]}
    assert cpus and cpus <= os.sched_getaffinity(0)
    assert machine["architecture"] == os.uname().machine
    assert bool(machine["gpus"]) != bool(machine["gpu_reason"])


def test_only_the_cpus_of_the_cpuset_are_places(fake_native_environment: dict[str, str]) -> None:
    first = min(os.sched_getaffinity(0))
    text = run(
        "import os\n"
        f"os.sched_setaffinity(0, {{{first}}})\n"
        "from waywiser.machine.assemble import machine_from\n"
        "from waywiser.machine.capture import capture_live\n"
        "print([cpu for node in machine_from(capture_live()).numa for cpu in node.cpus])",
        fake_native_environment,
    )
    assert json.loads(text) == [first]


def test_hwloc_reads_its_first_version_and_writes_its_second(
    fake_native_environment: dict[str, str],
) -> None:
    file = CAPTURES / "hwloc-1.xml"
    text = run(
        f"from waywiser.machine.native import load\nprint(load().hwloc_xml({str(file)!r}))",
        fake_native_environment,
    )
    assert '<topology version="2.' in text
    assert 'type="Package"' in text and "Socket" not in text
    ours, theirs = machine_from(load_capture(file)), machine_from(Capture(hwloc=text))
    assert ours == theirs


def test_what_hwloc_does_not_read_is_one_line(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bad.xml").write_text("<topology>")
    for name in ("bad.xml", "nowhere.xml"):
        text = run(
            "from waywiser.machine.native import load\n"
            f"try: load().hwloc_xml({str(tmp_path / name)!r})\n"
            "except ValueError as error: print(error)",
            fake_native_environment,
        )
        assert text.count("\n") == 1 and name in text
