"""Where the answer of a check goes beside the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.profile import require_one_output, require_output, write_output

if TYPE_CHECKING:
    from waywiser.analysis.health.health_check import HealthCheck
    from waywiser.curves import Subject
    from waywiser.render.parts import Block


class Outputs(msgspec.Struct, frozen=True):
    """The files that are written beside the answer."""

    page: str
    prometheus: str
    junit: str

    def require(self) -> None:
        """Raises, before long work, what `write_output` would raise after it."""
        require_one_output(page=self.page, prometheus=self.prometheus, junit=self.junit)
        if self.page:
            from waywiser.notebook.pages import require_page

            require_page(self.page)
        if self.prometheus:
            from waywiser.exchange.exports.prometheus import METRICS_FILE

            require_output(self.prometheus, METRICS_FILE)
        if self.junit:
            from waywiser.exchange.exports.junit import CHECK_JUNIT

            require_output(self.junit, CHECK_JUNIT)

    def write(
        self, found: HealthCheck, node: Subject | None = None, details: Sequence[Block] = ()
    ) -> tuple[str, ...]:
        """Writes the files that are named, and returns what a command says then; ``node`` is the
        one profile that was checked, ``details`` what its baseline shows."""
        if self.prometheus:
            from waywiser.exchange.exports.prometheus import METRICS_FILE, health_metrics

            write_output(self.prometheus, health_metrics(found, node).encode(), METRICS_FILE)
        if self.junit:
            from waywiser.exchange.exports.junit import CHECK_JUNIT, check_junit

            write_output(self.junit, check_junit(found), CHECK_JUNIT)
        if self.page and found.hosts:
            from waywiser.notebook.pages import write_page
            from waywiser.render.health import health_page
            from waywiser.render.page import page as made

            return write_page(self.page, made(health_page(found, details)).encode())
        return ()


def health_document(found: HealthCheck, seen: Mapping[str, str] = {}) -> dict[str, Any]:
    """The JSON form; ``seen`` are known causes of a low bandwidth that the profile shows."""
    from waywiser.curves import path_document

    others = [path_document(path) for path in found.other_machines]
    baseline = None if found.baseline is None else found.baseline.for_json()
    whole = msgspec.structs.asdict(found)
    return {**whole, "baseline": baseline, "other_machines": others, "seen": seen}
