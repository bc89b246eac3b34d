"""The options of a survey, as the command line and Python have them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from waywiser.plan.preset import Request
from waywiser.profile import Profile
from waywiser.profile.output_path import require_profile_name
from waywiser.scope import ALL, Wishes
from waywiser.survey_run import SurveyError, commission_of
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

    @property
    def request(self) -> Request:
        """What to plan. Raises `SurveyError`."""
        usual = Request()
        return Request(
            preset=self.preset or usual.preset,
            only=self.only,
            workloads=self.workloads,
            sizes=self.sizes or usual.sizes,
            memory_bytes=self.wishes.memory_bytes,
            seed=usual.seed if self.seed is None else self.seed,
            deadline_seconds=self._deadline_seconds,
        )

    @property
    def wishes(self) -> Wishes:
        """What of the machine to measure. Raises `SurveyError`."""
        return Wishes(
            self.gpus or ALL,
            self.share,
            self._memory_bytes,
            files=tuple(map(os.path.abspath, self.files)),
            scratch="" if self.no_scratch else os.path.abspath(self._scratch_folder),
            scratch_asked=self.scratch is not None,
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
            return Wishes().memory_bytes
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
        request, asked = commission.request, self.request
        wishes, wanted = commission.wishes, self.wishes
        agreement = {
            "--preset": self.preset is None or asked.preset == request.preset,
            "--only": not self.only or asked.only == request.only,
            "--workload": not self.workloads or asked.workloads == request.workloads,
            "--sizes": self.sizes is None or asked.sizes == request.sizes,
            "--deadline": self.deadline is None
            or asked.deadline_seconds == request.deadline_seconds,
            "--gpus": self.gpus is None or wanted.gpus == wishes.gpus,
            "--expect-gpus": self.expect_gpus <= gpus,
            "--memory": self.memory is None or wanted.memory_bytes == wishes.memory_bytes,
            "--share": not self.share or wishes.share,
            "--seed": self.seed is None or asked.seed == request.seed,
            "--file": not self.files or wanted.files == wishes.files,
            "--scratch": self.scratch is None or wanted.scratch == wishes.scratch,
            "--no-scratch": not self.no_scratch or not wishes.scratch,
        }
        if differing := [name for name, agrees in agreement.items() if not agrees]:
            raise SurveyError(
                f"--resume goes on with the plan in the profile, which has another {differing[0]}",
                where=str(file),
                remedy="leave it out, or survey into a new file",
            )
