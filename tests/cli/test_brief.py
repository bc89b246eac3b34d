from __future__ import annotations

import gc
import os

import pytest

from waywiser.cli.brief import THREADS_VARIABLE, brief_unless_lasting


@pytest.mark.parametrize(
    ("arguments", "lasts"),
    [(["survey", "--preset", "full"], True), (["report", "survey"], False), ([], False)],
)
def test_only_what_lasts_collects_garbage_and_nothing_has_threads(
    arguments: list[str], lasts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    with brief_unless_lasting(arguments):
        assert gc.isenabled() is lasts
        assert os.environ[THREADS_VARIABLE] == "1"
    assert gc.isenabled() and THREADS_VARIABLE not in os.environ


def test_what_somebody_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "4")
    with brief_unless_lasting(["report"]):
        assert os.environ[THREADS_VARIABLE] == "4"
    assert os.environ[THREADS_VARIABLE] == "4"


def test_it_is_as_it_was_when_a_command_fails() -> None:
    with pytest.raises(ValueError, match="odd"), brief_unless_lasting(["report"]):
        raise ValueError("odd")
    assert gc.isenabled()


@pytest.mark.parametrize("verb", ["report", "survey"])
def test_a_process_that_exits_collects_nothing_any_more(verb: str) -> None:
    frozen = gc.get_freeze_count()
    try:
        with brief_unless_lasting([verb], exits=True):
            kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
        assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        gc.enable()
