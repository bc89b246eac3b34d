"""What no survey can have stored is distinguished from what one can."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace
from tests import profiles

from waywiser.profile.validation import InvalidRecord, require_valid
from waywiser.words import Operation, Place, Transfer, Workload
from waywiser.words.records import BlockLatencies, GpuHealth, Health, Locality, Samples

H2D = Transfer.parse(f"{profiles.H2D} of 64KiB")
VISIT = next(profiles.visits())
LOCALITY = Locality(
    1, "2026-11-20T12:00:00+00:00", "pinned@numa:0", gpus=(0, 1), cpus=(0,), sweeps=(0.1,),
    blocks=(BlockLatencies("verified", ((5e-6, 6e-6),), ((1e-7,),)),),
)  # fmt: skip


def test_what_surveys_store_is_valid() -> None:
    require_valid(profiles.machine())
    require_valid(LOCALITY)
    require_valid(Workload(operation=Operation("launch", Place("gpu", 0))))
    require_valid({"anything": "else"})
    for visit in profiles.visits():
        require_valid(visit)
        require_valid(visit.workload)


@pytest.mark.parametrize(
    "samples",
    [
        Samples(span=(math.nan,)),
        Samples(span=(1.0, math.inf)),
        Samples(span=(1.0,), host=(1e300,)),
        Samples(span=(1.0,), repetitions=(0,)),
        Samples(span=(1.0,), flags=(-1,)),
        Samples(span=(1.0,), transfers=((-math.inf,),)),
    ],
)
def test_samples_of_no_time_are_not(samples: Samples) -> None:
    with pytest.raises(InvalidRecord):
        require_valid(samples)


def test_a_gap_in_what_applications_see_and_a_slope_below_zero_are() -> None:
    require_valid(Samples(span=(-1e-9, 2e-9), host=(math.nan, 1e-6)))


def _block(**changes: Any) -> Locality:
    return replace(LOCALITY, blocks=(replace(LOCALITY.blocks[0], **changes),))


@pytest.mark.parametrize(
    "value",
    [
        Workload(),
        Workload((H2D,), operation=Operation("launch", Place("gpu", 0))),
        Workload((replace(H2D, bytes=0),)),
        Workload((replace(H2D, parameters={"stride": "²"}),)),
        Workload(operation=Operation("launch", Place("gpu", -1))),
        _block(copies=((5e-6,),)),
        _block(copies=((5e-6, 0.0),)),
        _block(reads=((1e-7, 1e-7),)),
        replace(LOCALITY, blocks=(*LOCALITY.blocks, BlockLatencies("verified"))),
        replace(LOCALITY, started="noon"),
        replace(profiles.machine(), gpus=profiles.machine().gpus[:1] * 2),
        Health("", (GpuHealth(0, "", {"ECC corrected": -1}),)),
        replace(VISIT, block=-1),
        replace(VISIT, setup_seconds=math.nan),
    ],
)
def test_what_nobody_measured_is_not(value: object) -> None:
    with pytest.raises(InvalidRecord):
        require_valid(value)
