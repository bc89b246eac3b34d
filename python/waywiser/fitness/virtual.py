"""Checks of what a hypervisor or the capture itself hides."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation


def virtualisation(situation: Situation) -> Iterator[Finding]:
    """A virtual machine, and whether it shows where its GPUs hang."""
    machine = situation.machine
    if machine.virtual and machine.gpus and all(gpu.numa < 0 for gpu in machine.gpus):
        yield Finding(
            "hidden-topology",
            "warning",
            f"{machine.virtual} does not show which memory is local to which GPU, and may hide "
            "sockets",
            evidence=("numa_node is -1 for every GPU",),
            remedy="use measured locality only; virtual CPUs may move between sockets within "
            "seconds",
        )
    elif machine.virtual and not machine.untimed:
        yield Finding(
            "virtualisation",
            "info",
            f"a virtual machine ({machine.virtual}): load of its neighbours is not visible",
            evidence=("the processor's hypervisor flag or the firmware's tables",),
            remedy="",
        )


def simulated(situation: Situation) -> Iterator[Finding]:
    """A simulated machine, whose description is that of the machine of another profile, or an
    emulated one."""
    machine = situation.machine
    if machine.untimed:
        yield Finding(
            "simulated" if machine.simulated else "emulated",
            "warning",
            f"the machine is {machine.untimed}",
            evidence=("the description of the machine in the profile",),
            remedy="name the profile of a real machine",
        )


def topology_notes(situation: Situation) -> Iterator[Finding]:
    """What the topology had to leave out or assume."""
    source = "the capture of this machine" if situation.is_live else "the machine in the profile"
    for note in situation.machine.notes:
        if "must be measured" not in note and "may hide" not in note:
            yield Finding("topology", "info", note, evidence=(source,), remedy="")
