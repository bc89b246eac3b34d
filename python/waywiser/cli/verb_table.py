"""Which verbs there are, which question each answers, and where it is.

The verb's own options are declared where it is, by its function, its docstring and its table of
options; what several verbs have is in `waywiser.cli.app`.
"""

from __future__ import annotations

from typing import NamedTuple


class VerbEntry(NamedTuple):
    """A verb of the table."""

    name: str
    """It may have two words, ``cluster survey``."""
    module: str
    """The module of this package that gives the command the verb."""
    question: str
    """What it answers. Verbs with the same question stand together."""
    is_first: bool = False
    """Whether the first screen of the help names it."""


_CLUSTER = "Which node of many is slow?"
_FILES = "How do other programs get what was measured, or I what they measured?"
_MACHINES = "What is a machine made of, and how would another one do?"

VERBS = (
    VerbEntry("survey", "measuring", "What can move here, and how fast?", True),
    VerbEntry("show", "show", "What does it look like?", True),
    VerbEntry("check", "check", "Is it healthy?", True),
    VerbEntry("compare", "compare", "What differs between these two?", True),
    VerbEntry("advise", "advise", "Which method, which setting, where to put it?", True),
    VerbEntry("predict", "predict", "How long will it take?", True),
    VerbEntry("trace", "trace", "Which of my program's copies are slow?", True),
    VerbEntry("doctor", "doctor", "Is this machine fit to be measured?", True),
    VerbEntry("report", "report", "What does it look like?"),
    VerbEntry("tune", "measuring", "Which settings are the fastest?"),
    VerbEntry("import", "import_", _FILES),
    VerbEntry("export", "export", _FILES),
    VerbEntry("cluster survey", "cluster", _CLUSTER),
    VerbEntry("cluster join", "cluster", _CLUSTER),
    VerbEntry("cluster show", "cluster_show", _CLUSTER),
    VerbEntry("simulate", "simulate", _MACHINES),
    VerbEntry("topology", "topology", _MACHINES),
)
"""All verbs, in the order in which the help names them."""

GROUPS = {"cluster": "Find the slow node of many: survey, join, show."}
"""Verbs of two words are one in the help, by their first word."""
