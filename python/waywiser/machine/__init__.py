"""What the machine is: places, links and their peaks; and the door to the native library.

    capture -> machine -> bounds

What may happen here: a machine is read from a capture (hwloc XML and NVML as JSON), live or from a
file, so that captured machines are test data.

Types to know:

- `Machine` (`machine.machine`): NUMA nodes, GPUs, files and links, as frozen values.
- `Traits` (`machine.traits`): what readers must know of executors and memories. They are stored
  with the machine of a profile, so that statistics load no native library and know executors that
  another version registered; ``traits.json`` has what this version declares, for files without
  them.
- `Catalogue` (`machine.catalogue`): what can be done on a machine, from the native registry.

`machine.native.load` loads the native library once, when it is needed. `machine.routes` works out
links from the trait ``route``; a test compares it with the registry. A transfer is shown by the
call with which a program makes it (`machine.calls`).

Never here: a measurement, or a change of the machine.
"""

from typing import TYPE_CHECKING

from waywiser.words import lazy_root

if TYPE_CHECKING:
    from waywiser.machine.assemble import machine_from
    from waywiser.machine.bounds import Bound, bound
    from waywiser.machine.calls import call_text
    from waywiser.machine.capture import capture_live, load_capture
    from waywiser.machine.catalogue import (
        Catalogue,
        ExecutorKind,
        Footprint,
        MemoryKind,
        Parameter,
        Requirements,
        footprint,
    )
    from waywiser.machine.counters import LinkCounters
    from waywiser.machine.cpu_load import CpuLoad, load_of, present_load
    from waywiser.machine.interfaces import find_interfaces
    from waywiser.machine.machine import (
        UNKNOWN_CPU,
        Gpu,
        Machine,
        NumaNode,
        Package,
        PlacedRank,
        machine_line,
        may_be_same,
        require_real,
    )
    from waywiser.machine.native_words import native_machine, native_memory
    from waywiser.machine.nccl_library import find_nccl
    from waywiser.machine.nvlink import lanes_text
    from waywiser.machine.rank_limits import TASKS_REMEDY
    from waywiser.machine.ranks import (
        crowd_note,
        launch_options,
        memories_of,
        placement_text,
        placements,
        task_settings,
    )
    from waywiser.machine.system_files import SystemFiles, format_list
    from waywiser.machine.telemetry import GpuTelemetry
    from waywiser.machine.traits import DECLARED, PathClass, Traits, declared_names
    from waywiser.machine.unusable_gpus import LOST_REMEDY, lost_text, unusable_notes
else:
    __getattr__ = lazy_root(__name__)
