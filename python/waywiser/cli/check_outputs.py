"""Where the answer of a check goes beside the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.cli.app import print_result
from waywiser.cli.streams import put_line
from waywiser.profile import STANDARD_OUTPUT, require_one_output, require_output, write_output
from waywiser.words import compress_hosts

if TYPE_CHECKING:
    from waywiser.analysis.health.health_check import HealthCheck
    from waywiser.curves import Subject
    from waywiser.report.parts import Block


class Outputs(msgspec.Struct, frozen=True):
    """The files and forms that the command line names."""

    json: bool
    page: str
    prometheus: str
    junit: str
    suspects: bool

    @property
    def use_standard_output(self) -> bool:
        """Whether a file goes there, so that the text goes to standard error."""
        return STANDARD_OUTPUT in (self.page, self.prometheus, self.junit)

    def require(self) -> None:
        """Raises, before long work, what `write_output` would raise after it."""
        require_one_output(
            json=self.json,
            page=self.page,
            prometheus=self.prometheus,
            junit=self.junit,
            suspects=self.suspects,
        )
        if self.page:
            from waywiser.cli.pages import require_page

            require_page(self.page)
        if self.prometheus:
            from waywiser.exchange.exports.prometheus import METRICS_FILE

            require_output(self.prometheus, METRICS_FILE)
        if self.junit:
            from waywiser.exchange.exports.junit import CHECK_JUNIT

            require_output(self.junit, CHECK_JUNIT)

    def write(
        self, found: HealthCheck, node: Subject | None = None, details: Sequence[Block] = ()
    ) -> None:
        """Writes the files that are named; ``node`` is the one profile that was checked,
        ``details`` what its baseline shows."""
        if self.prometheus:
            from waywiser.exchange.exports.prometheus import METRICS_FILE, health_metrics

            write_output(self.prometheus, health_metrics(found, node).encode(), METRICS_FILE)
        if self.junit:
            from waywiser.exchange.exports.junit import CHECK_JUNIT, check_junit

            write_output(self.junit, check_junit(found), CHECK_JUNIT)
        if self.page and found.hosts:
            from waywiser.cli.pages import write_page
            from waywiser.report.health import health_page
            from waywiser.report.page import page as made

            write_page(self.page, made(health_page(found, details)).encode())

    def show(
        self,
        found: HealthCheck,
        node: Subject | None = None,
        details: Sequence[Block] = (),
        *,
        everything: bool = False,
    ) -> None:
        """Prints the answer: as JSON or text, or with ``suspects`` the hosts to measure again as a
        host list for Slurm, nothing if there are none."""
        if self.suspects:
            if found.suspects:
                put_line(compress_hosts(found.suspects))
            return
        from waywiser.analysis.comparison.seen_causes import seen_causes
        from waywiser.report.views.health import health_parts

        is_below = any(path.verdict == "below" for path in found.other_machines)
        seen = seen_causes(node) if node is not None and is_below else {}
        parts = health_parts(found, details, everything=everything, seen=seen)
        document = health_document(found, seen)
        print_result(document, parts, json=self.json, to_errors=self.use_standard_output)


def health_document(found: HealthCheck, seen: Mapping[str, str] = {}) -> dict[str, Any]:
    """The JSON form; ``seen`` are known causes of a low bandwidth that the profile shows."""
    from waywiser.curves import path_document

    others = [path_document(path) for path in found.other_machines]
    baseline = None if found.baseline is None else found.baseline.for_json()
    whole = msgspec.structs.asdict(found)
    return {**whole, "baseline": baseline, "other_machines": others, "seen": seen}
