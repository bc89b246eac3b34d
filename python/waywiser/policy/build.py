"""Makes decision tables and policies from the series of profiles."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.subject import Subject
from waywiser.policy.decision_table import DecisionTable
from waywiser.policy.table import Policy


def decision_tables(subjects: Sequence[Subject]) -> tuple[DecisionTable, ...]:
    """The tables of all kinds of copies that were measured, of one machine or of several surveys
    of it."""
    raise NotImplementedError


def build_policy(subjects: Sequence[Subject]) -> Policy:
    """The policy of the machine that was measured. Raises `PolicyError` if the profiles are of
    machines that differ, or if nothing that the library does was measured."""
    raise NotImplementedError
