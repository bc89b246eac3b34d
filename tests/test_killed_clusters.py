"""What is killed during a survey of a cluster costs nothing finished, and leaves nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.killed_surveys import KilledSurvey
from tests.measure.ranks.watching import own_files, wait_until

from mpi_wheels import mpicc_of
from nccl_nodes import FAKE_NCCL

NAMES = ("a", "b", "c", "d")

pytestmark = pytest.mark.slow

Start = Callable[..., KilledSurvey]


@pytest.fixture
def surveys(tmp_path: Path, fake_native_environment: dict[str, str]) -> Iterator[Start]:
    made: list[KilledSurvey] = []

    def make(names: tuple[str, ...], gpus: int, *options: str) -> KilledSurvey:
        fakes = {"WAYWISER_FAKE": f"devices={gpus}", "WAYWISER_NCCL": str(FAKE_NCCL)}
        environment = {**fake_native_environment, **fakes, **files.environment}
        made.append(KilledSurvey(tmp_path, environment, names, *options))
        return made[-1]

    with own_files() as files:
        yield make
        if made:  # the test was not skipped before
            assert files.seen
        for each in made:
            each.close()


def test_kills_at_seven_moments(surveys: Start) -> None:
    survey = surveys(NAMES, 1, "--transport", "nccl")
    survey.start(agents=("a", "b"))
    survey.await_text("a joined")
    assert survey.kill("agent", "a"), "before its first test"
    for name in ("a", "c", "d"):
        survey.start_agent(name)
    survey.await_tests(1)
    assert survey.kill("coordinator"), "after the first test"
    survey.start("--resume")
    survey.await_text("joined")
    assert survey.kill("coordinator", waiting=True), "while nodes join"
    survey.start("--resume")
    survey.await_tests(2)
    assert wait_until(lambda: survey.kill("worker", "b")), "in the rounds"
    survey.await_tests(2)
    assert survey.kill("agent", "c"), "in the rounds"
    survey.await_text(r"node c .*is lost")
    survey.await_tests(1)
    assert survey.kill("coordinator"), "with a node lost"
    survey.start("--resume", "--retry")
    survey.await_tests(2)
    assert wait_until(lambda: survey.kill("worker", "c")), "that is tested again"
    survey.await_tests(1)
    survey.survey.send_signal(signal.SIGINT)
    assert survey.end() == 130, survey.said
    assert "Traceback" not in survey.said
    assert survey.wrong == []


def test_a_killed_launcher(surveys: Start) -> None:
    survey = surveys(("a", "b"), 0, "--transport", "mpi", "--mpicc", mpicc_of("mpich"))
    survey.start()
    survey.await_text("round 1")
    assert wait_until(lambda: survey.kill("launcher"))
    survey.await_tests(2)
    survey.survey.send_signal(signal.SIGINT)
    assert survey.end() == 130, survey.said
    assert survey.wrong == []


def test_a_coordinator_that_ends_while_it_starts_can_be_started_again(surveys: Start) -> None:
    """`benchmarks/cluster_kills.py` does so at many moments."""
    survey = surveys(("a", "b"), 1, "--transport", "nccl", "--size", "64KiB")
    for seconds, number in ((0.5, signal.SIGKILL), (0.9, signal.SIGTERM)):
        survey.end_early(seconds, number)
    survey.start()
    survey.await_tests(1)
    assert survey.kill("coordinator", number=signal.SIGTERM)
    survey.start("--resume")
    assert survey.end() in (1, 3), survey.said
    survey.check_leftovers()
    assert survey.wrong == []
