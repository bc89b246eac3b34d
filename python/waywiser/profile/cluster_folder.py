"""The results of a cluster in a folder, kept at once as they come.

    plan.json       what the run was asked for (`ClusterPlan`)
    nodes.jsonl     one `ClusterNode` per line; the last line of a name is the one that counts
    tests.jsonl     one `FinishedTest` per line; the last line of a test is the one that counts
    nodes/NAME.wwp  the profile of each node's check

Lines are appended and synced; a last line without its end is of a run that was killed while it
wrote, is ignored, and is removed by the next run. One run at a time writes to a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, ENOTDIR
from pathlib import Path

from msgspec.structs import replace

from waywiser.profile.cluster_files import (
    SkippedLines,
    append_line,
    explained,
    open_to_append,
    read_lines,
    read_plan,
    write_plan,
)
from waywiser.profile.cluster_validation import require_valid_test, short_text, storable_node
from waywiser.profile.errors import ExistingFile, LockedProfile
from waywiser.profile.file_name import SUFFIX
from waywiser.profile.lock import lock
from waywiser.profile.validation import InvalidRecord
from waywiser.words import (
    Closeable,
    ClusterNode,
    ClusterPlan,
    FailedTest,
    Failure,
    FinishedTest,
    Value,
    replaced_file,
)
from waywiser.words.atomic_write import is_part_of

PLAN, NODES, TESTS, PROFILES = "plan.json", "nodes.jsonl", "tests.jsonl", "nodes"

_RETRIED = "retried"
"""The kind of a failure that takes a former failure of the same test back."""


class ClusterResult(Value, frozen=True):
    """What a folder has."""

    plan: ClusterPlan
    nodes: tuple[ClusterNode, ...]
    """In the order in which they were first named."""
    tests: tuple[FinishedTest, ...]
    profiles: dict[str, Path]
    """The profile of each node that has one."""
    damaged: tuple[str, ...] = ()
    """The first lines that were skipped, with file, number and reason."""
    damaged_count: int = 0
    """How many were skipped."""


def is_cluster_folder(path: Path) -> bool:
    """Whether a folder is one of these; other commands take folders of profiles."""
    return (path / PLAN).is_file()


def read_cluster(path: Path) -> ClusterResult:
    """Reads a folder, also while a run writes to it. Lines that are no results are skipped. Raises
    `ProfileError` for a folder that is none."""
    skipped = SkippedLines()
    plan = read_plan(path / PLAN)
    nodes = {node.name: node for node in read_lines(path / NODES, ClusterNode, skipped)}
    tests = tuple(_counting(read_lines(path / TESTS, FinishedTest, skipped)))
    profiles = {name: profile_path(path, name) for name in nodes}
    return ClusterResult(
        plan,
        tuple(nodes.values()),
        tests,
        {n: p for n, p in profiles.items() if p.is_file()},
        tuple(skipped.first),
        skipped.count,
    )


def has_no_result(path: Path) -> bool:
    """Whether nothing is in the folder but what a run has made that ended before its first node
    joined: a run can begin there as in an empty one."""
    with suppress(OSError):
        return all(map(_is_without_result, path.iterdir()))
    return False


def _is_without_result(entry: Path) -> bool:
    if entry.name == PROFILES and not entry.is_symlink() and entry.is_dir():
        return not any(entry.iterdir())
    if entry.name in (NODES, TESTS):
        return entry.is_file() and not entry.stat().st_size
    return entry.name == PLAN or is_part_of(PLAN, entry.name)


def require_new_folder(path: Path) -> None:
    """Raises `ProfileError` for a folder in which no run can begin: it has something, or cannot be
    made or written to. Makes nothing."""
    with explained(path):
        if path.exists() and any(path.iterdir()) and not has_no_result(path):
            resume = ", or go on with the run in it by --resume" if is_cluster_folder(path) else ""
            raise ExistingFile(
                "the folder is not empty",
                where=str(path),
                remedy=f"name another folder with -o{resume}",
            )
        there = next(each for each in (path, *path.absolute().parents) if each.exists())
        if not there.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))


def profile_path(path: Path, node: str) -> Path:
    """The file for the profile of a node."""
    return path / PROFILES / f"{node}{SUFFIX}"


class ClusterFolder(Closeable):
    """A folder that a run writes to, from `create` or `resume` on."""

    def __init__(self, path: Path, plan: ClusterPlan, resources: ExitStack) -> None:
        """Use `create` or `resume`."""
        self.path = path
        self.plan = plan
        self.nodes: dict[str, ClusterNode] = {}
        self.tests: list[FinishedTest] = []
        self._resources = resources
        self.skipped = SkippedLines()
        for node in read_lines(path / NODES, ClusterNode, self.skipped):
            self.nodes[node.name] = node
        self.tests += _counting(read_lines(path / TESTS, FinishedTest, self.skipped))
        self._nodes_file = open_to_append(path / NODES, resources)
        self._tests_file = open_to_append(path / TESTS, resources)

    @classmethod
    def create(cls, path: Path, plan: ClusterPlan) -> ClusterFolder:
        """A new folder; one may exist if it is empty, or has no result. Raises `ProfileError`."""
        with explained(path), ExitStack() as stack:
            require_new_folder(path)
            path.mkdir(parents=True, exist_ok=True)
            (path / TESTS).touch()
            _locked(path, stack)
            require_new_folder(path)  # another run may have had the lock
            write_plan(path / PLAN, plan)
            (path / PROFILES).mkdir(exist_ok=True)
            _remove_parts(path)
            folder = cls(path, plan, stack)
            folder._resources = stack.pop_all()
            return folder

    @classmethod
    def resume(cls, path: Path) -> ClusterFolder:
        """A folder of a former run. Raises `ProfileError`."""
        plan = read_plan(path / PLAN)
        with explained(path), ExitStack() as stack:
            (path / PROFILES).mkdir(exist_ok=True)
            (path / TESTS).touch()
            _locked(path, stack)
            _remove_parts(path)
            folder = cls(path, plan, stack)
            folder._resources = stack.pop_all()
            return folder

    def set_plan(self, plan: ClusterPlan) -> None:
        """Replaces the plan: its groups and sizes are found while the run goes on."""
        with explained(self.path):
            write_plan(self.path / PLAN, plan)
        self.plan = plan

    def add_node(self, node: ClusterNode) -> None:
        """Stores a node, or its new state; one that is impossible as excluded."""
        node = storable_node(node)
        if self.nodes.get(node.name) != node:
            append_line(self._nodes_file, self.path / NODES, node)
            self.nodes[node.name] = node

    def add_test(self, test: FinishedTest) -> None:
        """Stores a finished test: after this it is not lost, whatever happens. One whose times are
        impossible is stored as failed."""
        if test.failed is not None:
            test = replace(test, failed=_shortened(test.failed))
        try:
            require_valid_test(test)
        except InvalidRecord as error:
            failed = FailedTest(Failure("protocol", f"its result is impossible: {error}"))
            test = replace(test, setup_seconds=0.0, elapsed_seconds=0.0, times=(), failed=failed)
        append_line(self._tests_file, self.path / TESTS, test)
        self.tests.append(test)

    def retry(self) -> None:
        """Takes back failed tests and the states of nodes that are tested no more: a run repeats
        those tests, and tests those nodes if they join. The lines stay in the files."""
        for test in [each for each in self.tests if each.failed is not None]:
            taken_back = FailedTest(Failure(_RETRIED, "it is tried again"))
            append_line(
                self._tests_file, self.path / TESTS, replace(test, times=(), failed=taken_back)
            )
            self.tests.remove(test)
        for node in list(self.nodes.values()):
            if node.state != "joined":
                self.add_node(replace(node, state="not reached", reason="it did not join again"))

    @contextmanager
    def new_profile(self, node: str) -> Iterator[Path]:
        """An empty file to write the profile of a node to; it replaces a former one when the block
        ends well."""
        path = profile_path(self.path, node)
        with explained(path), replaced_file(path) as part:
            yield part

    def remove_if_empty(self) -> bool:
        """Removes the folder if it has neither a test nor a profile. Returns whether it had none:
        the same command can be given again then."""
        profiles = self.path / PROFILES
        if self.tests or any(profiles.glob(f"*{SUFFIX}")):
            return False
        with suppress(OSError):  # what another program put there stays
            for name in (NODES, TESTS, PLAN):
                (self.path / name).unlink(missing_ok=True)
            profiles.rmdir()
            self.path.rmdir()
        return True

    def close(self) -> None:
        self._resources.close()


def _shortened(failed: FailedTest) -> FailedTest:
    failure = replace(failed.failure, reason=short_text(failed.failure.reason))
    return replace(failed, failure=failure, doing=short_text(failed.doing))


def _counting(tests: Iterable[FinishedTest]) -> list[FinishedTest]:
    """The last result of each test, without those that were taken back."""
    last = {test.test: test for test in tests}
    return [each for each in last.values() if not _is_taken_back(each)]


def _is_taken_back(test: FinishedTest) -> bool:
    return test.failed is not None and test.failed.failure.kind == _RETRIED


def _remove_parts(path: Path) -> None:
    """Removes what a killed run has not finished to write; the lock is held."""
    profiles = path / PROFILES
    for folder in (path, profiles):
        for part in folder.glob(".*.part"):
            name = part.name[1:].rsplit(".", 2)[0]
            if name == PLAN or (folder == profiles and name.endswith(SUFFIX)):
                part.unlink(missing_ok=True)


def _locked(path: Path, stack: ExitStack) -> None:
    """Raises `LockedProfile` while another run writes to the folder."""
    try:
        stack.callback(os.close, lock(path / TESTS))
    except LockedProfile:
        raise LockedProfile(
            "another run is writing to the folder",
            where=str(path),
            remedy="wait until that one ends, or name another folder with -o",
        ) from None
