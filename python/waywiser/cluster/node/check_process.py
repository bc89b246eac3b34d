"""The process that surveys a node by itself; it ends when its agent does.

    python -m waywiser.cluster.node.check_process --file FILE --parent PID
        [--preset check] [--gpus 0,1] [--only PATH]...

If another survey runs on this host, as that of another agent there, it waits for its end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.preset import CHECK, Request
from waywiser.measure.probe.sharing import SharingError
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.scope import ALL, MachineSelection
from waywiser.measure.supervise import Deadline, die_with
from waywiser.measure.survey_run import prepare, require_free_host, start
from waywiser.words import Visit, WaywiserError

_LOOK_SECONDS = 0.5


class _Nobody:
    """A `waywiser.measure.survey_run.Watcher` that shows nothing."""

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        pass

    def visit(self, visit: Visit) -> None:
        pass


def survey_node(file: Path, request: Request, gpus: str, seconds: float) -> None:
    """Surveys this node into a new profile. Waits at most so long for other surveys of this host.
    Raises `WaywiserError`."""
    deadline = Deadline(seconds)
    while True:
        try:
            require_free_host()
            survey = prepare(request, MachineSelection(gpus))
            start(survey, file, _Nobody(), command=("waywiser", "cluster", "join"))
            return
        except SharingError:
            if deadline.is_over:
                raise
        time.sleep(_LOOK_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    words = argparse.ArgumentParser(description="surveys this node for its agent")
    words.add_argument("--file", type=Path, required=True)
    words.add_argument("--parent", type=int, default=0, help="end when this process does")
    words.add_argument("--preset", default=CHECK.name)
    words.add_argument("--gpus", default=ALL)
    words.add_argument("--only", action="append", default=[])
    words.add_argument("--seconds", type=float, default=600.0)
    given = words.parse_args(arguments)
    die_with(given.parent)
    try:
        request = Request(preset=given.preset, only=tuple(given.only))
        survey_node(given.file, request, given.gpus, given.seconds)
    except WaywiserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
