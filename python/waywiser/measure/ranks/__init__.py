"""Ranks: processes that an MPI launcher starts, and the MPI library that connects them.

What may happen here: the library of this machine is found, its bridge is compiled into the user's
cache, and a launch is started, watched and ended so that nothing is left behind.

Types to know: `MpiLibrary`, what was found and compiled; `Launch`, ranks that connected back.

Never here: MPI itself, which only ranks load (`native/src/mpi/bridge.c`).
"""
