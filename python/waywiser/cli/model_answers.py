"""What ``waywiser predict`` shows of the model itself."""

from __future__ import annotations

from waywiser.cli.app import NamedAnswer

SCHEMA = 2
"""The schema of the JSON forms of models. A new field does not change it."""

PUBLISHED = "published"
"""The rule of a paper."""


def model_answer(file: str, *, everything: bool) -> NamedAnswer:
    """The model of a machine: latencies, bandwidths, shared capacities."""
    from waywiser.model.machine_model import obtained_model
    from waywiser.profile import Profile
    from waywiser.report.views.model import model_parts

    with Profile.open(file) as profile:
        found = obtained_model(profile)
        imported = "imported" in profile.environment
    document = {"schema": SCHEMA, "profile": file, "model": found}
    parts = model_parts(found, everything=everything, imported=imported)
    return NamedAnswer("model", document, parts)


def validation_answer(file: str, *, everything: bool) -> NamedAnswer:
    """How well the model predicts what was held out."""
    from waywiser.model.held_out import validation
    from waywiser.profile import Profile
    from waywiser.report.views.model import validation_parts

    with Profile.open(file) as profile:
        found = validation(profile)
    sets = [
        {
            "workload": str(each.timed.workload),
            "measured": each.timed.span,
            "predicted": each.prediction.span,
            "interval": each.prediction.interval,
            "error": each.error,
            "unknown": each.prediction.unknown,
        }
        for each in found.sets
    ]
    head = {"schema": SCHEMA, "profile": file}
    document = {**head, "rows": found.rows, "notes": found.notes, "sets": sets}
    return NamedAnswer("validation", document, validation_parts(found, everything=everything))
