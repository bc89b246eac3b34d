"""Errors of Python calls name arguments, and commands for a shell keep their options."""

from __future__ import annotations

import pytest

from waywiser.errors import WaywiserError
from waywiser.notebook.python_arguments import in_python, python_arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--only 'a b' matches no series", "only='a b' matches no series"),
        ("--only selects nothing", "only= selects nothing"),
        ("name --sizes 8, or another --preset", "name sizes=8, or another preset="),
        ("--gpus 0,7: no gpu:7", "gpus='0,7': no gpu:7"),
        ("--memory 4GiB; try with --share", "memory='4GiB'; try with share=True"),
        ("--no-scratch, --expect-gpus 2", "no_scratch=True, expect_gpus=2"),
        ("use --preset full for it", "use preset='full' for it"),
        ("name it with -o FILE", "name it with output='FILE'"),
        ("import with --topology FILE", "import with --topology FILE"),
        ("docker --cpus, non--only", "docker --cpus, non--only"),
        (
            "waywiser survey --only 'a' --sizes 8 -o b.wwp, or --only",
            "waywiser survey --only 'a' --sizes 8 -o b.wwp, or only=",
        ),
    ],
)
def test_options_become_arguments(text: str, expected: str) -> None:
    assert in_python(text) == expected


def test_an_error_has_other_words_and_is_the_same_error() -> None:
    error = WaywiserError("--seed is wrong", where="--seed", remedy="leave --seed out")
    with pytest.raises(WaywiserError) as caught, python_arguments():
        raise error
    assert caught.value is error
    assert str(error) == "--seed: seed= is wrong (leave seed= out)"
    assert (error.what, error.remedy) == ("seed= is wrong", "leave seed= out")
