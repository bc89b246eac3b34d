"""The options that several verbs have, each declared once: its name, its form, its one meaning.

Those of a survey are declared in its table (`waywiser.measure.survey_options`), all others here.
Options of one verb are declared where it is.
"""

from __future__ import annotations

from dataclasses import replace

from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.measure.option import Option, options_of
from waywiser.measure.survey_options import SurveyOptions
from waywiser.words import Bounds

_OTHERS = (
    Option("Compare with this file of the same kind.", "FILE", "--against"),
    Option("Show everything.", name="--all"),
    Option("Show what would be done and how long it takes, and do none of it.", name="--dry-run"),
    Option("The form of the files.", "FORMAT", "--format"),
    Option("Print JSON instead of text.", name="--json"),
    Option(
        "Also write JUnit XML; - for standard output: the text then goes to standard error.",
        "FILE",
        "--junit",
    ),
    Option("A profile of the traced machine: what the copies could take.", "FILE", "--profile"),
    Option(
        "A profile in which suspected paths were measured again: it confirms or refutes them. May "
        "be repeated.",
        "FILE",
        "--repeat",
    ),
    Option(
        "Assume another bandwidth of a resource, another latency of paths or another number of "
        "GPUs like those of the profile: 'PCIe to gpu:*=126GB/s', 'latency A -> B by X=1.5us', "
        "gpus=4. May be repeated.",
        "NAME=VALUE",
        "--set",
    ),
    Option(
        "Ignore changes of time up to this fraction, 3% or 0.03. With 0 every significant change "
        "matters; 100% would be twice the time.",
        "FRACTION",
        "--threshold",
    ),
    Option("Use the values of a table (CSV) too. May be repeated.", "FILE", "--values"),
)

SHARED: dict[str, Option] = {
    each.name: replace(each, more="", stored=None)
    for each in (
        *options_of(ClusterSurveyOptions).values(), *options_of(SurveyOptions).values(), *_OTHERS
    )
}  # fmt: skip
"""By name; also those of a survey, and of one of a cluster, that no other verb has."""


def shared(name: str, more: str = "", *, short: str = "", bounds: Bounds | None = None) -> Option:
    """The option with what it does in one verb, and its short name and bounds there."""
    found = SHARED[name]
    return replace(found, more=more, short=short, bounds=bounds or found.bounds)
