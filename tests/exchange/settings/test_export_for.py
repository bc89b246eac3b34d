"""``waywiser export FILE --for PROGRAM``."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiles
from exchange.settings import ucx_grammar
from exchange.settings.exported import CHECK, H100
from kept import unpacked
from waywiser.cli import run
from waywiser.cli.export import export
from waywiser.exchange.settings.consumers import CONSUMERS
from waywiser.exchange.settings.origin import SettingsError
from waywiser.notebook.export_call import ExportError
from waywiser.profile import ExistingFile


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(unpacked(H100, tmp_path_factory.mktemp("for") / "node.wwp"))


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_each_consumer_gets_a_file(survey: str, consumer: str, tmp_path: Path) -> None:
    out = tmp_path / "settings"
    export([survey], output=str(out), for_=consumer)
    assert "waywiser" in out.read_text()
    with pytest.raises(ExistingFile):
        export([survey], output=str(out), for_=consumer)


def test_settings_go_to_a_pipe(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", survey, "--for", "ucx"]) == 0
    assert "UCX_CUDA_COPY_BW" in ucx_grammar.lines(capsys.readouterr().out)


def test_a_piece_is_a_size(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", survey, "--for", "sglang", "--piece", "4KiB"]) == 0
    assert "hicache-io-backend: kernel\n" in capsys.readouterr().out


def test_options_that_do_not_fit_are_errors(survey: str) -> None:
    with pytest.raises(ExportError, match="--for does not know 'ucc'"):
        export([survey], for_="ucc")
    with pytest.raises(SettingsError, match="--piece is not for ucx"):
        export([survey], for_="ucx", piece="4KiB")
    with pytest.raises(ExportError, match="--piece 0 is no number of bytes"):
        export([survey], for_="sglang", piece="0")
    with pytest.raises(ExportError, match="--for ucx has one form"):
        export([survey], for_="ucx", format="csv")
    with pytest.raises(ExportError, match="--for ucx has one form"):
        export([survey], for_="ucx", summary=True)
    with pytest.raises(ExportError, match="--for mpich has two forms"):
        export([survey], for_="mpich", format="csv")
    for consumer in ("waywiser", "model", "slurm"):
        with pytest.raises(ExportError, match="--piece has no effect here: it is for --for sglang"):
            export([survey], for_=consumer, piece="4KiB")
    with pytest.raises(ExportError, match="--piece has no effect here: it is for --for sglang"):
        export([survey], piece="4KiB")


def test_nothing_is_written_if_nothing_was_measured(tmp_path: Path) -> None:
    file = unpacked(CHECK, tmp_path / "check.wwp")
    with pytest.raises(SettingsError, match="no lists of pieces"):
        export([str(file)], output=str(tmp_path / "out"), for_="kv-offload")
    assert not (tmp_path / "out").exists()


def test_a_made_up_profile_has_settings_for_ucx(tmp_path: Path) -> None:
    out = tmp_path / "ucx.conf"
    export([str(profiles.write(tmp_path / "a.wwp"))], output=str(out), for_="ucx")
    assert "UCX_CUDA_IPC_BW" in ucx_grammar.lines(out.read_text())
