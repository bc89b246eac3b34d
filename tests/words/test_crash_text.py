"""What is kept of the lines that a process printed when a signal ended it."""

from __future__ import annotations

from waywiser.measure.supervise.process import Log
from waywiser.words.crash_text import without_addresses


def trace(process: int, base: int) -> str:
    """What Open MPI prints."""
    frames = "".join(
        f"[vm:{process:05}] [{n:2}] /lib/libc.so.6(+0x{n + 40:x})[0x{base + n:x}]\n"
        for n in range(30)
    )
    return (
        f"[vm:{process:05}] *** Process received signal ***\n"
        f"[vm:{process:05}] Signal: Segmentation fault (11)\n"
        f"[vm:{process:05}] Signal code: Invalid permissions (2)\n"
        f"[vm:{process:05}] Failing at address: 0x{base:x}\n"
        f"{frames}[vm:{process:05}] *** End of error message ***\n"
    )


def logged(text: str) -> str:
    log = Log()
    log.add(text.encode())
    return log.tail()


def test_the_signal_and_the_top_frames_are_kept() -> None:
    frames = " | ".join(f"[{n:2}] /lib/libc.so.6(+0x{n + 40:x})" for n in range(3))
    said = f"Signal: Segmentation fault (11) | {frames}"
    assert logged(f"starting\n{trace(7, 4096)}") == said
    assert logged("".join(trace(process, 4096 * process) for process in range(1, 17))) == said


def test_what_names_no_signal_is_as_it_was_printed() -> None:
    assert logged("a\nb [12]\nerror 0x1f\n[3] of 4\n") == "a | b [12] | error 0x1f | [3] of 4"


RULE = "-" * 74
CLOSING = f"""{RULE}
prterun has exited due to process rank 1 with PID 0 on node vm calling
"abort". This may have caused other processes to be terminated.
{RULE}
"""


def test_a_message_of_mpi_is_its_first_paragraph() -> None:
    message = (
        f"{RULE}\nNo components were able to be opened in the pml framework.\n\n"
        "This typically means that either no components of this type were\ninstalled.\n\n"
        f"  Host:      vm\n  Framework: pml\n{RULE}\n"
    )
    said = "No components were able to be opened in the pml framework."
    assert logged(message + CLOSING) == said
    assert logged(f"starting\n{message}{message}ended\n{CLOSING}") == f"starting | {said} | ended"


def test_what_a_launcher_prints_last_does_not_hide_the_reason() -> None:
    closing = f"{'=' * 60}\n=   BAD TERMINATION OF ONE OF YOUR PROCESSES\n=   EXIT CODE: 3\n"
    assert logged(f"no such device\n{closing}{'=' * 60}\n") == "no such device"
    assert logged(f"no such device\n{CLOSING}") == "no such device"
    assert "prterun has exited" in logged(CLOSING)  # nothing else is known
    assert logged(f"one\n{RULE}\ntwo\n\nthree\n") == "one | two | three"


def test_reasons_that_differ_in_addresses_alone_become_one() -> None:
    def reason(process: int, base: int) -> str:
        return "rank 0 ended; it printed: " + " | ".join(trace(process, base).splitlines()[-4:])

    assert without_addresses(reason(7, 4096)) == without_addresses(reason(8, 81920))
    assert without_addresses(reason(7, 4096)) == "rank 0 ended"
    known = "rank 0 ended; it printed: Signal: Bus error (7) | [ 0] libc(+0x28)"
    assert without_addresses(known) == known
    assert without_addresses("SIGSEGV at 0x1f") == "SIGSEGV at 0x1f"
