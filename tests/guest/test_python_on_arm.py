"""Tests of Python and a quick survey in machines of ARM, which take many minutes there:

GUEST_TESTS=all .venv/bin/python -m pytest tests/guest/test_python_on_arm.py
"""

from __future__ import annotations

import faulthandler
import os
import re

import pytest
from tests.guest.test_guests import SECONDS, exports

from guest_machines.image import image
from guest_machines.run import ScriptResult, run_script, unavailable
from guest_machines.table import GUESTS
from tree import ROOT

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        os.environ.get("GUEST_TESTS") != "all", reason="takes many minutes: GUEST_TESTS=all runs it"
    ),
    pytest.mark.parametrize("name", ["arm-4k", "arm-16k"]),
]

FILES = {
    "words": "",
    "curves": "figure_range former_words imported kinds memories_of_ranks name_of_workload"
    " named_workloads nearness sizes",
    "stats": "decision fastest_ranges level_shift line_ranges multiplicity night_noise order policy"
    " running_variance",
    "transfer": "arguments checkpoint fake_gpu handles lists_and_files operand_sizes operands"
    " options_of_contexts read_plan registration snapshots statistics strided submit"
    " transfer_window",
}
"""Files of each folder of tests that need nothing but Python and the library; all of a folder
without names. Others simulate surveys, read kept profiles, or start programs."""
WITH_A_HEADER = "transfer/test_options_of_contexts.py::test_each_error_has_the_name_of_its_status"
"""It reads a header, which is not in the machine."""


def run(name: str, command: str) -> ScriptResult:
    """Runs a command in a machine, in the folder of the tree."""
    guest = GUESTS[name]
    if why := unavailable(guest.processor):
        pytest.skip(f"{name}: {why}")
    faulthandler.cancel_dump_traceback_later()  # of pytest: the machine has a limit of its own
    script = f"{exports()}\ncd {ROOT}\n{command}\n"
    return run_script(guest, image(guest.processor), script, seconds=SECONDS)


def test_tests_of_python_pass(name: str) -> None:
    chosen = [f"tests/{folder}" + (f"/test_{file}.py" if file else "")
              for folder, files in FILES.items() for file in files.split() or [""]]  # fmt: skip
    words = "-q -p no:cacheprovider --hypothesis-profile=emulated --durations=10 -n 2"
    python = f"{ROOT}/.venv/bin/python -m pytest {words} --deselect=tests/{WITH_A_HEADER}"
    ended = run(name, f"{python} {' '.join(chosen)}")
    print(ended.output[-4000:])
    assert ended.exit_code == 0


def test_a_quick_survey_ends(name: str) -> None:
    """That of `make survey`, without the fake GPU."""
    survey = f"{ROOT}/.venv/bin/waywiser survey --preset quick -o /tmp/a.wwp"
    ended = run(name, f"unset WAYWISER_NATIVE WAYWISER_TRANSFER_NATIVE; {survey}")
    print(ended.output[-2000:])
    assert ended.exit_code == 0
    assert re.search(r"^profile: /tmp/a.wwp", ended.output, re.MULTILINE)
