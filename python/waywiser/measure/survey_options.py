"""The options of a survey, as the command line and Python have them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from waywiser.measure.plan.preset import Request
from waywiser.measure.scope import ALL, MachineSelection
from waywiser.measure.survey_run import SurveyError, commission_of
from waywiser.profile import Profile
from waywiser.profile.output_file import require_profile_name
from waywiser.words import WordError, parse_bytes

LEAST_SECONDS = 1.0
"""The shortest deadline."""


@dataclass(frozen=True)
class SurveyOptions:
    """Options as they were given; None for what was not given."""

    output: str | None = None
    preset: str | None = None
    only: tuple[str, ...] = ()
    sizes: str | None = None
    deadline: float | None = None
    gpus: str | None = None
    expect_gpus: int = 0
    memory: str | None = None
    share: bool = False
    seed: int | None = None
    files: tuple[str, ...] = ()
    scratch: str | None = None
    no_scratch: bool = False
    workloads: tuple[str, ...] = ()
    resume: bool = False
    model: bool = False

    @property
    def request(self) -> Request:
        """What to plan. Raises `SurveyError`."""
        usual = Request()
        return Request(
            preset=self.preset or usual.preset,
            only=self.only,
            workloads=self.workloads,
            sizes=self.sizes or usual.sizes,
            memory_bytes=self.selection.memory_bytes,
            seed=usual.seed if self.seed is None else self.seed,
            deadline_seconds=self._deadline_seconds,
            model=self.model,
        )

    @property
    def selection(self) -> MachineSelection:
        """What of the machine to measure. Raises `SurveyError`."""
        return MachineSelection(
            self.gpus or ALL,
            self.share,
            self._memory_bytes,
            files=tuple(map(os.path.abspath, self.files)),
            scratch="" if self.no_scratch else os.path.abspath(self._scratch_folder),
            scratch_named=self.scratch is not None,
        )

    @property
    def _deadline_seconds(self) -> float:
        if self.deadline is None:
            return Request().deadline_seconds
        if not (math.isfinite(self.deadline) and self.deadline >= LEAST_SECONDS):
            raise SurveyError(
                f"--deadline {self.deadline:g} is not a number of seconds from 1",
                remedy="write --deadline 180",
            )
        return self.deadline

    @property
    def _memory_bytes(self) -> int:
        if not self.memory:
            return MachineSelection().memory_bytes
        try:
            found = parse_bytes(self.memory)
        except WordError as error:
            raise SurveyError(f"--memory {error.what}", remedy=error.remedy) from error
        if not found:
            raise SurveyError(
                f"--memory {self.memory} leaves no memory for buffers", remedy="write --memory 4GiB"
            )
        return found

    @property
    def _scratch_folder(self) -> str:
        """The folder of scratch files, by default that of the profile."""
        return self.scratch or os.path.dirname(self.output or "") or "."

    def require_sense(self) -> None:
        """Raises `SurveyError` for options that exclude each other, `NotWritable` for an output
        that is not the name of a profile."""
        if self.scratch and self.no_scratch:
            raise SurveyError(
                "--scratch and --no-scratch say opposite things", remedy="leave one out"
            )
        if self.resume and self.output is None:
            raise SurveyError("--resume needs the profile", remedy="name it with -o FILE")
        if self.output is not None and not os.path.lexists(self.output):
            require_profile_name(Path(self.output))

    def require_agreement(self, file: Path) -> None:
        """Raises `SurveyError` for an option that differs from the plan in the profile: `--resume`
        goes on with that plan. Options that were not given agree."""
        with Profile.open(file) as profile:
            commission, gpus = commission_of(profile), len(profile.machine.gpus)
        request, given = commission.request, self.request
        selection, selected = commission.selection, self.selection
        agreement = {
            "--preset": self.preset is None or given.preset == request.preset,
            "--only": not self.only or given.only == request.only,
            "--workload": not self.workloads or given.workloads == request.workloads,
            "--sizes": self.sizes is None or given.sizes == request.sizes,
            "--deadline": self.deadline is None
            or given.deadline_seconds == request.deadline_seconds,
            "--gpus": self.gpus is None or selected.gpus == selection.gpus,
            "--expect-gpus": self.expect_gpus <= gpus,
            "--memory": self.memory is None or selected.memory_bytes == selection.memory_bytes,
            "--share": not self.share or selection.share,
            "--seed": self.seed is None or given.seed == request.seed,
            "--file": not self.files or selected.files == selection.files,
            "--scratch": self.scratch is None or selected.scratch == selection.scratch,
            "--model": not self.model or request.model,
            "--no-scratch": not self.no_scratch or not selection.scratch,
        }
        if differing := [name for name, agrees in agreement.items() if not agrees]:
            raise SurveyError(
                f"--resume goes on with the plan in the profile, which has another {differing[0]}",
                where=str(file),
                remedy="leave it out, or survey into a new file",
            )
