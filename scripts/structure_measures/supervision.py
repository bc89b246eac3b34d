"""The places that supervise processes: that start or signal them, make or cut lines, or read the
clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator

FOLDERS = {"probe", "ranks", "cluster", "supervise"}
"""Packages in which processes talk in lines, and have a time to do it."""

LINE_END = b"\n"

_STARTS = {"Popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"}
_SIGNALS = {"kill", "killpg", "pidfd_send_signal"}
_CLOCK = {"monotonic", "monotonic_ns", "perf_counter"}


def supervised(text: str) -> list[int]:
    """The lines that start a process which goes on, or send one a signal. Signal 0 is none. Calls
    of `subprocess.run` are not counted: they wait for the end."""
    return sorted(node.lineno for node in _calls(text) if _starts(node) or _signals(node))


def _starts(call: _MethodCall) -> bool:
    return call.func.attr in _STARTS and _owner(call.func) in ("subprocess", "os")


def _signals(call: _MethodCall) -> bool:
    return (
        call.func.attr in _SIGNALS
        and _owner(call.func) in ("os", "signal")
        and not any(isinstance(each, ast.Constant) and each.value == 0 for each in call.args[1:])
    )


def line_ends(text: str) -> list[int]:
    """The lines with the bytes of the end of a line, by which lines are made or cut."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value == LINE_END
    )


def clock_readings(text: str) -> list[int]:
    """The lines that read a clock which only goes forward, or pass it on."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in _CLOCK and _owner(node) == "time"
    )


class _MethodCall(ast.Call):
    func: ast.Attribute


def _calls(text: str) -> Iterator[_MethodCall]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node  # type: ignore[misc]


def _owner(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""
