"""Each verb is a function of the package with its name and its options."""

from __future__ import annotations

import inspect
import io
import json
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import waywiser
from api import opened
from kept import RESULTS, unpacked
from verb_functions import python_name
from waywiser.cli import run
from waywiser.cli.call import command
from waywiser.cli.verb_table import VERBS
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.notebook.export_call import ExportError
from waywiser.words.value import json_text

Output = pytest.CaptureFixture[str]

OF_PRINTING = {"--json"}
"""The form of what is printed: `VerbResult.document` is what ``--json`` prints."""
ONLY_PRINTED = {
    "survey": {"--dry-run", "--list", "--normal", "--values", "--all"},
    "cluster show": {"--good-hosts", "--exclude", "--drain"},
}
"""What measures nothing and has no profile as its result, and lines made of the result."""
OF_PYTHON = {"progress"}
"""What replaces the lines that a command prints while it goes on."""


@pytest.mark.parametrize("verb", [each.name for each in VERBS])
def test_a_verb_is_a_function_with_its_options(verb: str) -> None:
    options = {
        each.opts[-1] for each in command().commands[verb].params
        if each.param_type_name == "option"
    }  # fmt: skip
    left = OF_PRINTING | ONLY_PRINTED.get(verb, set())
    assert ONLY_PRINTED.get(verb, set()) <= options
    parameters = inspect.signature(getattr(waywiser, python_name(verb))).parameters
    keywords = {
        name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert keywords - OF_PYTHON == set(map(python_name, options - left))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return opened.unpacked(tmp_path_factory.mktemp("verbs"), "two-h200-check-1")


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packed = RESULTS / "2026-11-24-policy" / "h200-standard.wwp.xz"
    return unpacked(packed, tmp_path_factory.mktemp("standard") / "node.wwp")


COPY = {"path": "h2d pinned gpu:0", "bytes": "64MiB"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda file: waywiser.show(file), "show FILE"),
        (lambda file: waywiser.show(file, only="h2d", all=True), "show FILE --only h2d --all"),
        (lambda file: waywiser.advise(file), "advise FILE"),
        (lambda file: waywiser.advise(file, **COPY), "advise FILE --path 'h2d pinned gpu:0' "
         "--bytes 64MiB"),
        (lambda file: waywiser.advise(file, **COPY, placement=True), "advise FILE --path "
         "'h2d pinned gpu:0' --bytes 64MiB --placement"),
        (lambda file: waywiser.predict(file), "predict FILE"),
        (lambda file: waywiser.predict(file, workload="h2d pinned gpu:0 of 50MiB"),
         "predict FILE -w 'h2d pinned gpu:0 of 50MiB'"),
        (lambda file: waywiser.doctor(file, severity="error"), "doctor FILE --severity error"),
        (lambda file: waywiser.compare(file, file), "compare FILE FILE"),
        (lambda file: waywiser.check(file), "check FILE"),
        (lambda file: waywiser.topology(file), "topology FILE"),
    ],
)  # fmt: skip
def test_a_result_is_what_the_command_prints(
    call: Any, words: str, standard: Path, capsys: Output
) -> None:
    found = call(standard)
    assert isinstance(found, waywiser.VerbResult)
    line = [str(standard) if word == "FILE" else word for word in shlex.split(words)]
    assert run([*line, "--json"]) == found.exit_code
    assert json.loads(capsys.readouterr().out) == json.loads(json_text(found.document))
    assert len(list(found.parts)) > 0 and repr(found)


def test_a_path_has_both_memories_and_another_end_may_be_named(standard: Path) -> None:
    both = waywiser.advise(standard, **COPY).result
    assert str(both.request.source) == "pinned@numa:0"
    other = waywiser.advise(standard, **COPY, from_="pageable@numa:0").result
    assert str(other.request.source) == "pageable@numa:0"
    assert other.request.destination == both.request.destination


def test_a_report_is_its_content_and_a_file(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    found = waywiser.report(file, output=page)
    assert page.read_bytes() == found.result and found.result.startswith(b"<!doctype html>")
    assert found.said[0].startswith(f"waywiser: wrote {page}")
    summary = waywiser.report(file, format="md")
    assert summary.result.startswith(b"# ") and summary.document["output"] == ""
    assert str(summary) == summary.result.decode()
    assert {name for name, _ in waywiser.report(file, figure="list").result}


def test_an_export_is_its_content_a_file_or_a_stream(file: Path, tmp_path: Path) -> None:
    found = waywiser.export(file, format="csv", summary=True)
    text = found.result
    assert text and str(found) == text
    target = tmp_path / "a.csv"
    assert waywiser.export(file, summary=True, output=target).result == ""
    assert target.read_bytes() == text.encode()
    with (tmp_path / "b.csv").open("w", newline="") as stream:
        waywiser.export(file, summary=True, format="csv", output=stream)
    assert (tmp_path / "b.csv").read_bytes() == text.encode()
    with tempfile.NamedTemporaryFile("w+", newline="") as stream:  # no class of `io`
        waywiser.export(file, summary=True, format="csv", output=stream)
        stream.seek(0)
        assert stream.read() == text
    assert json.loads(waywiser.export(file, for_="waywiser").result)["format"]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (io.BytesIO(), "a stream of bytes, not of text"),
        (b"a.csv", "output is of type bytes"),
        (1, "output is of type int"),
    ],
)
def test_an_output_that_takes_no_text_is_an_error(file: Path, output: Any, says: str) -> None:
    with pytest.raises(ExportError, match=says):
        waywiser.export(file, format="csv", output=output)


def test_an_import_is_a_profile(tmp_path: Path) -> None:
    results = Path(__file__).parents[1] / "exchange" / "imports"
    source = next(results.rglob("*nvbandwidth*.json"))
    found = waywiser.import_(source, output=tmp_path / "i.wwp")
    assert found.result.series and found.document["profile"] == str(tmp_path / "i.wwp")
    assert len(waywiser.open(found.document["profile"]).series) == found.result.series


def test_a_trace_has_the_exit_code_of_its_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from waywiser.measure.trace import run as traced_run

    library = tmp_path / "tracer.so"
    library.touch()
    monkeypatch.setattr(traced_run, "LIBRARY", library)
    found = waywiser.trace([sys.executable, "-c", "raise SystemExit(4)"])
    assert found.exit_code == found.result.exit_code == 4
    with pytest.raises(waywiser.WaywiserError, match="no program is named"):
        waywiser.trace()


def test_a_simulation_is_a_profile(standard: Path, tmp_path: Path) -> None:
    steps: list[object] = []
    (made,) = waywiser.simulate(
        standard, output=tmp_path / "s.wwp", preset="check", set="gpus=2", progress=steps.append
    )
    assert len(waywiser.open(made).machine.gpus) == 2 and steps


def test_what_a_search_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripted_host import scripted_host

    with scripted_host(monkeypatch):
        found = waywiser.tune(tmp_path / "t.wwp", only="h2h", sizes="1MiB", dry_run=True)
    assert found.document["targets"] and "expected" in repr(found)
    assert not (tmp_path / "t.wwp").exists()


def test_a_cluster_is_planned_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = waywiser.cluster_survey(nodes=3, output=tmp_path / "c", transport="nccl", dry_run=True)
    assert len(found.document["nodes"]) == 3 and "3 nodes: " in repr(found)
    with pytest.raises(waywiser.WaywiserError):
        waywiser.cluster_show(tmp_path / "c")
    monkeypatch.setenv(TOKEN_VARIABLE, "0123456789abcdef")
    with pytest.raises(waywiser.WaywiserError, match="is no address"):
        waywiser.cluster_join("host:port")


def test_a_result_stays_what_it_was(file: Path, tmp_path: Path) -> None:
    """Its profile may grow, or be gone."""
    copied = tmp_path / "copied.wwp"
    copied.write_bytes(file.read_bytes())
    found = waywiser.show(copied)
    copied.unlink()
    assert "headline paths" in repr(found)


@pytest.mark.parametrize("call", [
    lambda: waywiser.advise(), lambda: waywiser.advise(placement=True), lambda: waywiser.report(),
    lambda: waywiser.advise(path="h2d", bytes=1), lambda: waywiser.export(),
    lambda: waywiser.export(for_="waywiser"),
])  # fmt: skip
def test_a_verb_of_files_needs_one(call: Callable[[], Any]) -> None:
    with pytest.raises(waywiser.WaywiserError, match="no file is named"):
        call()


def test_a_wrong_argument_names_the_help_of_its_function(file: Path, tmp_path: Path) -> None:
    wrong: list[tuple[str, Callable[[], Any]]] = [
        ("tune", lambda: waywiser.tune(file, grid="a")),  # type: ignore[arg-type]
        ("cluster_survey", lambda: waywiser.cluster_survey(nodes="x")),  # type: ignore[arg-type]
        ("simulate", lambda: waywiser.simulate(file, output=tmp_path / "a.wwp", seed="x")),  # type: ignore[arg-type]
        ("survey", lambda: waywiser.survey(ranks="x")),  # type: ignore[arg-type]
    ]
    for name, call in wrong:
        with pytest.raises(waywiser.WaywiserError) as raised:
            call()
        assert raised.value.remedy == f"see help(waywiser.{name})"


def test_a_view_of_a_profile_is_taken_as_its_file(file: Path) -> None:
    view = waywiser.open(file)
    assert repr(waywiser.show(view)) == repr(waywiser.show(file))
    assert waywiser.check(view, within=0).result.status
    assert waywiser.export(view, for_="waywiser").result
