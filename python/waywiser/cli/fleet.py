"""``waywiser fleet``: which nodes differ from their peers?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from waywiser.cli.app import USUAL_THRESHOLD, ExpectedGpus, Json, Threshold, parse_fraction
from waywiser.cli.result import CLEAN, FINDING, INCONCLUSIVE, print_result
from waywiser.cli.unread_files import none_read
from waywiser.cli.verb import verb

if TYPE_CHECKING:
    from waywiser.analysis.comparison.fleet import Fleet


@verb("Find the nodes that differ from others of their kind.")
def fleet(
    files: list[str],
    threshold: Threshold = USUAL_THRESHOLD,
    expect_gpus: ExpectedGpus = 0,
    json: Json = False,
    page: str = "",
    prometheus: str = "",
    junit: str = "",
) -> int:
    """Find the nodes that differ from the others of their hardware class, the bad ones first, by
    path and device.

    FILE...: Profiles of many nodes, one or more of each; or their folder.
    --page FILE: Also write one HTML page that needs no network; - for standard output.
    --prometheus FILE: Also write metrics of all hosts for the textfile collector of Prometheus; -
        for standard output.
    --junit FILE: Also write JUnit XML with a test for each host; - for standard output.

    waywiser fleet nodes
        find the nodes that differ from the others
    waywiser fleet nodes --page fleet.html
        also write a page of figures
    """
    from waywiser.cli.pages import require_page, write_page
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        require_one_output,
        require_output,
        write_output,
    )
    from waywiser.report.views.fleet import fleet_parts

    limit = parse_fraction(threshold, "threshold")
    require_one_output(json=json, page=page, prometheus=prometheus, junit=junit)
    require_page(page)
    if prometheus:
        from waywiser.exchange.exports.prometheus_nodes import FLEET_METRICS, fleet_exposition

        require_output(prometheus, FLEET_METRICS)
    if junit:
        from waywiser.exchange.exports.junit_nodes import FLEET_JUNIT, fleet_junit

        require_output(junit, FLEET_JUNIT)
    found = read_fleet(files, limit, expect_gpus)
    if prometheus:
        write_output(prometheus, fleet_exposition(found).encode(), FLEET_METRICS)
    if junit:
        write_output(junit, fleet_junit(found), FLEET_JUNIT)
    to_errors = STANDARD_OUTPUT in (page, prometheus, junit)
    if found.hosts or json:
        print_result(found, fleet_parts(found), json=json, to_errors=to_errors)
    if page:
        from waywiser.report.fleet import fleet_document
        from waywiser.report.page import page as made

        write_page(page, made(fleet_document(found)).encode())
    if not found.hosts:
        raise none_read(found.unreadable, "no host to compare")
    if found.of("bad", "suspect"):
        return FINDING
    return CLEAN if found.of("fine") else INCONCLUSIVE


def read_fleet(files: Sequence[str], threshold: float, expected_gpus: int = 0) -> Fleet:
    """Assesses the readable profiles; the others are listed with the reason. A folder stands
    for the profiles in it."""
    from waywiser.analysis.comparison.fleet import assess_fleet
    from waywiser.analysis.comparison.own_findings import own_findings
    from waywiser.analysis.comparison.read_subject import read_subject
    from waywiser.analysis.history.last_change import with_last_changes
    from waywiser.profile import ProfileError
    from waywiser.profile.file_name import why_no_profile

    nodes = []
    unreadable: dict[str, str] = {}
    for file in dict.fromkeys(name for each in files for name in _profiles_of(each)):
        try:
            node = read_subject(file, links=True)
            nodes.append(msgspec.structs.replace(node, own_findings=own_findings(node)))
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = why_no_profile(file) if is_folder else error.what
    found = assess_fleet(nodes, threshold, unreadable, expected_gpus)
    return with_last_changes(found, nodes)


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none; a file is its own profile."""
    from waywiser.profile.file_name import profiles_in

    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return profiles_in(Path(name)) or [name]
