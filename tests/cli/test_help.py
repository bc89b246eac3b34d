"""Help: one sentence, two examples that work, the glossary and the exit codes."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from analysis.cluster.stored_clusters import stored_cluster
from kept import RESULTS, unpacked
from machine.captured import CAPTURES
from waywiser import cli
from waywiser.cli.app import Only, app
from waywiser.cli.call import command
from waywiser.cli.command_help import COMMAND_EXAMPLES, EXAMPLES, EXIT_CODES, GLOSSARY, Example
from waywiser.cli.verb_table import VERBS as TABLE
from waywiser.curves.terms import TERMS

ROOT = Path(__file__).resolve().parent.parent.parent
SURVEYS = RESULTS / "2026-11-23-surveys"
ALL = [*COMMAND_EXAMPLES, *(example for of in EXAMPLES.values() for example in of)]
VERBS = sorted(command().commands)

Output = pytest.CaptureFixture[str]


def words_of(example: Example) -> list[str]:
    """The command line without the shell around it."""
    inside = re.sub(r"^source <\((.*)\)$|^(.*?) >.*$", r"\1\2", example.command)
    first, *words = shlex.split(inside)
    assert first == "waywiser"
    together = " ".join(words[:2])
    return [together, *words[2:]] if together in VERBS else words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that examples name, from recorded surveys and captures."""
    before, now = (SURVEYS / f"two-h200-check-{n}.wwp.xz" for n in (1, 2))
    (tmp_path / "nodes").mkdir()
    for name, source in (
        ("node.wwp", before),
        ("before.wwp", before),
        ("now.wwp", now),
        ("nodes/a.wwp", before),
        ("nodes/b.wwp", SURVEYS / "h100-check-1.wwp.xz"),
    ):
        unpacked(source, tmp_path / name)
    data = ROOT / "tests" / "exchange" / "imports" / "data"
    shutil.copy(data / "nvbandwidth.json", tmp_path / "nvbandwidth.json")
    capture = (CAPTURES / "h200-vm-8gpu.json").read_text()
    (tmp_path / "capture.json").write_text(capture.replace("NVIDIA H200", "Test GPU"))
    stored_cluster(tmp_path / "c", nodes=4, slow={(1, -1, 0): 0.5})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_has_two_examples() -> None:
    assert set(EXAMPLES) == set(VERBS)
    for verb, examples in EXAMPLES.items():
        assert len(examples) == 2
        for example in examples:
            assert words_of(example)[0] == verb
            assert example.does and not example.does.endswith(".")


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.command)
def test_examples_are_command_lines(example: Example) -> None:
    verb, *words = words_of(example)
    command().commands[verb].make_context(verb, words)  # raises for anything else


NO_RUN = ("survey", "tune", "cluster survey", "cluster join")
MEASURES = ["check"]

RUN = [each for each in ALL if words_of(each)[0] not in NO_RUN and words_of(each) != MEASURES]
"""Examples that need no GPU, no other process, and end at once."""


@pytest.mark.parametrize("example", RUN, ids=lambda example: example.command)
def test_examples_work(example: Example, folder: Path, capsys: Output) -> None:
    words = words_of(example)
    before = set(folder.iterdir())
    if words[0] == "import":
        (folder / "node.wwp").unlink()
    if words[:3] == ["show", "node.wwp", "--only"] and "latency" in words[3]:
        unpacked(RESULTS / "2026-11-20-h200" / "one-gpu" / "quick.wwp.xz", folder / "node.wwp")
    if words[0] == "predict":
        unpacked(SURVEYS / "h200-standard-1.wwp.xz", folder / "node.wwp")
    code = cli.run(words)
    said = capsys.readouterr()
    assert code in (0, 1, 3), said.err
    written = [word for option, word in pairwise(words) if option in ("-o", "--page")]
    assert all((folder / name).stat().st_size for name in written)
    assert said.out or set(folder.iterdir()) > before


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_is_short_and_leads_on(verb: str, capsys: Output) -> None:
    words = [verb] if verb else []
    assert cli.run([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert cli.run(["help", *words]) == 0
    assert capsys.readouterr().out == text
    assert cli.run([*words, "-h"]) == 0
    assert capsys.readouterr().out == text
    assert GLOSSARY in text and (ROOT / GLOSSARY).exists()
    for example in EXAMPLES[verb] if verb else COMMAND_EXAMPLES:
        assert f"  {example.command}\n      {example.does}\n" in text
    assert "<str>" not in text and "[required]" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_a_command_does_in_one_sentence(verb: str) -> None:
    found: Any = command().commands[verb]
    sentence = " ".join(inspect.cleandoc(found.help).split())
    assert sentence.endswith(".") and ". " not in sentence and len(sentence) < 170
    for param in found.params:
        assert param.help and param.help[0] != " " and param.help.rstrip().endswith((".", "."))


def test_help_names_every_term_of_only() -> None:
    (option,) = Only.__metadata__
    for term in TERMS:
        assert re.search(rf"\b{term}\b", option.help) or term == "bidirectional"


def test_help_of_commands_with_two_words(capsys: Output) -> None:
    assert cli.run(["cluster", "--help"]) == 0
    text = capsys.readouterr().out
    assert "  cluster survey  " in text and GLOSSARY in text
    assert cli.run(["help", "cluster"]) == 0
    assert capsys.readouterr().out == text
    assert cli.run(["help", "cluster", "survey"]) == 0
    assert capsys.readouterr().out.startswith("Usage: waywiser cluster survey ")


def test_a_command_that_is_not_known_is_suggested(capsys: Output) -> None:
    assert cli.run(["help", "sho"]) == 2
    assert "no such command 'sho'. Did you mean 'show'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("show a.wwp b", "too many arguments: b (see 'waywiser show --help')"),
        ("survey --presett quick", "no such option: --presett. Did you mean "),
        ("survey --only", "'--only' requires an argument (see 'waywiser survey --help')"),
        ("survey --seed x", "--seed 'x' is not a whole number from 0 to "),
        ("topology missing", "missing: there is no such file (name a profile, a capture or hwl"),
        ("cluster", "a word is missing (write waywiser cluster and one of "),
        ("cluster surve", "there is no 'waywiser cluster surve' (write waywiser cluster and "),
        ("cluster join", "missing argument 'HOST:PORT' (see 'waywiser cluster join --help')"),
        ("doctor missing", "missing: there is no such file (waywiser survey -o FILE makes one)"),
        ("--completion BASH", "there is no completion for 'BASH' (write one of bash, zsh, fish)"),
    ],
)
def test_messages_lead_on(words: str, says: str, capsys: Output) -> None:
    assert cli.run(words.split()) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert says in said.err and "Input should" not in said.err


def test_every_exit_code_is_documented() -> None:
    assert list(EXIT_CODES) == [0, 1, 2, 3, cli.INTERRUPTED]
    page = (ROOT / "docs" / "cli.md").read_text()
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXIT_CODES.items())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "show node.wwp"),
        (0, "compare before.wwp now.wwp --fail-on never"),
        (0, "doctor node.wwp --severity error"),
        (0, "check now.wwp --baseline before.wwp --within 0"),
        (1, "doctor node.wwp"),
        (1, "compare before.wwp nodes/b.wwp"),
        (1, "check nodes/b.wwp --baseline before.wwp --within 0"),
        (2, "show missing.wwp"),
        (2, "show node.wwp --only teleport"),
        (2, "compare before.wwp"),
        (2, "check missing also-missing"),
        (0, "check nodes"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_commands_end_with_the_documented_code(code: int, words: str, capsys: Output) -> None:
    assert cli.run(words.split()) == code, capsys.readouterr()


@pytest.mark.usefixtures("folder")
def test_an_interrupted_command_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("waywiser.curves.overview.overview", interrupted)
    assert cli.run(["show", "node.wwp"]) == cli.INTERRUPTED


WITH_FINDINGS = {"check", "compare", "doctor", "cluster survey", "cluster show"}
"""Verbs that may end with 1 or 3: they answer whether something is wrong."""


def test_only_verbs_with_findings_and_trace_have_a_code_of_their_own() -> None:
    found = {
        entry.name
        for entry in TABLE
        if get_type_hints(callback_of(entry.name)).get("return") is not type(None)
    }
    assert found == {*WITH_FINDINGS, "trace"}


def callback_of(verb: str) -> Any:
    (found,) = [each.callback for each in app.registered_commands if each.name == verb]
    return found


FINE = [
    *("survey --list", "survey --normal", "show node.wwp", "advise node.wwp --placement"),
    *("compare before.wwp before.wwp --fail-on never", "predict node.wwp --validate"),
    *("check now.wwp --baseline before.wwp --within 0", "doctor node.wwp --severity error"),
    *("report node.wwp -o a.html", "tune t.wwp --dry-run", "import nvbandwidth.json -o i.wwp"),
    *("export node.wwp --summary", "simulate node.wwp --preset check -o s.wwp"),
    *("topology node.wwp", "cluster survey --nodes 2 --dry-run -o d --transport nccl"),
    "cluster show fine",
]
FOUND = [
    *("compare before.wwp nodes/b.wwp", "doctor node.wwp", "cluster show c"),
    "check nodes/b.wwp --baseline before.wwp --within 0",
]
NOT_DECIDED = ["check slow.wwp --baseline before.wwp --within 0 --max-hidden 0.1%",
               "cluster show two"]  # fmt: skip
NOT_DONE = [
    *("survey --gpus 77", "show missing.wwp", "check missing.wwp", "compare before.wwp"),
    *("advise missing.wwp", "predict node.wwp --compare", "doctor missing.wwp"),
    *("trace --profile missing.wwp -- true", "report missing.wwp", "tune text.txt"),
    *("import missing.json", "export node.wwp --for x", "simulate node.wwp -o node.wwp"),
    *("topology missing.json", "cluster survey --retry", "cluster show missing"),
    "cluster join nowhere",
]


@pytest.mark.parametrize(
    ("code", "words"),
    [(code, words) for code, several in enumerate((FINE, FOUND, NOT_DONE, NOT_DECIDED))
     for words in several],
)  # fmt: skip
def test_a_code_means_the_same_for_every_verb(
    code: int, words: str, folder: Path, capsys: Output
) -> None:
    stored_cluster(folder / "fine", nodes=4)
    stored_cluster(folder / "two", nodes=2)
    unpacked(SURVEYS / "two-h200-check-2.wwp.xz", folder / "slow.wwp")
    (folder / "text.txt").write_text("text")
    assert cli.run(words.split()) == code, capsys.readouterr()
    said = capsys.readouterr()
    if code == 2:
        assert said.out == "" and said.err.count("\n") == 1


def test_every_verb_is_among_the_codes() -> None:
    for several, verbs in ((FINE, {entry.name for entry in TABLE} - {"trace", "cluster join"}),
                           (FOUND, WITH_FINDINGS - {"cluster survey"}),
                           (NOT_DONE, {entry.name for entry in TABLE})):  # fmt: skip
        named = {
            next(name for name in LONGEST_FIRST if words.startswith(f"{name} "))
            for words in several
        }
        assert named == verbs


LONGEST_FIRST = sorted((entry.name for entry in TABLE), key=len, reverse=True)


def test_trace_ends_with_the_code_of_its_program(capsys: Output) -> None:
    for code in (0, 1, 7):
        assert cli.run(["trace", "--", sys.executable, "-c", f"raise SystemExit({code})"]) == code
    capsys.readouterr()
