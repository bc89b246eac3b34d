"""The command with a lock of its own, so that surveys of this host, and other runs of these tests,
may go on beside it."""

from __future__ import annotations

SCRIPT = """
import os, sys
from waywiser import cli, survey
from waywiser.probe.guest import SurveyLock
survey.SurveyLock = lambda: SurveyLock(f"waywiser-test-{os.getppid()}")
sys.exit(cli.run(sys.argv[1:]))
"""
"""For ``python -c``: the lock is of whoever started it."""
