"""What ``waywiser predict`` shows of the model itself: what it has found, how good it is, messages
by a published rule, and the fastest strategies for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.notebook.verb_result import VerbResult
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.model.message_strategies import MessageStrategies
    from waywiser.model.strategy_table import StrategyTable

SCHEMA = 2
"""The schema of the JSON forms of models. A new field does not change it."""

PUBLISHED = "published"
"""The rule of a paper."""


def model_answer(file: str, *, everything: bool) -> VerbResult:
    """The model of a machine: latencies, bandwidths, shared capacities."""
    from waywiser.model.machine_model import obtained_model
    from waywiser.profile import Profile
    from waywiser.render.views.model import model_parts

    with Profile.open(file) as profile:
        found = obtained_model(profile)
        imported = "imported" in profile.environment
    document = {"schema": SCHEMA, "profile": file, "model": found}
    return VerbResult(
        found,
        lambda: document,
        lambda: model_parts(found, everything=everything, imported=imported),
    )


def validation_answer(file: str, *, everything: bool) -> VerbResult:
    """How well the model predicts what was held out."""
    from waywiser.model.held_out import validation
    from waywiser.profile import Profile
    from waywiser.render.views.model import validation_parts

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
    return VerbResult(
        found, lambda: document, lambda: validation_parts(found, everything=everything)
    )


def published_answer(file: str, rule: str, switches: str) -> VerbResult:
    """The model of messages by the rule of a paper."""
    from waywiser.curves import points_of
    from waywiser.model.messages import messages_of
    from waywiser.model.published import fit, parse_switches, warnings_of
    from waywiser.profile import Profile, SeriesFrame
    from waywiser.render.views.model import published_parts

    if rule != PUBLISHED:
        raise WaywiserError(f"{rule!r} is no rule", remedy=f"write --rule {PUBLISHED}")
    limits = parse_switches(switches)
    with Profile.open(file) as profile:
        if profile.machine.ranks:
            raise WaywiserError(
                "the published rule is for results of BenchPress, and these are messages of a "
                "survey",
                where=file,
                remedy="leave --rule out",
            )
        messages = messages_of(points_of(SeriesFrame.read(profile)))
    _require_messages(messages, file, "the published rule is for")
    found = fit(messages, limits)
    warnings = warnings_of(found, messages, limits)
    head = {"schema": SCHEMA, "profile": file, "warnings": warnings}
    document = {**head, **msgspec.to_builtins(found)}
    return VerbResult(found, lambda: document, lambda: published_parts(found, warnings))


def _require_messages(messages: Sequence[object], file: str, use: str) -> None:
    """Raises `WaywiserError` if there are none."""
    if not messages:
        raise WaywiserError(
            f"has no messages between ranks, which {use}",
            where=file,
            remedy="measure them with waywiser survey --ranks 2, or import results of BenchPress: "
            "waywiser import FILES -o FILE",
        )


def crossovers_answer(
    file: str, processes: int | None, copies: str, *, everything: bool
) -> VerbResult:
    """The strategies for messages between GPUs, of two nodes or of surveyed ranks, compared."""
    from waywiser.curves import points_of
    from waywiser.model.machine_model import obtained_model
    from waywiser.model.message_strategies import place_of, require_two, strategies_of
    from waywiser.model.messages import messages_of
    from waywiser.model.rank_methods import methods_of
    from waywiser.model.rank_nodes import node_of
    from waywiser.model.strategy_steps import MessageModels
    from waywiser.model.strategy_table import strategy_table
    from waywiser.model.survey_strategies import require_any, survey_strategies
    from waywiser.profile import Profile, SeriesFrame
    from waywiser.render.views.strategies import strategy_parts

    place = place_of(copies)
    with Profile.open(file) as profile:
        frame, machine = SeriesFrame.read(profile), profile.machine
        summaries = points_of(frame)
        messages = messages_of(summaries, machine.ranks)
        others = methods_of(summaries)
        _require_messages([*messages, *others], file, "strategies are compared of")
        models = MessageModels.of(obtained_model(profile, frame))
    head = {"schema": SCHEMA, "profile": file, "node": node_of(summaries)}
    if machine.ranks:
        _require_imported(processes, copies)
        several = survey_strategies(messages, models, machine)
        require_any(several, file)
    else:
        found = strategies_of(
            messages, models, node_of(summaries), processes=processes, copies=place, others=others
        )
        require_two(found, file)
        several = [found]
    tables = [(found, strategy_table(found)) for found in several]
    first, *more = [_crossovers_document(*each) for each in tables]
    document = {**head, **first, "others": more}
    return VerbResult(
        several,
        lambda: document,
        lambda: (part for each in tables for part in strategy_parts(*each, everything=everything)),
    )


def _require_imported(processes: int | None, copies: str) -> None:
    """Raises `WaywiserError` for options that a survey of ranks answers by what it measured."""
    for option, value in {"--processes": processes, "--copies": copies}.items():
        if value:
            raise WaywiserError(
                f"{option} is for results of BenchPress: methods of a survey are measured whole",
                remedy="leave it out",
            )


def _crossovers_document(found: MessageStrategies, table: StrategyTable) -> dict[str, Any]:
    names = ("processes", "copies", "missing", "extents", "notes")
    more = {name: getattr(found, name) for name in names}
    return {**more, **msgspec.to_builtins(table)}
