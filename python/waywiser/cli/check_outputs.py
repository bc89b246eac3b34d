"""Where the answer of a check goes beside the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.profile.output_file import (
    STANDARD_OUTPUT,
    require_one_output,
    require_output,
    write_output,
)

if TYPE_CHECKING:
    from waywiser.analysis.health.health import HealthCheck
    from waywiser.curves.subject import Subject
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
        """Asks, before long work, whether all could be written. Raises as `write_output` does."""
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

    def print_suspects(self, found: HealthCheck) -> None:
        """A host list as Slurm takes it; nothing if nothing is suspected."""
        import typer

        from waywiser.words.host_list import compress_hosts

        if hosts := found.suspects:
            typer.echo(compress_hosts(hosts))


def health_document(found: HealthCheck, seen: Mapping[str, str] = {}) -> dict[str, Any]:
    """The JSON form; ``seen`` are known causes of a low bandwidth that the profile shows."""
    from waywiser.curves.normal import path_document

    parts = {name: getattr(found, name) for name in found.__struct_fields__}
    others = [path_document(path) for path in found.other_machines]
    return {**parts, "other_machines": others, "seen": seen}
