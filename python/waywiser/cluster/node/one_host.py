"""Starts a rank as one of several nodes of the same host:

    mpiexec -n {ranks} python -m waywiser.cluster.node.one_host {hostfile} {command}

Nodes are agents; several may be on one host, each with GPUs of its own. A launcher knows one host
only. The ranks of a node follow each other, as in the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

from waywiser.measure.probe.environment import NODE_VARIABLE
from waywiser.measure.ranks.rank import stated_rank

_LINE = re.compile(r"(\S+?)(?::| slots=)([0-9]+)")


def nodes_of_ranks(lines: Iterable[str]) -> list[str]:
    """The node of each rank, by a hostfile of a launch."""
    found = (_LINE.fullmatch(line.strip()) for line in lines)
    return [match[1] for match in found if match for _ in range(int(match[2]))]


def main(words: Sequence[str]) -> None:
    """Becomes the command."""
    hostfile, *command = words
    with open(hostfile) as file:
        names = nodes_of_ranks(file)
    os.environ[NODE_VARIABLE] = names[stated_rank()]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
