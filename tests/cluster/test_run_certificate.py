"""The certificate of a run."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from waywiser.cluster.connection.run_certificate import CertificateError, RunCertificate


def test_each_run_has_its_own() -> None:
    assert RunCertificate().fingerprint != RunCertificate().fingerprint


def test_its_key_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir("/proc/self/fd"))
    RunCertificate()
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/proc/self/fd")) == before


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: Callable[..., Any] = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError("no module of that name")
        return imported(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CertificateError, match="pip install cryptography"):
        RunCertificate()


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("waywiser.cli.cluster", "ssl"),
        ("waywiser.cluster.node.node_agent", "cryptography"),
        ("waywiser.cluster.connection.coordinator", "cryptography"),
    ],
)
def test_it_costs_no_time_where_it_is_not_used(module: str, unused: str) -> None:
    code = f"import sys, {module}; sys.exit({unused!r} in sys.modules)"
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0
