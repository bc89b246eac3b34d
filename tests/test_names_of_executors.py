"""No module above ``native/`` names an executor or a kind of memory to treat it specially: what
others must know of one, it declares (`waywiser.machine.traits`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tree import ROOT
from waywiser.machine.traits import Traits

PACKAGE = ROOT / "python" / "waywiser"

ELSEWHERE = ("exchange/imports/", "transfer/")
"""The first translates the names of other tools; the second moves data by calls of its own."""

PLACE_KINDS = frozenset({"file"})
"""The kind of a place is called like the memory there."""

OTHER_WORDS = {
    "device": {
        "machine/interfaces.py": "a link in sysfs",
        "measure/plan/curves.py": "who times",
        "measure/probe/share.py": "who times",
        "words/transfer.py": "an example in a message",
        "words/workload.py": "who times",
    },
    "cpu": {
        "machine/bounds.py": "the end of an NVLink",
        "machine/cpu_load.py": "a controller of control groups, lines of /proc/stat",
        "machine/link_class.py": "the end of an NVLink",
        "machine/limits.py": "a controller of control groups",
        "machine/link_kinds.py": "the end of an NVLink",
        "machine/nvlink.py": "the end of an NVLink",
        "machine/nvml_facts.py": "the end of an NVLink",
        "machine/system.py": "a field of cpuinfo",
        "render/chapters/links.py": "the end of an NVLink",
    },
    "mpi": {
        "cluster/transports/mpi_transport.py": "a transport",
        "cluster/node/node_facts.py": "a transport",
        "cluster/surveys/survey_needs.py": "a transport",
        "cluster/surveys/survey_transport.py": "a transport",
        "cluster/surveys/time_plan.py": "a transport",
        "cli/former_verbs.py": "a former verb",
        "machine/machine.py": "a library",
        "measure/ranks/bridge_file.py": "a library",
        "measure/ranks/mpi_library.py": "a folder",
    },
    "nccl": {
        "notebook/cluster_call.py": "a transport",
        "cli/listing.py": "a library",
        "cluster/transports/nccl_transport.py": "a transport",
        "cluster/node/node_facts.py": "a transport",
        "analysis/cluster/texts.py": "a transport",
        "cluster/surveys/survey_transport.py": "a transport",
        "cluster/surveys/time_plan.py": "a transport",
        "fitness/nccl.py": "a kind of finding",
        "measure/ranks/nccl_group.py": "a library",
        "measure/ranks/nccl_worker.py": "a library",
        "measure/scope.py": "a library",
        "measure/survey_options.py": "a field of the profile",
        "measure/survey_run.py": "a library",
    },
    "alltoall": {
        "cluster/transports/mpi_transport.py": "the exchange of all ranks, by MPI",
        "curves/former_words.py": "what several memories do together",
        "words/collective.py": "what several memories do together",
    },
    "alltoallv": {
        "measure/ranks/attempt.py": "an operation of MPI",
        "measure/scope.py": "an operation of MPI",
        "words/collective.py": "what several memories do together",
    },
    "copy-engine": {
        "words/transfer.py": "an example in a message",
    },
    "pinned": {
        "words/memory.py": "an example in a message",
        "words/transfer.py": "an example in a message",
    },
}
"""Modules in which the word means something else."""


def names() -> frozenset[str]:
    data = (PACKAGE / "machine" / "traits.json").read_bytes()
    known = msgspec.json.decode(data, type=Traits)
    return frozenset(each.name for each in (*known.executors, *known.memories))


def named(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every string of code that is a name, or the text of a path with one."""
    alone = names() - PLACE_KINDS
    words = "|".join(map(re.escape, sorted(names(), key=len, reverse=True)))
    in_text = re.compile(rf"\bby ({words})(?![\w-])|(?<![\w-])({words})(?=(?:\[[^]]*\])?@)")
    tree = ast.parse(source)
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in documented:
            continue
        if node.value in alone:
            yield node.lineno, node.value
        for found in in_text.finditer(node.value):
            yield node.lineno, found[1] or found[2]


def modules() -> list[str]:
    every = (str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
    return sorted(name for name in every if not name.startswith(ELSEWHERE))


@pytest.mark.parametrize("module", modules())
def test_a_module_names_no_executor_and_no_kind_of_memory(module: str) -> None:
    found = [
        f"line {line}: {name!r}"
        for line, name in named((PACKAGE / module).read_text())
        if module not in OTHER_WORDS.get(name, {})
    ]
    assert not found, "declare a trait in native/src/executor or native/src/memory instead"


@pytest.mark.parametrize(
    "source",
    [
        'x = path.executor == "sm"',
        'x = memory.kind in {"pageable", "managed"}',
        'x = f"{memory} -> device@{gpu} by copy-engine"',
        'x = "pageable[pages=huge]@numa:0"',
    ],
)
def test_names_are_found_in_code_and_in_the_texts_of_paths(source: str) -> None:
    assert list(named(source))


def test_names_in_documentation_and_in_other_words_are_none() -> None:
    source = (
        '"""By copy-engine."""\nx = place.kind == "file"\ny = "split by cpus"\nz = "managed by"\n'
    )
    assert not list(named(source))


def test_each_exception_is_one() -> None:
    """A word that a module no longer has needs no exception."""
    for word, elsewhere in OTHER_WORDS.items():
        for module in elsewhere:
            found = {name for _, name in named(Path(PACKAGE / module).read_text())}
            assert word in found, f"{module}: {word}"
