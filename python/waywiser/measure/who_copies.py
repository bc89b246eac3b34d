"""What a survey does to see who makes the copies of its GPUs, before it measures."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import UTC, datetime

import msgspec

from waywiser.machine import Machine
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.who_copies import observed_gpus, observed_transfers
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import observe_copies
from waywiser.profile import WritableProfile
from waywiser.words import Failure, Transfer, WhoCopies


def observe_planned_copies(
    profile: WritableProfile, machine: Machine, plan: Plan, options: ProbeOptions
) -> None:
    """Stores which copies of the planned GPUs need multiprocessors, once for each GPU. A GPU that
    other processes use is left alone: its multiprocessors are theirs too."""
    known = {each.gpu for each in profile.machine.traits.who_copies}
    gpus = [gpu for gpu in observed_gpus(machine, plan.points) if gpu.index not in known]
    for gpu in gpus:
        if gpu.processes:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            why = Failure("skipped", f"other processes use it: {', '.join(gpu.processes)}")
            profile.commit_who_copies(WhoCopies(gpu.index, now, failure=why))
    free = [gpu for gpu in gpus if not gpu.processes]
    others = {gpu.index for gpu in machine.gpus if gpu.processes}
    requests = {gpu.index: _without(observed_transfers(machine, gpu), others) for gpu in free}
    if requests:
        alone = msgspec.structs.replace(options, sides=False, located=())
        observe_copies(requests, machine, alone, profile.commit_who_copies)


def _without(transfers: Sequence[Transfer], gpus: Set[int]) -> tuple[Transfer, ...]:
    """The transfers with none of these GPUs at an end."""
    return tuple(
        each
        for each in transfers
        if not any(place.kind == "gpu" and place.index in gpus for place in each.path.places)
    )
