"""``waywiser policy``: which method is fastest for each copy, as a table or a policy file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.cli.app import Json, print_result, verb

if TYPE_CHECKING:
    from waywiser.analysis.policy.decision_table import DecisionTable
    from waywiser.analysis.policy.table import Policy
    from waywiser.report.parts import Block, Section

HEAD_BYTES = 4096


@verb("Show or write which method is fastest for each copy.")
def policy(files: list[str], output: str = "", compare: bool = False, json: Json = False) -> None:
    """Show which method is fastest for each copy by its size, or write it for waywiser.transfer.

    FILE...: Profiles (.wwp) of one machine, or one policy; with --compare two, each a profile or a
        policy.
    -o, --output FILE: Write the policy to FILE, which waywiser.transfer reads; - for standard
        output. A former policy is replaced.
    --compare: Show where two policies choose different methods.

    waywiser policy node.wwp -o machine.json
        write the policy of this machine
    waywiser policy --compare before.wwp now.wwp
        show where two machines need different methods
    """
    from waywiser.analysis.policy.table import FORMAT
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        OutputKind,
        require_one_output,
        require_output,
        write_output,
    )

    require_one_output(json=json, output=output)
    policy_file = OutputKind("policy", f'"{FORMAT}"')
    require_output(output, policy_file)
    if compare:
        _require_two(files, output)
        _compare(files, json=json)
        return
    found, tables = _read(files)
    if output:
        write_output(output, found.to_json(), policy_file)
    if json:
        sys.stdout.write(found.to_json().decode())
    elif output != STANDARD_OUTPUT:
        shown = _written(found, tables, output) if output else _shown(found, tables, files)
        print_result(None, shown)


def _require_two(files: Sequence[str], output: str) -> None:
    """Raises `PolicyError` unless two files are given to ``--compare``, and no output."""
    from waywiser.analysis.policy.errors import PolicyError
    from waywiser.words.number_format import count

    if len(files) != 2 or output:
        raise PolicyError(
            f"--compare takes two files, and {count(len(files), 'file')} are given"
            if len(files) != 2
            else "--compare writes no policy",
            remedy="write waywiser policy --compare A B",
        )


def _written(
    found: Policy, tables: Sequence[DecisionTable], output: str
) -> Iterator[Block | Section]:
    from waywiser.report.parts import Words
    from waywiser.report.views.policy import hidden_parts
    from waywiser.words.number_format import count

    number = _number_of_rows(found)
    kinds = count(len(found.classes), "kind")
    yield Words(f"{output}: {count(number, 'row')} for {kinds} of copies")
    if number:
        yield Words(_install(output))
    else:
        yield Words("It decides nothing: programs with it keep the library's defaults.")
    yield from hidden_parts(tables)


def _shown(
    found: Policy, tables: Sequence[DecisionTable], files: Sequence[str]
) -> Iterator[Block | Section]:
    from waywiser.report.parts import Code, Section, Words
    from waywiser.report.views.policy import policy_parts

    yield from policy_parts(found, tables)
    if not _number_of_rows(found):
        yield Words("It would decide nothing: programs keep the library's defaults.")
        return
    command = Code(f"waywiser policy {' '.join(files)} -o machine.json", indent=4)
    yield Section("", "", (Words("To use it:"), command, Words(_install("machine.json"))))


def _number_of_rows(found: Policy) -> int:
    return sum(len(each.rows) + len(each.host_contiguous) for each in found.classes)


def _install(file: str) -> str:
    return (
        f"Programs use it with WAYWISER_POLICY={file}, or from ~/.config/waywiser/ or "
        "/etc/waywiser/."
    )


def _read(files: Sequence[str]) -> tuple[Policy, tuple[DecisionTable, ...]]:
    """A policy, and the tables that it was made of if it is not from a file."""
    from waywiser.analysis.policy.build import decision_tables, no_methods, policy_of
    from waywiser.analysis.policy.errors import NotAPolicy
    from waywiser.analysis.policy.file import read_policy
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    policies = [file for file in files if _is_policy(file)]
    if policies and len(files) > 1:
        raise NotAPolicy(
            "is a policy already",
            where=policies[0],
            remedy="give profiles alone, or two files with --compare",
        )
    if policies:
        return read_policy(policies[0]), ()
    subjects = []
    for file in dict.fromkeys(files):
        with Profile.open(file) as profile:
            subjects.append(Subject.of(profile))
    tables = decision_tables(subjects)
    if not tables:
        raise no_methods(subjects, files[0])
    return policy_of(tables, subjects), tables


def _is_policy(file: str) -> bool:
    from waywiser.analysis.policy.file import is_policy
    from waywiser.words.regular_file import open_regular

    try:
        with open_regular(file) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            return is_policy(stream.read(HEAD_BYTES))
    except OSError:
        return Path(file).suffix == ".json"


def _compare(files: Sequence[str], *, json: bool) -> None:
    from waywiser.analysis.policy.difference import compare_policies
    from waywiser.report.views.policy import difference_parts

    policies, tables = zip(*(_read([file]) for file in files), strict=True)
    found = compare_policies(*policies, *tables)
    print_result(found, difference_parts(found, files, policies), json=json)
