"""Runs tests between the nodes of a cluster, and survives their losses.

What may happen here: a coordinator admits one agent per node, agents start workers, rounds of tests
run by a transport, and each finished test is stored at once.

Types to know:

- `Coordinator`: the agents that joined, and what they are asked to do.
- `Transport`: runs the tests of a round side by side, by MPI or by NCCL.

Its four packages import one another in this order only: `surveys`, `transports`, `node`,
`connection`. The options of the verbs are beside them, since the help needs nothing else.

Never here: a decision which node is slow or what to test next (`analysis.cluster`); the launch of
anything on another node, which is the business of the site (Slurm, an MPI launcher, Kubernetes).
"""
