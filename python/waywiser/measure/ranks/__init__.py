"""Ranks: processes that an MPI launcher starts, and the MPI library that connects them.

What may happen here: the library of this machine is found, its bridge is compiled into the user's
cache, and a launch is started, watched and ended so that nothing is left behind.

Types to know:

- `MpiLibrary`: what was found and compiled.
- `Launch`: ranks that connected back; no process, shared memory or file of it is left in the end.
- `RankTeams` (`ranks.world`): the ranks as workers of a survey, one launch for each group. A rank
  (`ranks.rank_worker`) speaks the protocol of workers over its socket, and sleeps outside of MPI
  while it is in no workload.

A loss costs the visit and the launch. The rank to blame is that whose socket closed first, or that
does not answer a ping, or that is at work while the others wait for it in MPI.

Never here: MPI itself, which only ranks load (`native/src/mpi/bridge.c`).
"""
