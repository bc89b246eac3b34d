"""Holds other processes: starts them, talks to them, and ends them in a bounded time.

What may happen here: processes are started, given lines and killed; nothing of them is left.

Types to know:

- `ChildProcess`: a process of a session of its own, whose output is a log. `RunningProcess` is one
  that something else has started.
- `LineChannel`: one end of a conversation in lines over pipes, a socket or TLS; each line is a
  message of a `LineProtocol`, version first. `Listener` takes in who connects.
- `Team`: members that end together. Workers, ranks, launchers and the agents of nodes are such.
- `Deadline`: the time by which something is to be done. It is made once, and passed on.

Never here: what a process measures, or what its messages mean.
"""

from typing import TYPE_CHECKING

from waywiser.words import lazy_root

if TYPE_CHECKING:
    from waywiser.measure.supervise.channel import (
        ChannelClosed,
        LineChannel,
        LineProtocol,
        ProtocolError,
    )
    from waywiser.measure.supervise.deadline import NEVER, Deadline
    from waywiser.measure.supervise.lifeline import die_with, end_now, start_thread
    from waywiser.measure.supervise.listener import (
        GREETING_SECONDS,
        Connection,
        Listen,
        Listener,
        listening_socket,
    )
    from waywiser.measure.supervise.process import ChildProcess, ProcessError, RunningProcess
    from waywiser.measure.supervise.team import Team
else:
    __getattr__ = lazy_root(__name__)
