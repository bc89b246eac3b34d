"""The policy that files have: profiles of one machine, or a policy that was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from waywiser.analysis.policy.build import decision_tables, no_methods, policy_of
from waywiser.analysis.policy.decision_table import DecisionTable
from waywiser.analysis.policy.errors import NotAPolicy
from waywiser.analysis.policy.file import is_policy, read_policy
from waywiser.analysis.policy.table import Policy
from waywiser.curves import Subject
from waywiser.profile import Profile
from waywiser.words import open_regular

HEAD_BYTES = 4096


def policy_of_files(files: Sequence[str]) -> tuple[Policy, tuple[DecisionTable, ...]]:
    """The policy, and the tables that it was made of if it is not from a file. Raises `NotAPolicy`
    for a policy beside other files, `PolicyError` for profiles without methods, `ProfileError`."""
    policies = [file for file in files if _has_policy(file)]
    if policies and len(files) > 1:
        raise NotAPolicy("is a policy already", where=policies[0], remedy="name it alone")
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


def _has_policy(file: str) -> bool:
    try:
        with open_regular(file) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            return is_policy(stream.read(HEAD_BYTES))
    except OSError:
        return Path(file).suffix == ".json"
