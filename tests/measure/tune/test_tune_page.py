"""The guide's commands run as they are written, without a GPU."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from own_lock import commands, finish

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "tune-copies.md"
SHELL = re.compile(r"^```sh\nwaywiser (.*)\n```$", re.MULTILINE)


@pytest.mark.slow
def test_the_commands_of_the_guide_run(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    lines = SHELL.findall(PAGE.read_text())
    assert len(lines) == 3
    with commands(tmp_path, fake_native_environment) as start:
        for line in lines:
            # A time that no machine is too busy for.
            words = shlex.split(re.sub(r"--budget \S+", "--budget 10min", line))
            code, out, err = finish(start(*words, WAYWISER_FAKE="devices=0"))
            assert code == 0, err
            assert out
    assert (tmp_path / "node.wwp").exists() and (tmp_path / "grid.wwp").exists()
