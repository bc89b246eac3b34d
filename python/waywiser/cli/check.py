"""``waywiser check``: whether one node is as it was, for every night."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from waywiser.cli.app import USUAL_THRESHOLD, Json, ProfileFile, Repeat, Threshold, parse_fraction
from waywiser.cli.result import exit_code, print_result
from waywiser.cli.verb import verb
from waywiser.words.status import STATUSES

if TYPE_CHECKING:
    from waywiser.analysis.comparison.checkup import Checkup
    from waywiser.curves.normal import NormalPath
    from waywiser.curves.subject import Subject
    from waywiser.report.parts import Block


@verb("Say in one line whether a node changed since its baseline.")
def check(
    file: ProfileFile,
    baseline: list[str],
    repeat: Repeat = None,
    measure: bool = True,
    threshold: Threshold = USUAL_THRESHOLD,
    max_hidden: str = "",
    prometheus: str = "",
    junit: str = "",
    json: Json = False,
) -> int:
    """Say in one line whether a node changed since its baseline, and which paths, GPUs, links and
    error counters did.

    --baseline FILE: A profile of the node when it was healthy; may be repeated. Three show the
        noise between surveys.
    --measure/--no-measure: Measure suspected paths again now, if the profile is of this machine
        (the default), or only read files.
    --max-hidden FRACTION: End with 3 if a loss of more than this, such as 10%, could hide on a
        headline path; by default if one of more than 15% could on a pinned or P2P copy or a set.
    --prometheus FILE: Also write metrics for the textfile collector of Prometheus; - for standard
        output: the text then goes to standard error.
    --junit FILE: Also write JUnit XML with a test for the node and for each path; - for standard
        output.

    waywiser check now.wwp --baseline before.wwp
        say whether the node changed
    waywiser check now.wwp --baseline before.wwp --no-measure --json
        the same for programs, from files alone
    """
    from waywiser.analysis.comparison.checkup import check_up
    from waywiser.analysis.comparison.read_subject import read_subject
    from waywiser.cli.remeasure import measure_again
    from waywiser.machine.machine import require_real
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        require_one_output,
        require_output,
        write_output,
    )

    limit = parse_fraction(threshold, "threshold")
    hidden = parse_fraction(max_hidden, "loss") if max_hidden else None
    require_one_output(json=json, prometheus=prometheus, junit=junit)
    if prometheus:
        from waywiser.exchange.exports.prometheus import METRICS_FILE, exposition

        require_output(prometheus, METRICS_FILE)
    if junit:
        from waywiser.exchange.exports.junit import CHECK_JUNIT, check_junit

        require_output(junit, CHECK_JUNIT)
    before = [read_subject(each, links=True) for each in baseline]
    for old in before:
        require_real(old.machine, old.called, allowed="simulated")
    node = read_subject(file, links=True)
    again = [read_subject(each) for each in repeat or ()]
    found, failure = check_up(node, before, limit, again, hidden), ""
    if found.suspects and measure:
        measured, failure = measure_again(file, node, found.suspects, repeat or ())
        if measured is not None:
            found = check_up(node, before, limit, [*again, measured], hidden)
    if prometheus:
        write_output(prometheus, exposition(found, node).encode(), METRICS_FILE)
    beside = _beside_others(file)
    found = msgspec.structs.replace(found, notes=(*found.notes, *_normal_notes(node, beside)))
    parts = checkup_parts(found, node, failure, beside)
    if junit:
        write_output(junit, check_junit(found), CHECK_JUNIT)
    to_errors = STANDARD_OUTPUT in (prometheus, junit)
    print_result(found, parts, json=json, to_errors=to_errors)
    return exit_code(STATUSES[found.status])


def _beside_others(file: str) -> list[NormalPath]:
    """The headline paths beside those of other machines; a profile without any has none."""
    from waywiser.curves.normal import normal_paths_of
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        return normal_paths_of(profile)


def _normal_notes(node: Subject, beside: Sequence[NormalPath]) -> Iterator[str]:
    """What is below the range of other machines, and how many paths have a verdict. No verdict
    changes the status."""
    from waywiser.curves.normal import NO_BASELINE, below_findings, verdicts_text

    below = below_findings(node.machine, beside)
    for finding in below:
        remedy = finding.remedy.replace("normal FILE", f"normal {shlex.quote(node.file)}")
        yield f"review: {finding.title}; {remedy}"
    if text := verdicts_text(beside):
        yield f"beside other machines {text}{f'. {NO_BASELINE}' if below else ''}"


def checkup_parts(
    found: Checkup, node: Subject, failure: str = "", beside: Sequence[NormalPath] = ()
) -> Iterator[Block]:
    """The status, then why, and the commands that measure on the ``node`` what is not decided;
    ``failure`` says why that was not done here. Drops show what is normal for their link."""
    from waywiser.analysis.comparison.change_texts import (
        change_text,
        detectable_text,
        figures_before_and_now,
        sizes_text,
    )
    from waywiser.analysis.comparison.comparison_text import (
        NOT_DECIDED,
        label,
        to_decide,
    )
    from waywiser.analysis.comparison.path_change import one_value_text
    from waywiser.cli.remeasure import command_parts
    from waywiser.report.parts import Words
    from waywiser.words.same_wording import by_wording
    from waywiser.words.sizes_in_text import with_units

    yield Words(str(found), "lead")
    if found.reasons:
        yield Words(found.tested, indent=2)
    for line in found.reasons[1:]:
        yield Words(line, indent=2)
    if found.undecided or found.comparison.another_machine:
        yield from command_parts(node, found.comparison, "check")
    if failure:
        yield Words(f"it could not be measured again here: {failure}", indent=2)
    if found.drops:
        yield Words("largest drops:", indent=2)
    normal = {path.workload: path for path in beside if path.range is not None}
    for drop in found.drops:
        undecided = drop.verdict == NOT_DECIDED
        has_changed = drop.verdict != "no change"
        loss = detectable_text(
            drop.detectable,
            hides=undecided,
            has_changed=has_changed,
            of_time=drop.size.is_time,
        )
        yield Words(f"{change_text(drop.size)}  {drop.verdict}: {with_units(drop.name)}", indent=4)
        if drop.size.verdict == NOT_DECIDED:
            loss = one_value_text(drop.size)
        before, now = figures_before_and_now(drop.size)
        at = f" at {size}" if (size := sizes_text(drop.size)) else ""
        own = normal.get(drop.size.series)
        usual = f"; {own.verdict_text}" if own is not None else ""
        yield Words(f"{before} before, {now} now{at}; {loss}{usual}", indent=12)
    named = {drop.name for drop in found.drops if drop.verdict == NOT_DECIDED}
    if unclear := [path for path in found.comparison.measured if label(path) in named]:
        yield Words(to_decide(found.comparison, unclear), indent=4)
    for line, _ in by_wording(found.notes):
        yield Words(f"note: {line}", indent=2)
