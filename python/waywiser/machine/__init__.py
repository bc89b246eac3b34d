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
